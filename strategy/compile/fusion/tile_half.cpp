#include <algorithm>

#include "autodiff/convert.h"
#include "strategy/compile/fusion/fused_kernel.h"

namespace palimpsest {

/// The same values as f32, where they are held in 16 bits.
FusedKernel::Slot FusedKernel::wide(NodeId node, Slot slot) {
  const SlotInfo info = slots_[slot];
  if (!is_half(info.held)) return slot;
  if (info.other != none) return info.other;
  const DType held = compute_dtype(info.dtype);
  if (info.step != 0) return convert(node, slot, {Place::tile, 0, info.dtype, held});
  Slot one{};
  if (info.place == Place::number) {
    one = add({Place::number, numbers_++, info.dtype, held, 0});
    Constant constant = *std::ranges::find(constants_, slot, &Constant::output);
    constant.output = one;
    constants_.push_back(std::move(constant));
  } else {
    one = add({Place::tile, 0, info.dtype, held, 0});
    spread_.push_back({slot, one});
  }
  slots_[slot].other = one;
  return one;
}

/// The same values in 16 bits, where they are wide. They are written to an output or a tile.
FusedKernel::Slot FusedKernel::narrow(NodeId node, Slot slot, std::uint32_t output) {
  const SlotInfo info = slots_[slot];
  if (info.held == info.dtype) return slot;
  if (info.other != none) return info.other;
  if (output == none) return convert(node, slot, {Place::tile, 0, info.dtype});
  return convert(node, slot, {Place::output, output, info.dtype});
}

FusedKernel::Slot FusedKernel::convert(NodeId node, Slot slot, const SlotInfo& to) {
  const Slot made = add(to);
  slots_[slot].other = made;
  slots_[made].other = slot;
  const PointwiseKernel kernel = conversion(slots_[slot].held, to.held);
  instructions_.push_back({kernel, nullptr, {}, to.dtype, nullptr, node, made, 1, {slot}});
  return made;
}

FusedKernel::Rounding FusedKernel::rounding_to(DType dtype) {
  return dtype == DType::bf16 ? kernels().bf16.round : kernels().f16.round;
}

/// A result that is only narrowed needs no rounding of its own.
void FusedKernel::leave_out_roundings() {
  std::vector<bool> is_read(slots_.size());
  for (const Instruction& instruction : instructions_) {
    for (const Slot input : std::span(instruction.inputs).first(instruction.input_count)) {
      if (slots_[instruction.output].other != input) is_read[input] = true;
    }
  }
  for (const Fold& fold : folds_) is_read[fold.input] = true;
  for (Instruction& instruction : instructions_) {
    if (!is_read[instruction.output]) instruction.round = nullptr;
  }
}

void FusedKernel::finish(const Fold& fold, const Tape& tape, std::byte* totals,
                         const Operand& output, std::int64_t group, std::byte* scratch) const {
  const DType dtype = output.dtype();
  const std::int64_t columns = fold.kernel.columns;
  std::byte* const to = output.data + group * columns * size_of(dtype);
  const bool rounds = is_half(dtype);
  fold.kernel.finish(tape.attributes(fold.node), totals, cut_.segments, columns,
                     rounds ? scratch : to);
  if (!rounds) return;
  const DType wide = compute_dtype(dtype);
  for (std::int64_t i = 0; i < columns; ++i) {
    convert_one(wide, scratch + i * size_of(wide), dtype, to + i * size_of(dtype));
  }
}

}  // namespace palimpsest
