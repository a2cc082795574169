#include <algorithm>
#include <utility>

#include "strategy/compile/fusion/fused_kernel.h"

namespace palimpsest {
namespace {

auto kernels_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return kernels().arithmetic_f64;
    case DType::bf16:
      return kernels().arithmetic_bf16;
    case DType::f16:
      return kernels().arithmetic_f16;
    default:
      return kernels().arithmetic_f32;
  }
}

/// The step with its operands exchanged.
ArithmeticStep exchanged(ArithmeticStep step) {
  if (step == ArithmeticStep::subtract) return ArithmeticStep::subtract_from;
  if (step == ArithmeticStep::subtract_from) return ArithmeticStep::subtract;
  return step;
}

}  // namespace

/// Fuses an arithmetic step into the step that reads it, if nothing else does. At most three steps
/// are fused, or two for 16-bit types, in program order.
void FusedKernel::join_arithmetic() {
  std::vector<std::uint32_t> reads(slots_.size());
  std::vector<std::size_t> maker(slots_.size(), instructions_.size());
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    for (std::uint32_t k = 0; k < instruction.input_count; ++k) ++reads[instruction.inputs[k]];
    maker[instruction.output] = i;
  }
  for (const Fold& fold : folds_) ++reads[fold.input];
  std::vector<bool> is_part(instructions_.size());
  for (Instruction& last : instructions_) {
    for (std::uint32_t k = 0; k < last.input_count && last.joined == nullptr; ++k) {
      const Slot slot = last.inputs[k];
      if (slots_[slot].place != Place::tile || reads[slot] != 1) continue;
      const std::size_t before = maker[slot];
      if (before < instructions_.size()) is_part[before] = join(last, k, instructions_[before]);
    }
  }
  std::size_t left = 0;
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (!is_part[i]) instructions_[left++] = instructions_[i];
  }
  instructions_.resize(left);
}

/// Makes `last` also do `before`, whose output is its input `input`. Returns false when that is
/// impossible.
bool FusedKernel::join(Instruction& last, std::size_t input, const Instruction& before) {
  const ArithmeticStep end = input == 0 ? last.arithmetic[0] : exchanged(last.arithmetic[0]);
  if (end == ArithmeticStep::none || before.dtype != last.dtype) return false;
  const bool joined = before.joined != nullptr ? add_third(last, end, 1 - input, before)
                                               : add_second(last, end, 1 - input, before);
  if (!joined) return false;
  last.joined = kernels_of(last.dtype)(last.arithmetic[0], last.arithmetic[1], last.arithmetic[2]);
  return true;
}

bool FusedKernel::add_second(Instruction& last, ArithmeticStep end, std::size_t other,
                             const Instruction& before) {
  ArithmeticStep begin = before.arithmetic[0];
  if (begin == ArithmeticStep::none) return false;
  if (step_of(before, 0) == 0 && step_of(before, 1) == 0) return false;
  Slot a = operand(before, 0);
  Slot b = operand(before, 1);
  const bool repeats = slots_[a].step == 0 && begin != ArithmeticStep::subtract;
  if (begin == ArithmeticStep::subtract_from || repeats) {
    std::swap(a, b);
    begin = exchanged(begin);
  }
  last.inputs = {a, b, operand(last, other)};
  last.input_count = 3;
  last.arithmetic = {begin, end};
  return true;
}

bool FusedKernel::add_third(Instruction& last, ArithmeticStep end, std::size_t other,
                            const Instruction& before) {
  const auto [first, second, third] = before.arithmetic;
  if (third != ArithmeticStep::none || is_half(last.dtype)) return false;
  const auto fits = [](ArithmeticStep step, std::int64_t operand_step) {
    return operand_step == 1 || step == ArithmeticStep::multiply;
  };
  if (step_of(before, 0) == 0 || !fits(first, step_of(before, 1)) ||
      !fits(second, step_of(before, 2)) || !fits(end, step_of(last, other))) {
    return false;
  }
  const Slot d = operand(last, other);
  last.inputs = before.inputs;
  last.inputs[3] = d;
  last.input_count = 4;
  last.arithmetic = {first, second, end};
  return true;
}

/// The element stride of an operand of an arithmetic step: 0 for a number.
std::int64_t FusedKernel::step_of(const Instruction& instruction, std::size_t input) const {
  return input < instruction.input_count ? slots_[instruction.inputs[input]].step : 0;
}

/// An operand of an arithmetic step: an input, or the number in its node's attributes.
FusedKernel::Slot FusedKernel::operand(const Instruction& instruction, std::size_t input) {
  if (input < instruction.input_count) return instruction.inputs[input];
  const DType dtype = instruction.dtype;
  const Slot slot = add({Place::number, numbers_++, dtype, compute_dtype(dtype), 0});
  given_.push_back({slots_[slot].index, instruction.node, instruction.kernel.number});
  return slot;
}

/// Gives slots to the numbers that single steps read from their attributes. Machine code reads them
/// there.
void FusedKernel::find_numbers() {
  for (Instruction& instruction : instructions_) {
    const bool has_number = instruction.joined == nullptr && instruction.kernel.number != nullptr &&
                            instruction.input_count == 1 && !is_half(instruction.dtype);
    if (has_number) instruction.number = operand(instruction, 1);
  }
}

}  // namespace palimpsest
