#include <algorithm>

#include "autodiff/execute.h"
#include "autodiff/kernels/shares.h"
#include "strategy/fusion/tile_program.h"

namespace palimpsest {
namespace {

void fill_elements(DType dtype, std::byte* to, std::int64_t n, double number) {
  visit(dtype,
        [&]<class T>(T) { std::fill_n(reinterpret_cast<T*>(to), n, convert_element<T>(number)); });
}

}  // namespace

/// One thread that walks a stretch of tiles: where its instructions read and write.
class TileProgram::Run {
 public:
  Run(const TileProgram& program, const Tape& tape, std::span<const Operand> inputs,
      std::span<const Operand> outputs, std::byte* totals, std::byte* scratch)
      : program_(program),
        cut_(program.cut_),
        tape_(tape),
        inputs_(inputs),
        outputs_(outputs),
        totals_(totals),
        scratch_(scratch),
        tiles_(scratch + program.numbers_ * number_bytes),
        tile_bytes_(program.tile_bytes()),
        states_(tiles_ + program.tiles_ * tile_bytes_) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void walk(std::int64_t begin, std::int64_t end) {
    make_numbers(std::min(program_.tile_elements_, end - begin));
    start_at(begin);
    for (std::int64_t first = begin, n = 0; first < end; first += n) {
      n = std::min(program_.tile_elements_, end_of_tile(first, end) - first);
      for (const Load& load : program_.loads_) fill(load, first, n);
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        execute(program_.instructions_[i], calls_[i], n);
      }
      for (std::size_t i = 0; i < program_.folds_.size(); ++i) fold(i, first, n);
    }
  }

 private:
  /// Where an instruction reads and writes in the tile that is next.
  struct Call {
    std::array<const std::byte*, 3> inputs;
    std::byte* output;
  };

  /// Where the first element of a slot lies.
  std::byte* place(Slot slot) const {
    const SlotInfo& info = program_.slots_[slot];
    switch (info.place) {
      case Place::input:
        return inputs_[info.index].data + info.offset * info.element_bytes;
      case Place::output:
        return outputs_[info.index].data;
      case Place::number:
        return scratch_ + info.index * number_bytes;
      case Place::tile:
        break;
    }
    return tiles_ + info.index * tile_bytes_;
  }

  void make_numbers(std::int64_t tile) const {
    for (const Given& given : program_.given_) {
      given.write(tape_.attributes(given.node), place(given.slot));
    }
    for (const auto& [kernel, node, output, given] : program_.constants_) {
      const Attributes& attributes = given.empty() ? tape_.attributes(node) : given;
      kernel.run({attributes, {}, {}, place(output), 1});
    }
    for (const auto& [number, spread] : program_.spread_) {
      Gather(Shape{tile}, {})
          .copy(place(number), place(spread), 0, tile, program_.slots_[number].element_bytes);
    }
  }

  void start_at(std::int64_t element) {
    const std::size_t count = program_.instructions_.size();
    if (count > few_.size()) many_.resize(count);
    calls_ = {count > few_.size() ? many_.data() : few_.data(), count};
    for (std::size_t i = 0; i < count; ++i) {
      const Instruction& instruction = program_.instructions_[i];
      calls_[i].inputs = {};
      for (std::uint32_t k = 0; k < instruction.input_count; ++k) {
        calls_[i].inputs[k] = place(instruction.inputs[k]) + element * instruction.moves[k];
      }
      calls_[i].output = place(instruction.output) + element * instruction.output_move;
    }
  }

  /// Makes the slot hold elements [first, first + n): in the tile, or where they lie in a row.
  void fill(const Load& load, std::int64_t first, std::int64_t n) {
    const std::byte* const elements = row_or_tile(load, first, n);
    for (const Reader& reader : load.readers) {
      calls_[reader.instruction].inputs[reader.input] = elements;
    }
  }

  const std::byte* row_or_tile(const Load& load, std::int64_t first, std::int64_t n) const {
    const std::int64_t element_bytes = program_.slots_[load.slot].element_bytes;
    std::byte* const tile = place(load.slot);
    for (const Part& part : load.parts) {
      const std::int64_t begin = std::max(first, part.begin);
      const std::int64_t end = std::min(first + n, part.end);
      if (begin >= end) continue;
      std::byte* const to = tile + (begin - first) * element_bytes;
      if (part.input == none) {
        fill_elements(load.dtype, to, end - begin, part.number);
        continue;
      }
      const std::byte* const from = inputs_[part.input].data;
      const bool lies_there = end - begin == n && part.from.is_row() && part.from.step() == 1;
      if (lies_there) return from + (part.from.offset() + begin - part.begin) * element_bytes;
      part.from.copy(from, to, begin - part.begin, end - begin, element_bytes);
    }
    return tile;
  }

  /// Tiles are parts of a segment of reductions, or made of whole ones.
  std::int64_t end_of_tile(std::int64_t first, std::int64_t end) const {
    if (program_.folds_.empty() || cut_.elements <= program_.tile_elements_) return end;
    return cut_.begin(cut_.part(first) + 1);
  }

  /// Folds what the tile of elements [first, first + n) holds.
  void fold(std::size_t index, std::int64_t first, std::int64_t n) const {
    const Fold& fold = program_.folds_[index];
    const FoldKernel& kernel = fold.kernel;
    std::byte* const state = states_ + static_cast<std::int64_t>(index) * FoldKernel::state_bytes;
    const std::byte* x = place(fold.input) + first * fold.move;
    const std::int64_t element_bytes = program_.slots_[fold.input].element_bytes;
    for (const std::int64_t end = first + n; first < end;) {
      const std::int64_t part = cut_.part(first);
      const std::int64_t part_end = cut_.begin(part + 1);
      const std::int64_t count = std::min(end, part_end) - first;
      if (first == cut_.begin(part)) kernel.begin(state, part_end - first);
      kernel.add(state, x, count);
      x += count * element_bytes;
      first += count;
      if (first < part_end) continue;
      if (cut_.segments > 1) {
        const std::int64_t total = static_cast<std::int64_t>(index) * cut_.count + part;
        kernel.end(state, totals_ + total * FoldKernel::total_bytes);
        continue;
      }
      alignas(FoldKernel::total_bytes) std::byte total[FoldKernel::total_bytes];
      const Operand& output = outputs_[fold.output];
      kernel.end(state, total);
      kernel.finish(tape_.attributes(fold.node), total, 1,
                    output.data + part * size_of(output.dtype()));
    }
  }

  void execute(const Instruction& instruction, Call& call, std::int64_t n) const {
    if (instruction.pair != nullptr) {
      instruction.pair(call.inputs.data(), instruction.steps.data(), call.output, n);
    } else {
      instruction.kernel.run(
          {tape_.attributes(instruction.node), call.inputs, instruction.steps, call.output, n});
    }
    for (std::size_t k = 0; k < call.inputs.size(); ++k) call.inputs[k] += n * instruction.moves[k];
    call.output += n * instruction.output_move;
  }

  const TileProgram& program_;
  const Cut& cut_;
  const Tape& tape_;
  std::span<const Operand> inputs_;
  std::span<const Operand> outputs_;
  std::byte* totals_;
  std::byte* scratch_;
  std::byte* tiles_;
  std::int64_t tile_bytes_;
  std::byte* states_;
  std::array<Call, 32> few_;  // without allocating
  std::vector<Call> many_;
  std::span<Call> calls_;
};

void TileProgram::run(const Tape& tape, std::span<const Operand> inputs,
                      std::span<const Operand> outputs, std::span<std::byte> workspace,
                      int threads) const {
  std::byte* totals = workspace.data();
  Shares(cut_.count, cut_.grain, share(), threads)
      .run(workspace.subspan(static_cast<std::size_t>(this->totals())), [&](std::int64_t begin,
                                                                            std::int64_t end,
                                                                            std::byte* scratch) {
        Run(*this, tape, inputs, outputs, totals, scratch).walk(cut_.begin(begin), cut_.begin(end));
      });
  if (cut_.segments == 1) return;
  for (const Fold& fold : folds_) {
    const Operand& output = outputs[fold.output];
    for (std::int64_t result = 0; result < output.elements(); ++result) {
      fold.kernel.finish(tape.attributes(fold.node), totals, cut_.segments,
                         output.data + result * size_of(output.dtype()));
      totals += cut_.segments * FoldKernel::total_bytes;
    }
  }
}

}  // namespace palimpsest
