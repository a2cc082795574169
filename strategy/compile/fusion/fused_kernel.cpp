#include "strategy/compile/fusion/fused_kernel.h"

#include <algorithm>
#include <iterator>

#include "autodiff/execute.h"
#include "autodiff/kernels/shares.h"
#include "strategy/base/digest.h"

namespace palimpsest {
namespace {

/// Bytes of all arrays that a tile is part of, together: well inside a first-level cache.
constexpr std::int64_t cache_bytes = 32 << 10;
constexpr std::int64_t smallest_tile = 256;
constexpr std::int64_t largest_tile = 1024;
}  // namespace

FusedKernel::Slot FusedKernel::add(SlotInfo slot) {
  widest_ = std::max(widest_, slot.element_bytes());
  slots_.push_back(slot);
  return static_cast<Slot>(slots_.size() - 1);
}

std::uint64_t FusedKernel::layout_hash() const {
  Digest digest;
  const auto put = [&](auto... numbers) { (digest.put(static_cast<std::uint64_t>(numbers)), ...); };
  put(elements_, folds_.size(), instructions_.size());
  if (!folds_.empty()) put(folds_[0].kernel.elements, folds_[0].kernel.columns);
  for (const SlotInfo& slot : slots_) {
    put(slot.place, slot.index, slot.dtype, slot.held, slot.step, slot.offset);
  }
  for (const Load& load : loads_) {
    put(load.slot, load.period);
    for (const Part& part : load.parts) {
      put(part.begin, part.end, part.input, part.made, part.from.offset());
      digest.put(part.from.box().sizes);
      for (int axis = 0; axis < part.from.box().sizes.rank(); ++axis) {
        put(part.from.box().from[at(axis)]);
      }
    }
  }
  return digest.value();
}

FusedKernel::Slot FusedKernel::load(std::vector<Part> parts, std::int64_t period, DType dtype) {
  if (parts.size() == 1 && parts[0].input != none && parts[0].from.is_row()) {
    const Gather& row = parts[0].from;
    return add({Place::input, parts[0].input, dtype, dtype, row.step(), row.offset()});
  }
  if (period == 0) period = elements_;
  const auto known = std::ranges::find_if(loads_, [&](const Load& load) {
    return load.dtype == dtype && load.period == period && load.parts == parts;
  });
  if (known != loads_.end()) return known->slot;
  const Slot slot = add({Place::tile, 0, dtype});
  loads_.push_back({slot, dtype, std::move(parts), period});
  return slot;
}

FusedKernel::Slot FusedKernel::compute(NodeId node, PointwiseKernel kernel, HalfSupport half,
                                       DType dtype, std::span<const Slot> inputs,
                                       std::uint32_t output) {
  if (inputs.empty() && output == none) {
    const Slot number = add({Place::number, numbers_++, dtype, dtype, 0});
    constants_.push_back({kernel, node, number});
    return number;
  }
  const bool widened = half == HalfSupport::widened;
  std::array<Slot, 4> operands{};
  std::transform(inputs.begin(), inputs.end(), operands.begin(), [&](Slot input) {
    const Slot operand = widened ? wide(node, input) : narrow(node, input);
    return kernel.steps || slots_[operand].step == 1 ? operand : spread(operand);
  });
  if (output != none) outputs_ = std::max(outputs_, output + 1);
  const bool rounds = widened && is_half(dtype);
  const Slot slot = rounds           ? add({Place::tile, 0, dtype, compute_dtype(dtype)})
                    : output == none ? add({Place::tile, 0, dtype})
                                     : add({Place::output, output, dtype});
  Instruction instruction{kernel,
                          nullptr,
                          {kernel.arithmetic},
                          dtype,
                          nullptr,
                          node,
                          slot,
                          static_cast<std::uint32_t>(inputs.size()),
                          operands};
  if (rounds) instruction.round = rounding_to(dtype);
  instructions_.push_back(instruction);
  if (rounds && output != none) narrow(node, slot, output);
  return slot;
}

void FusedKernel::fold(NodeId node, const FoldKernel& kernel, Slot input, std::uint32_t output) {
  internal_check(kernel.rows == nullptr || (kernel.elements <= kernel.piece && kernel.columns == 1),
                 "an operation folds long results by rows");
  const FoldKernel& first = folds_.empty() ? kernel : folds_[0].kernel;
  internal_check(kernel.piece > 0 && kernel.elements == first.elements &&
                     kernel.columns == first.columns && kernel.segment == first.segment &&
                     kernel.piece == first.piece && kernel.state_bytes == first.state_bytes,
                 "reductions of two shapes are in one group");
  outputs_ = std::max(outputs_, output + 1);
  folds_.push_back({kernel, node, wide(node, input), output});
}

void FusedKernel::give(const std::function<const Attributes*(NodeId)>& given) {
  for (Constant& constant : constants_) {
    if (const Attributes* const own = given(constant.node)) constant.given = *own;
  }
}

FusedKernel::Slot FusedKernel::spread(Slot slot) {
  const auto known = std::find_if(spread_.begin(), spread_.end(), [&](const Spread& spread) {
    return spread.one == slot && slots_[spread.tile].step == 1;
  });
  if (known != spread_.end()) return known->tile;
  const SlotInfo one = slots_[slot];
  const Slot tile = add({Place::tile, 0, one.dtype, one.held});
  spread_.push_back({slot, tile});
  return tile;
}

void FusedKernel::finish() {
  leave_out_roundings();
  join_arithmetic();
  find_numbers();
  place_tiles();
  resolve();
  find_seams();
  cut();
}

void FusedKernel::place_tiles() {
  std::vector<std::size_t> last_read(slots_.size(), 0);
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    for (std::uint32_t k = 0; k < instructions_[i].input_count; ++k) {
      last_read[instructions_[i].inputs[k]] = i;
    }
  }
  for (const Fold& fold : folds_) last_read[fold.input] = instructions_.size();
  std::vector<std::uint32_t> free;
  const auto take = [&](Slot slot) {
    if (slots_[slot].place != Place::tile) return;
    if (free.empty()) free.push_back(tiles_++);
    slots_[slot].index = free.back();
    free.pop_back();
  };
  const auto keep = [&](Slot slot) {
    take(slot);
    last_read[slot] = instructions_.size();  // still read in the next tile
  };
  for (const Spread& spread : spread_) keep(spread.tile);
  for (const Load& load : loads_) take(load.slot);
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    take(instructions_[i].output);
    const auto inputs = std::span(instructions_[i].inputs).first(instructions_[i].input_count);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const bool again = std::find(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(k),
                                   inputs[k]) != inputs.begin() + static_cast<std::ptrdiff_t>(k);
      const SlotInfo& slot = slots_[inputs[k]];
      if (!again && slot.place == Place::tile && last_read[inputs[k]] == i) {
        free.push_back(slot.index);
      }
    }
  }
  const auto arrays =
      tiles_ + std::count_if(slots_.begin(), slots_.end(), [](const SlotInfo& slot) {
        return slot.place == Place::input || slot.place == Place::output;
      });
  const std::int64_t fitting = cache_bytes / (widest_ * std::max<std::int64_t>(arrays, 1));
  tile_elements_ = std::clamp(fitting / line * line, smallest_tile, largest_tile);
  if (folds_.empty()) {
    // As equal in length as possible.
    const std::int64_t tiles = std::max<std::int64_t>(divide_up(elements_, tile_elements_), 1);
    tile_elements_ = round_up(std::max<std::int64_t>(divide_up(elements_, tiles), 1), line);
    return;
  }
  tile_elements_ = std::min(tile_elements_, round_up(std::max<std::int64_t>(elements_, 1), line));
  // Whole results, or pieces of results.
  const FoldKernel& kernel = folds_[0].kernel;
  const std::int64_t unit = kernel.elements <= tile_elements_ ? kernel.elements : kernel.piece;
  tile_elements_ = std::max(tile_elements_ / unit * unit, unit);
}

FusedKernel::Address FusedKernel::address(Slot slot) const {
  const SlotInfo& info = slots_[slot];
  const std::int64_t bytes = info.element_bytes();
  switch (info.place) {
    case Place::number:
      return {0, info.index * std::int64_t{sizeof(Number)}, 0};
    case Place::tile:
      return {1, info.index * tile_bytes(), 0};
    case Place::output:
      return {2 + info.index, 0, bytes};
    case Place::input:
      break;
  }
  return {2 + outputs_ + info.index, info.offset * bytes, info.step * bytes};
}

/// Stores the addresses of all slots in the instructions.
void FusedKernel::resolve() {
  for (Fold& fold : folds_) fold.from = address(fold.input);
  for (Load& load : loads_) load.tile = address(load.slot);
  for (Spread& spread : spread_) {
    spread.from = address(spread.one);
    spread.to = address(spread.tile);
  }
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    Instruction& instruction = instructions_[i];
    instruction.to = address(instruction.output);
    for (std::uint32_t k = 0; k < instruction.input_count; ++k) {
      const Slot slot = instruction.inputs[k];
      instruction.steps[k] = slots_[slot].step;
      instruction.from[k] = address(slot);
      for (Load& load : loads_) {
        if (load.slot == slot) load.readers.push_back({i, k});
      }
    }
  }
}

/// Ends tiles where the parts of a load meet, so that most tiles read contiguous memory. Only tiles
/// of a few cache lines around these places are copied together.
void FusedKernel::find_seams() {
  constexpr std::int64_t shortest = 128;  // the shortest range worth tiles of its own
  constexpr std::int64_t around = 16;
  if (!folds_.empty()) return;  // reductions need longer pieces
  std::vector<std::int64_t> meetings;
  for (const Load& load : loads_) {
    if (load.period < elements_) continue;  // its rows are copied
    for (const Part& part : load.parts) meetings.push_back(part.begin);
  }
  std::ranges::sort(meetings);
  std::int64_t end = 0;  // end of the last range that is copied together
  for (const std::int64_t meeting : meetings) {
    const std::int64_t begin = meeting / around * around;
    if (begin - end >= shortest) seams_.insert(seams_.end(), {end, begin});
    if (meeting > 0) end = std::max(end, std::min(round_up(meeting, around), elements_));
  }
  if (elements_ - end >= shortest) seams_.push_back(end);
}

void FusedKernel::cut() {
  const double work = static_cast<double>(instructions_.size() + folds_.size());
  const std::int64_t grain = round_up(grain_for(work), tile_elements_);
  if (folds_.empty()) {
    cut_ = {elements_, grain, elements_, 1, elements_};
    return;
  }
  const auto& [elements, segment] = std::pair(folds_[0].kernel.elements, folds_[0].kernel.segment);
  const std::int64_t segments = divide_up(elements, segment);
  cut_ = {elements_ / elements * segments, divide_up(grain, segment), elements, segment, segments};
}

bool FusedKernel::may_write_over(std::uint32_t output, std::uint32_t input) const {
  const auto is_output = [&](const Instruction& instruction) {
    const SlotInfo& slot = slots_[instruction.output];
    return slot.place == Place::output && slot.index == output;
  };
  const auto is_input = [&](Slot slot) {
    return slots_[slot].place == Place::input && slots_[slot].index == input;
  };
  const auto writer = std::find_if(instructions_.begin(), instructions_.end(), is_output);
  if (writer == instructions_.end()) return false;
  for (Slot slot = 0; slot < slots_.size(); ++slot) {
    if (is_input(slot) && (slots_[slot].step != 1 || slots_[slot].offset != 0)) return false;
  }
  const auto gathers = [&](const Load& load) {
    return std::ranges::any_of(load.parts, [&](const Part& part) { return part.input == input; });
  };
  const auto reads = [&](const Instruction& instruction) {
    return std::ranges::any_of(std::span(instruction.inputs).first(instruction.input_count),
                               is_input);
  };
  return std::ranges::none_of(loads_, gathers) &&
         std::none_of(std::next(writer), instructions_.end(), reads) &&
         std::ranges::none_of(folds_, is_input, &Fold::input);
}

Bytes FusedKernel::tile_bytes() const { return aligned(tile_elements_ * widest_); }

/// Bytes for a reduction in one thread: its state, then the totals of a segment.
Bytes FusedKernel::fold_bytes() const {
  if (folds_.empty()) return 0;
  const FoldKernel& kernel = folds_[0].kernel;
  return kernel.state_bytes + aligned(kernel.total_bytes());
}

/// Bytes of one thread's share of the workspace.
Bytes FusedKernel::share() const {
  return tiles_ * tile_bytes() + static_cast<Bytes>(folds_.size()) * fold_bytes();
}

/// Bytes before the threads' shares, for the totals of segments where results have several.
Bytes FusedKernel::totals() const {
  if (folds_.empty() || cut_.segments == 1) return 0;
  const Bytes total_bytes = folds_[0].kernel.total_bytes();
  return aligned(static_cast<Bytes>(folds_.size()) * cut_.count * total_bytes);
}

Bytes FusedKernel::workspace(int threads) const {
  return totals() + Shares(cut_.count, cut_.grain, share(), threads).bytes();
}

}  // namespace palimpsest
