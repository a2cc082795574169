#include <utility>

#include "strategy/fusion/tile_program.h"

namespace palimpsest {
namespace {

bool is_step(const PointwiseKernel& kernel) { return kernel.arithmetic != ArithmeticStep::none; }

/// What x·y, x + y and so on are with operands exchanged.
ArithmeticStep exchanged(ArithmeticStep step) {
  if (step == ArithmeticStep::subtract) return ArithmeticStep::subtract_from;
  if (step == ArithmeticStep::subtract_from) return ArithmeticStep::subtract;
  return step;
}

}  // namespace

/// Steps of arithmetic whose result is read by one other step, and by nothing else, become part of
/// it, from the first instruction to the last.
void TileProgram::pair_arithmetic() {
  std::vector<std::uint32_t> reads(slots_.size());
  std::vector<std::size_t> maker(slots_.size(), instructions_.size());
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    for (std::uint32_t k = 0; k < instruction.input_count; ++k) ++reads[instruction.inputs[k]];
    maker[instruction.output] = i;
  }
  for (const Fold& fold : folds_) ++reads[fold.input];
  std::vector<bool> is_part(instructions_.size());
  for (Instruction& second : instructions_) {
    if (!is_step(second.kernel)) continue;
    for (std::uint32_t k = 0; k < second.input_count && second.pair == nullptr; ++k) {
      const Slot slot = second.inputs[k];
      if (slots_[slot].place != Place::tile || reads[slot] != 1) continue;
      const std::size_t first = maker[slot];
      if (first == instructions_.size() || instructions_[first].pair != nullptr) continue;
      is_part[first] = make_pair(second, k, instructions_[first]);
    }
  }
  std::size_t left = 0;
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (!is_part[i]) instructions_[left++] = instructions_[i];
  }
  instructions_.resize(left);
}

/// Makes `second`, whose input `input` is the output of `first`, do both; false when that cannot be
/// done.
bool TileProgram::make_pair(Instruction& second, std::size_t input, const Instruction& first) {
  if (!is_step(first.kernel) || first.dtype != second.dtype) return false;
  ArithmeticStep begin = first.kernel.arithmetic;
  Slot a = operand(first, 0);
  Slot b = operand(first, 1);
  if (slots_[a].step == 0 && slots_[b].step == 0) return false;
  const bool repeats = slots_[a].step == 0 && begin != ArithmeticStep::subtract;
  if (begin == ArithmeticStep::subtract_from || repeats) {
    std::swap(a, b);
    begin = exchanged(begin);
  }
  const ArithmeticStep step = second.kernel.arithmetic;
  const ArithmeticStep end = input == 0 ? step : exchanged(step);
  const auto pair_of = second.dtype == DType::f32 ? kernels().pair_f32 : kernels().pair_f64;
  second.pair = pair_of(begin, end);
  second.inputs = {a, b, operand(second, 1 - input)};
  second.input_count = 3;
  return true;
}

/// An operand of a step of arithmetic: an input, or the number its node was given.
TileProgram::Slot TileProgram::operand(const Instruction& instruction, std::size_t input) {
  if (input < instruction.input_count) return instruction.inputs[input];
  const Slot slot = add({Place::number, numbers_++, size_of(instruction.dtype), 0});
  given_.push_back({slot, instruction.node, instruction.kernel.number});
  return slot;
}

}  // namespace palimpsest
