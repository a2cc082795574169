#include "strategy/fusion/tile_program.h"

#include <algorithm>

#include "autodiff/execute.h"
#include "autodiff/kernels/shares.h"

namespace palimpsest {
namespace {

/// What the arrays that a tile is part of take there together: well inside a first-level cache.
constexpr std::int64_t cache_bytes = 32 << 10;
constexpr std::int64_t smallest_tile = 256;
constexpr std::int64_t largest_tile = 1024;
/// A stretch of elements that is a whole number of cache lines for every dtype.
constexpr std::int64_t line = 64;
/// A cache line for each number.
constexpr std::int64_t number_bytes = 64;

void fill_elements(DType dtype, std::byte* to, std::int64_t n, double number) {
  visit(dtype,
        [&]<class T>(T) { std::fill_n(reinterpret_cast<T*>(to), n, convert_element<T>(number)); });
}

}  // namespace

TileProgram::Slot TileProgram::add(SlotInfo slot) {
  widest_ = std::max(widest_, slot.element_bytes);
  slots_.push_back(slot);
  return static_cast<Slot>(slots_.size() - 1);
}

TileProgram::Slot TileProgram::load(std::vector<Part> parts, DType dtype) {
  const std::int64_t bytes = size_of(dtype);
  if (parts.size() == 1 && parts[0].input != none && parts[0].from.is_row()) {
    const Gather& row = parts[0].from;
    return add({Place::input, parts[0].input, bytes, row.step(), row.offset()});
  }
  const Slot slot = add({Place::tile, 0, bytes});
  loads_.push_back({slot, dtype, std::move(parts)});
  return slot;
}

TileProgram::Slot TileProgram::compute(NodeId node, PointwiseKernel kernel, DType dtype,
                                       std::span<const Slot> inputs, std::uint32_t output) {
  const std::int64_t bytes = size_of(dtype);
  if (inputs.empty() && output == none) {
    const Slot number = add({Place::number, numbers_++, bytes, 0});
    constants_.push_back({kernel, node, number, 0, {}});
    return number;
  }
  const Slot slot = add(output == none ? SlotInfo{Place::tile, 0, bytes}
                                       : SlotInfo{Place::output, output, bytes});
  Instruction instruction{kernel, node, slot, static_cast<std::uint32_t>(inputs.size()), {}};
  std::transform(inputs.begin(), inputs.end(), instruction.inputs.begin(), [&](Slot input) {
    return kernel.steps || slots_[input].step == 1 ? input : spread(input);
  });
  instructions_.push_back(instruction);
  return slot;
}

TileProgram::Slot TileProgram::spread(Slot slot) {
  const auto known = std::find_if(spread_.begin(), spread_.end(),
                                  [&](const auto& pair) { return pair.first == slot; });
  if (known != spread_.end()) return known->second;
  const SlotInfo one = slots_[slot];
  const Slot tile = add({Place::tile, 0, one.element_bytes});
  spread_.emplace_back(slot, tile);
  return tile;
}

void TileProgram::finish() {
  std::vector<std::size_t> last_read(slots_.size(), 0);
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    for (std::uint32_t k = 0; k < instructions_[i].input_count; ++k) {
      last_read[instructions_[i].inputs[k]] = i;
    }
  }
  std::vector<std::uint32_t> free;
  const auto take = [&](Slot slot) {
    if (slots_[slot].place != Place::tile) return;
    if (free.empty()) free.push_back(tiles_++);
    slots_[slot].index = free.back();
    free.pop_back();
  };
  const auto keep = [&](Slot slot) {
    take(slot);
    last_read[slot] = instructions_.size();  // for the next tile
  };
  for (const auto& [number, tile] : spread_) keep(tile);
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
  tile_elements_ = std::min(tile_elements_, round_up(std::max<std::int64_t>(elements_, 1), line));
}

std::int64_t TileProgram::grain() const {
  return round_up(grain_for(static_cast<double>(instructions_.size())), tile_elements_);
}

Bytes TileProgram::share() const {
  return numbers_ * number_bytes + tiles_ * tile_elements_ * widest_;
}

Bytes TileProgram::workspace(int threads) const {
  return Shares(elements_, grain(), share(), threads).bytes();
}

/// The pointers of one thread that walks a stretch of tiles.
class TileProgram::Run {
 public:
  Run(const TileProgram& program, const Tape& tape, std::span<const Operand> inputs,
      std::span<const Operand> outputs, std::byte* scratch)
      : program_(program),
        tape_(tape),
        inputs_(inputs),
        tiles_(scratch + program.numbers_ * number_bytes),
        tile_bytes_(program.tile_elements_ * program.widest_) {
    const std::size_t count = program.slots_.size();
    if (count > few_.size()) many_.resize(count);
    pointers_ = {count > few_.size() ? many_.data() : few_.data(), count};
    for (std::size_t i = 0; i < count; ++i) {
      const SlotInfo& slot = program.slots_[i];
      switch (slot.place) {
        case Place::input:
          pointers_[i] = inputs[slot.index].data + slot.offset * slot.element_bytes;
          break;
        case Place::output:
          pointers_[i] = outputs[slot.index].data;
          break;
        case Place::number:
          pointers_[i] = scratch + slot.index * number_bytes;
          break;
        case Place::tile:
          pointers_[i] = tiles_ + slot.index * tile_bytes_;
          break;
      }
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void walk(std::int64_t begin, std::int64_t end) {
    if (begin > 0) advance(begin);
    const std::int64_t tile = program_.tile_elements_;
    for (const Instruction& constant : program_.constants_) execute(constant, 1);
    const Shape first_tile{std::min(tile, end - begin)};
    for (const auto& [number, spread] : program_.spread_) {
      Gather(first_tile, {})
          .copy(pointers_[number], pointers_[spread], 0, first_tile[0],
                program_.slots_[number].element_bytes);
    }
    for (std::int64_t first = begin; first < end; first += tile) {
      const std::int64_t n = std::min(tile, end - first);
      for (const Load& load : program_.loads_) fill(load, first, n);
      for (const Instruction& instruction : program_.instructions_) execute(instruction, n);
      if (first + n < end) advance(n);
    }
  }

 private:
  /// Makes the slot hold elements [first, first + n): in the tile, or where they lie in a row.
  void fill(const Load& load, std::int64_t first, std::int64_t n) {
    const SlotInfo& slot = program_.slots_[load.slot];
    std::byte* const tile = tiles_ + slot.index * tile_bytes_;
    for (const Part& part : load.parts) {
      const std::int64_t begin = std::max(first, part.begin);
      const std::int64_t end = std::min(first + n, part.end);
      if (begin >= end) continue;
      std::byte* const to = tile + (begin - first) * slot.element_bytes;
      if (part.input == none) {
        fill_elements(load.dtype, to, end - begin, part.number);
        continue;
      }
      const std::byte* const from = inputs_[part.input].data;
      const bool lies_there = end - begin == n && part.from.is_row() && part.from.step() == 1;
      if (lies_there) {
        const std::int64_t place = part.from.offset() + begin - part.begin;
        pointers_[load.slot] = inputs_[part.input].data + place * slot.element_bytes;
        return;
      }
      part.from.copy(from, to, begin - part.begin, end - begin, slot.element_bytes);
    }
    pointers_[load.slot] = tile;
  }

  void execute(const Instruction& instruction, std::int64_t n) const {
    PointwiseCall call{
        tape_.attributes(instruction.node), {}, {}, pointers_[instruction.output], n};
    for (std::uint32_t k = 0; k < instruction.input_count; ++k) {
      const Slot input = instruction.inputs[k];
      call.inputs[k] = pointers_[input];
      call.steps[k] = program_.slots_[input].step;
    }
    instruction.kernel.run(call);
  }

  /// Moves on by `n` elements.
  void advance(std::int64_t n) {
    for (std::size_t i = 0; i < pointers_.size(); ++i) {
      const SlotInfo& slot = program_.slots_[i];
      if (slot.place != Place::tile) pointers_[i] += n * slot.step * slot.element_bytes;
    }
  }

  const TileProgram& program_;
  const Tape& tape_;
  std::span<const Operand> inputs_;
  std::byte* tiles_;
  std::int64_t tile_bytes_;
  std::array<std::byte*, 128> few_;  // without allocating
  std::vector<std::byte*> many_;
  std::span<std::byte*> pointers_;
};

void TileProgram::run(const Tape& tape, std::span<const Operand> inputs,
                      std::span<const Operand> outputs, std::span<std::byte> workspace,
                      int threads) const {
  Shares(elements_, grain(), share(), threads)
      .run(workspace, [&](std::int64_t begin, std::int64_t end, std::byte* scratch) {
        Run(*this, tape, inputs, outputs, scratch).walk(begin, end);
      });
}

}  // namespace palimpsest
