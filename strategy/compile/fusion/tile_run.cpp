#include <algorithm>

#include "autodiff/convert.h"
#include "autodiff/execute.h"
#include "autodiff/kernels/shares.h"
#include "strategy/compile/fusion/fused_kernel.h"

namespace palimpsest {
namespace {

void fill_elements(DType dtype, std::byte* to, std::int64_t n, double number) {
  visit(dtype,
        [&]<class T>(T) { std::fill_n(reinterpret_cast<T*>(to), n, convert_element<T>(number)); });
}

/// Copies the element at `one` to `n` places.
void fill_with(const std::byte* one, std::byte* to, std::int64_t n, std::int64_t element_bytes) {
  static const Gather same(Shape{1}, {});
  same.copy(one, to, 0, n, element_bytes);
}

/// An array that needs no allocation for up to `few` elements.
template <class T, std::size_t few>
class Room {
 public:
  std::span<T> take(std::size_t count) {
    if (count > few) many_.resize(count);
    return {count > few ? many_.data() : few_.data(), count};
  }

 private:
  std::array<T, few> few_;
  std::vector<T> many_;
};

}  // namespace

/// One thread's pass over a range of tiles, with the addresses of its instructions.
class FusedKernel::Run {
 public:
  Run(const FusedKernel& program, const Tape& tape, std::span<const Operand> inputs,
      std::span<const Operand> outputs, std::span<const Number> numbers, std::byte* totals,
      std::byte* scratch)
      : program_(program),
        cut_(program.cut_),
        tape_(tape),
        inputs_(inputs),
        outputs_(outputs),
        totals_(totals),
        states_(scratch + program.tiles_ * program.tile_bytes()) {
    bases_ = base_room_.take(2 + outputs.size() + inputs.size());
    // Numbers are never written to.
    bases_[0] = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(numbers.data()));
    bases_[1] = scratch;
    auto base = bases_.begin() + 2;
    for (const Operand& output : outputs) *base++ = output.data;
    for (const Operand& input : inputs) *base++ = input.data;
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void walk(std::int64_t begin, std::int64_t end) {
    for (const Spread& spread : program_.spread_) fill(spread);
    start_at(begin);
    auto seam = std::ranges::upper_bound(program_.seams_, begin);
    for (std::int64_t first = begin, n = 0; first < end; first += n) {
      if (seam != program_.seams_.end() && *seam == first) ++seam;
      const std::int64_t stop = seam != program_.seams_.end() ? std::min(*seam, end) : end;
      n = std::min(program_.tile_elements_, end_of_tile(first, stop) - first);
      for (const Load& load : program_.loads_) fill(load, first, n);
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        execute(program_.instructions_[i], calls_[i], n);
        if (first + n < end) move(program_.instructions_[i], calls_[i], n);
      }
      for (std::size_t i = 0; i < program_.folds_.size(); ++i) fold(i, first, n);
    }
  }

 private:
  /// The addresses of an instruction in the next tile.
  struct Call {
    std::array<const std::byte*, 4> inputs;
    std::byte* output;
  };

  std::byte* place(const Address& address, std::int64_t element = 0) const {
    return bases_[address.base] + address.offset + element * address.move;
  }

  void fill(const Spread& spread) const {
    const SlotInfo& one = program_.slots_[spread.one];
    const SlotInfo& tile = program_.slots_[spread.tile];
    Number number;
    const std::byte* from = place(spread.from);
    if (one.held != tile.held) {
      convert_one(one.held, from, tile.held, number.bytes.data());
      from = number.bytes.data();
    }
    fill_with(from, place(spread.to), tile.step == 0 ? 1 : program_.tile_elements_,
              tile.element_bytes());
  }

  void start_at(std::int64_t element) {
    const std::vector<Instruction>& instructions = program_.instructions_;
    calls_ = call_room_.take(instructions.size());
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const Instruction& instruction = instructions[i];
      calls_[i].inputs = {};
      for (std::uint32_t k = 0; k < instruction.input_count; ++k) {
        calls_[i].inputs[k] = place(instruction.from[k], element);
      }
      calls_[i].output = place(instruction.to, element);
    }
  }

  /// Makes elements [first, first + n) available: copied to the tile, or in place if contiguous.
  void fill(const Load& load, std::int64_t first, std::int64_t n) {
    const std::byte* const elements = row_or_tile(load, first, n);
    for (const Reader& reader : load.readers) {
      calls_[reader.instruction].inputs[reader.input] = elements;
    }
  }

  [[gnu::always_inline]] const std::byte* row_or_tile(const Load& load, std::int64_t first,
                                                      std::int64_t n) const {
    if (load.period == program_.elements_) return row_or_tile(load, first, n, 0);
    std::int64_t row = first / load.period * load.period;
    const std::byte* elements = row_or_tile(load, first, n, row);
    while ((row += load.period) < first + n) elements = row_or_tile(load, first, n, row);
    return elements;
  }
  /// Likewise, of the row that begins with element `row`. Another row's elements may be there.
  [[gnu::always_inline]] const std::byte* row_or_tile(const Load& load, std::int64_t first,
                                                      std::int64_t n, std::int64_t row) const {
    const std::int64_t element_bytes = size_of(load.dtype);
    std::byte* const tile = place(load.tile);
    for (const Part& part : load.parts) {
      const std::int64_t begin = std::max(first, row + part.begin);
      const std::int64_t end = std::min(first + n, row + part.end);
      if (begin >= end) continue;
      std::byte* const to = tile + (begin - first) * element_bytes;
      if (part.made != none) {
        fill_with(place(program_.address(part.made)), to, end - begin, element_bytes);
        continue;
      }
      if (part.input == none) {
        fill_elements(load.dtype, to, end - begin, part.number);
        continue;
      }
      const std::byte* const from = inputs_[part.input].data + row * element_bytes;
      const std::int64_t skipped = begin - row - part.begin;
      const bool lies_there = end - begin == n && part.from.is_row() && part.from.step() == 1;
      if (lies_there) return from + (part.from.offset() + skipped) * element_bytes;
      part.from.copy(from, to, skipped, end - begin, element_bytes);
    }
    return tile;
  }

  /// A tile is a part of a segment of reductions, or consists of whole segments.
  std::int64_t end_of_tile(std::int64_t first, std::int64_t end) const {
    if (program_.folds_.empty() || cut_.elements <= program_.tile_elements_) return end;
    return cut_.begin(cut_.part(first) + 1);
  }

  /// Reduces the tile of elements [first, first + n).
  void fold(std::size_t index, std::int64_t first, std::int64_t n) const {
    const Fold& fold = program_.folds_[index];
    const FoldKernel& kernel = fold.kernel;
    std::byte* const state = states_ + static_cast<Bytes>(index) * program_.fold_bytes();
    const std::byte* x = place(fold.from, first);
    const std::int64_t element_bytes = program_.slots_[fold.input].element_bytes();
    const Operand& output = outputs_[fold.output];
    if (kernel.rows != nullptr && !is_half(output.dtype())) {
      std::byte* const to = output.data + first / kernel.elements * size_of(output.dtype());
      kernel.rows(tape_.attributes(fold.node), x, n / kernel.elements, kernel.elements, to);
      return;
    }
    for (const std::int64_t end = first + n; first < end;) {
      const std::int64_t part = cut_.part(first);
      const std::int64_t part_end = cut_.begin(part + 1);
      const std::int64_t count = std::min(end, part_end) - first;
      if (first == cut_.begin(part)) kernel.begin(state, part_end - first, kernel.columns);
      kernel.add(state, x, count);
      x += count * element_bytes;
      first += count;
      if (first < part_end) continue;
      if (cut_.segments > 1) {
        const std::int64_t total = static_cast<std::int64_t>(index) * cut_.count + part;
        kernel.end(state, totals_ + total * kernel.total_bytes());
        continue;
      }
      std::byte* const total = state + kernel.state_bytes;
      kernel.end(state, total);
      program_.finish(fold, tape_, total, output, part, state);
    }
  }

  void execute(const Instruction& instruction, const Call& call, std::int64_t n) const {
    if (instruction.joined != nullptr) {
      instruction.joined(call.inputs.data(), instruction.steps.data(), call.output, n);
    } else {
      const auto& [a, b, c, d] = call.inputs;
      const auto& steps = instruction.steps;
      instruction.kernel.run({tape_.attributes(instruction.node),
                              {a, b, c},
                              {steps[0], steps[1], steps[2]},
                              call.output,
                              n});
      if (instruction.round != nullptr) {
        instruction.round(reinterpret_cast<float*>(call.output), n);
      }
    }
  }

  static void move(const Instruction& instruction, Call& call, std::int64_t n) {
    for (std::uint32_t k = 0; k < instruction.input_count; ++k) {
      call.inputs[k] += n * instruction.from[k].move;
    }
    call.output += n * instruction.to.move;
  }

  const FusedKernel& program_;
  const Cut& cut_;
  const Tape& tape_;
  std::span<const Operand> inputs_;
  std::span<const Operand> outputs_;
  std::byte* totals_;
  std::byte* states_;
  Room<std::byte*, 24> base_room_;
  Room<Call, 16> call_room_;
  std::span<std::byte*> bases_;
  std::span<Call> calls_;
};

void FusedKernel::make_numbers(const Tape& tape, std::span<Number> numbers) const {
  // This reads no slots: with many groups they are not in the caches, and each read would wait.
  for (const Given& given : given_) {
    given.write(tape.attributes(given.node), numbers[given.number].bytes.data());
  }
  const auto place = [&](Slot slot) { return numbers[slots_[slot].index].bytes.data(); };
  for (const auto& [kernel, node, output, given] : constants_) {
    const auto& [dtype, held] = std::pair(slots_[output].dtype, slots_[output].held);
    kernel.run({given.empty() ? tape.attributes(node) : given, {}, {}, place(output), 1});
    if (held != dtype) convert_one(dtype, place(output), held, place(output));
  }
}

void FusedKernel::run(const Tape& tape, std::span<const Operand> inputs,
                      std::span<const Operand> outputs, std::span<const Number> numbers,
                      std::span<std::byte> workspace, int threads, const Compiled* compiled) const {
  std::byte* totals = workspace.data();
  const auto shares = workspace.subspan(static_cast<std::size_t>(this->totals()));
  Room<std::byte*, 24> address_room;
  std::span<std::byte*> addresses;
  if (compiled != nullptr) {
    addresses = address_room.take(inputs.size() + outputs.size());
    auto end = std::ranges::transform(inputs, addresses.begin(), &Operand::data).out;
    std::ranges::transform(outputs, end, &Operand::data);
  }
  const auto walk = [&](std::int64_t begin, std::int64_t end, std::byte* scratch) {
    if (compiled == nullptr) {
      Run(*this, tape, inputs, outputs, numbers, totals, scratch).walk(begin, end);
    } else {
      compiled->code(addresses.data(), addresses.data() + inputs.size(), numbers.data(),
                     compiled->table, totals, begin, end);
    }
  };
  if (cut_.count <= cut_.grain) {
    walk(0, elements_, shares.data());
  } else {
    Shares(cut_.count, cut_.grain, share(), threads)
        .run(shares, [&](std::int64_t begin, std::int64_t end, std::byte* scratch) {
          walk(cut_.begin(begin), cut_.begin(end), scratch);
        });
  }
  if (cut_.segments == 1) return;
  for (const Fold& fold : folds_) {
    const Operand& output = outputs[fold.output];
    for (std::int64_t group = 0; group < elements_ / cut_.elements; ++group) {
      finish(fold, tape, totals, output, group, shares.data());
      totals += cut_.segments * fold.kernel.total_bytes();
    }
  }
}

}  // namespace palimpsest
