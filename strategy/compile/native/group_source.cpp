#include "strategy/compile/native/group_source.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string_view>

#include "autodiff/operations/piece_fold.h"
#include "strategy/compile/native/copied_load.h"
#include "strategy/compile/native/fold_source.h"
#include "strategy/compile/native/formulas.h"
#include "strategy/compile/native/source_text.h"
#include "strategy/compile/native/stage_source.h"

namespace palimpsest {
namespace {

static_assert(sizeof(PointwiseCall) == 9 * sizeof(std::int64_t), "as in native_prelude.cpp");

constexpr std::int64_t smallest_strip = GroupParts::smallest_strip;
constexpr std::int64_t largest_strip = GroupParts::largest_strip;
constexpr std::uint64_t block_pieces = fold_rows / 4;  // pieces of a reduction in a block of rows
constexpr std::int64_t in_cache = 64 << 10;            // elements whose arrays are mostly in caches
constexpr std::int64_t short_strip_bytes = 2048;       // of the widest elements
constexpr std::int64_t strip_bytes = 24 << 10;         // of all buffers together, inside the cache
constexpr std::size_t most_buffers = 48;               // they lie on the stack
constexpr std::size_t most_summed_directly = 32;  // operations, each of which is written four times
constexpr std::int64_t most_on_stack = 256 << 10;  // bytes

/// Writes the code of a group: stages, and calls of kernels between them, strip by strip.
class Writer {
 public:
  explicit Writer(const GroupParts& parts) : parts_(parts) {
    divide();
    copy_short_loads();
  }

  GroupSource write() {
    GroupSource made;
    const auto has_walk = [&](std::uint32_t slot) { return walk_of(parts_, {slot}).has_value(); };
    if (!std::ranges::all_of(copied_, has_walk)) {
      made.problem = "it reads too many separate ranges";
      return made;
    }
    const auto buffers = std::ranges::count(buffered_, true);
    if (static_cast<std::size_t>(buffers) > most_buffers) {
      made.problem = "it has too many intermediate arrays";
      return made;
    }
    choose_strip();
    if (stack_bytes() > most_on_stack) {
      made.problem = "its intermediate arrays are too large";
      return made;
    }
    std::string body;
    write_scalars(body);
    write_buffers(body);
    if (!write_strips(body)) {
      made.problem = "it reads too many separate ranges";
      return made;
    }
    made.text = functions_ + (parts_.is_small() ? "INLINED " : "") +
                "void @(const char* const* in, char* const* out, const char* numbers, "
                "const void* const* table, char* totals, i64 begin, i64 end_of_all) {\n" +
                load_addresses(parts_) + body + "}\n";
    made.table = std::move(table_);
    return made;
  }

 private:
  using Kind = GroupParts::Value::Kind;
  using Operation = GroupParts::Operation;

  /// A stage, or the call of a kernel.
  struct Item {
    std::optional<Stage> stage;
    std::uint32_t call = none;
  };

  void divide() {
    buffered_.resize(parts_.values.size());
    std::vector<std::size_t> made_in(parts_.values.size());
    const auto is_array = [&](std::uint32_t slot) {
      const Kind kind = parts_.values[slot].kind;
      return kind == Kind::made || kind == Kind::load || kind == Kind::spread;
    };
    const auto keep = [&](std::uint32_t slot) {
      if (!is_array(slot)) return;
      if (parts_.values[slot].kind == Kind::load) {
        copy(slot);
      } else {
        buffered_[slot] = true;
      }
    };
    for (std::uint32_t index = 0; index < parts_.operations.size(); ++index) {
      const Operation& operation = parts_.operations[index];
      if (operation.formula.empty()) {
        items_.push_back({{}, index});
        std::ranges::for_each(operation.inputs, keep);
        keep(operation.output);
      } else {
        if (items_.empty() || !items_.back().stage) items_.push_back({Stage{}});
        items_.back().stage->operations.push_back(index);
        for (const std::uint32_t input : operation.inputs) {
          const bool is_made = parts_.values[input].kind == Kind::made;
          if (is_made && made_in[input] + 1 < items_.size()) keep(input);
        }
      }
      made_in[operation.output] = items_.size() - 1;
    }
    for (const GroupParts::Fold& fold : parts_.folds) keep(fold.input);
  }

  void copy(std::uint32_t slot) {
    if (!buffered_[slot]) copied_.push_back(slot);
    buffered_[slot] = true;
  }

  /// The loads that a stage reads, unless they are copied.
  std::vector<std::uint32_t> direct_loads(const Stage& stage) const {
    std::vector<std::uint32_t> found;
    for (const std::uint32_t index : stage.operations) {
      for (const std::uint32_t slot : parts_.operations[index].inputs) {
        const bool is_direct = parts_.values[slot].kind == Kind::load && !buffered_[slot];
        if (is_direct && std::ranges::find(found, slot) == found.end()) found.push_back(slot);
      }
    }
    return found;
  }

  /// Copies loads of short ranges, and loads whose ranges together are short or too many.
  void copy_short_loads() {
    const auto copy_all = [&](const std::vector<std::uint32_t>& slots) {
      const auto buffers = static_cast<std::size_t>(std::ranges::count(buffered_, true));
      if (buffers + slots.size() > most_buffers) return;
      for (const std::uint32_t slot : slots) copy(slot);
    };
    const auto is_short = [&](std::uint32_t slot) {
      const auto ranges = walk_of(parts_, {slot});
      return ranges && is_better_copied(*ranges, size_of(parts_.values[slot].dtype));
    };
    const auto has_walk = [&](std::uint32_t slot) { return walk_of(parts_, {slot}).has_value(); };
    for (const Item& item : items_) {
      if (!item.stage) continue;
      std::vector<std::uint32_t> short_ones = direct_loads(*item.stage);
      const auto together = walk_of(parts_, short_ones);
      if (together && whole_row(parts_, *together) > 0) continue;
      std::erase_if(short_ones, std::not_fn(is_short));
      copy_all(short_ones);
      const std::vector<std::uint32_t> others = direct_loads(*item.stage);
      if (others.empty() || !std::ranges::all_of(others, has_walk)) continue;
      const auto ranges = walk_of(parts_, others);
      const std::int64_t bytes = size_of(parts_.values[others[0]].dtype);
      if (!ranges || is_better_copied(*ranges, bytes)) copy_all(others);
    }
  }

  bool has_strips() const {
    const auto is_call = [](const Item& item) { return !item.stage; };
    return !parts_.folds.empty() || std::ranges::any_of(items_, is_call) ||
           std::ranges::find(buffered_, true) != buffered_.end();
  }

  /// Bytes of all buffers, for one element.
  std::int64_t buffered_bytes() const {
    std::int64_t bytes = 0;
    for (std::size_t slot = 0; slot < buffered_.size(); ++slot) {
      if (buffered_[slot]) bytes += size_of(parts_.values[slot].dtype);
    }
    return bytes;
  }

  std::int64_t stack_bytes() const {
    std::int64_t bytes = strip_ * buffered_bytes();
    for (const std::uint32_t slot : copied_) {
      const CopiedLoad copy(parts_, slot, strip_, is_whole_);
      bytes += (copy.room() - strip_) * size_of(parts_.values[slot].dtype);
    }
    for (const GroupParts::Fold& fold : parts_.folds) {
      bytes += fold.kernel.state_bytes + fold.kernel.total_bytes();
    }
    return bytes;
  }

  /// For arrays in main memory. The processor computes a strip while it still stores the one
  /// before.
  std::int64_t short_strip() const {
    return std::clamp(short_strip_bytes / parts_.widest_bytes(), smallest_strip, largest_strip);
  }

  void choose_strip() {
    const std::int64_t bytes = buffered_bytes();
    const bool is_short = parts_.elements > in_cache && !is_stage_of_sums();
    const bool fits_row = !parts_.folds.empty() && parts_.reduced_elements <= largest_strip;
    const std::int64_t row = fits_row ? parts_.reduced_elements : 0;
    strip_ = is_short ? std::max(short_strip(), row) : largest_strip;
    while (strip_ > smallest_strip && strip_ * bytes > strip_bytes) strip_ /= 2;
    const bool fits =
        parts_.elements <= largest_strip && parts_.elements * bytes <= 2 * strip_bytes;
    if (parts_.is_one_call && fits) strip_ = parts_.elements;
    if (!parts_.folds.empty() && parts_.reduced_elements <= strip_) {
      strip_ = strip_ / parts_.reduced_elements * parts_.reduced_elements;
    } else if (!parts_.folds.empty()) {
      // So many pieces that blocks of rows consist of whole strips. One piece may be larger than
      // other strips: four rows of up to 2,048 columns.
      const std::int64_t piece = parts_.folds[0].kernel.piece;
      const auto pieces = static_cast<std::uint64_t>(std::max<std::int64_t>(strip_ / piece, 1));
      strip_ = piece * static_cast<std::int64_t>(std::min(std::bit_floor(pieces), block_pieces));
    }
    is_whole_ = parts_.is_one_call && (!has_strips() || parts_.elements <= strip_);
  }

  std::string type_of(std::uint32_t slot) const {
    return std::string(c_type(parts_.values[slot].dtype));
  }

  void write_scalars(std::string& to) const {
    for (std::uint32_t slot = 0; slot < parts_.values.size(); ++slot) {
      const GroupParts::Value& value = parts_.values[slot];
      const bool is_number = value.kind == Kind::number;
      if (!is_number && value.kind != Kind::repeated) continue;
      const auto literal = std::ranges::find(parts_.literals, slot, &GroupParts::Literal::slot);
      to += "  const " + type_of(slot) + " " + GroupParts::name(slot) + " = " +
            (literal != parts_.literals.end() ? element_literal(literal->value, value.dtype)
                                              : "*" + scalar_address(slot)) +
            ";\n";
    }
  }

  std::string scalar_address(std::uint32_t slot) const {
    const GroupParts::Value& value = parts_.values[slot];
    if (value.kind == Kind::number) {
      return "(const " + type_of(slot) + "*)(numbers + " + text_of(value.index * 8) + ")";
    }
    return "(" + input_address(value.index, value.dtype) + " + " + text_of(value.offset) + ")";
  }

  void write_buffers(std::string& to) const {
    for (std::uint32_t slot = 0; slot < buffered_.size(); ++slot) {
      if (!buffered_[slot] || parts_.values[slot].kind == Kind::load) continue;
      const std::string name = "t" + GroupParts::name(slot);
      to += "  _Alignas(64) " + type_of(slot) + " " + name + "[" + text_of(strip_) + "];\n";
      const GroupParts::Value& value = parts_.values[slot];
      if (value.kind != Kind::spread) continue;
      to += "  for (i64 i = 0; i < " + text_of(strip_) + "; ++i) " + name +
            "[i] = " + GroupParts::name(value.index) + ";\n";
    }
  }

  bool write_strips(std::string& to) {
    if (!has_strips()) {
      if (!is_whole_) to += "  const i64 first = begin, end = end_of_all;\n";
      return write_items(to);
    }
    std::vector<CopiedLoad> copies;
    for (const std::uint32_t slot : copied_) {
      copies.emplace_back(parts_, slot, strip_, is_whole_);
      to += copies.back().before_strips();
    }
    std::vector<FoldSource> folds = this->folds();
    for (const FoldSource& fold : folds) to += fold.declarations();
    if (is_whole_) {
      to += "  const i64 first = 0, end = " + text_of(parts_.elements) + ";\n";
    } else {
      to += "  for (i64 first = begin, end; first < end_of_all; first = end) {\n";
      to += "  end = smallest(first + " + text_of(strip_) + ", end_of_all);\n";
      if (is_long_row()) {
        const std::string result = text_of(parts_.reduced_elements);
        const std::string segment = text_of(parts_.segment);
        to += "  const i64 result = first / " + result + ", inside = first % " + result + ";\n";
        to += "  const i64 begin_of_part = result * " + result + " + inside / " + segment + " * " +
              segment + ";\n";
        to += "  const i64 end_of_part = smallest(begin_of_part + " + segment +
              ", (result + 1) * " + result + ");\n";
        to += "  const i64 part = result * " + text_of(parts_.segments) + " + inside / " + segment +
              ";\n";
        to += "  end = smallest(end, end_of_part);\n";
      }
    }
    for (const CopiedLoad& copy : copies) to += copy.in_strip();
    if (sums_directly()) {
      write_direct_sums(folds, to);
    } else {
      if (!write_items(to)) return false;
      for (std::size_t i = 0; i < folds.size(); ++i) write_fold(folds[i], i, to);
    }
    if (!is_whole_) to += "  }\n";
    return true;
  }

  /// True if long sums are added as they are computed.
  bool sums_directly() const { return is_long_row() && is_stage_of_sums(); }

  /// True if one stage makes all that sums add, from operands in their own places.
  bool is_stage_of_sums() const {
    if (parts_.folds.empty() || items_.size() != 1 || !items_[0].stage) return false;
    const Stage& stage = *items_[0].stage;
    return stage.operations.size() <= most_summed_directly && copied_.empty() &&
           direct_loads(stage).empty() &&
           std::ranges::all_of(parts_.folds, &GroupParts::Fold::is_sum);
  }

  /// Full strips are added to the sums as they are computed, the rest from buffers.
  void write_direct_sums(std::vector<FoldSource>& folds, std::string& to) {
    StageSource stage(parts_, *items_[0].stage, 0, buffered_);
    std::vector<StageSource::Sum> sums;
    for (std::size_t i = 0; i < folds.size(); ++i) {
      sums.push_back({parts_.folds[i].input, folds[i].name()});
    }
    to += "  if (first == begin_of_part) {\n";
    for (FoldSource& fold : folds) to += "    " + fold.begin_segment();
    to += "  }\n  if (end - first == " + text_of(strip_) + ") {\n";
    stage.write_sums(sums, strip_, parts_.folds[0].kernel.piece / 4, to);
    to += "  } else {\n";
    stage.write_calls(false, to);
    for (std::size_t i = 0; i < folds.size(); ++i) {
      to += "    " + folds[i].add(address(parts_.folds[i].input));
    }
    to += "  }\n";
    functions_ += stage.functions();
    for (FoldSource& fold : folds) to += fold.end_segment();
  }

  void write_fold(FoldSource& fold, std::size_t index, std::string& to) {
    const std::string x = address(parts_.folds[index].input);
    if (!is_long_row()) {
      to += fold.whole_results(x);
      return;
    }
    to += "  if (first == begin_of_part) {\n    " + fold.begin_segment() + "  }\n  " + fold.add(x) +
          fold.end_segment();
  }

  bool write_items(std::string& to) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (!items_[i].stage) {
        write_call(parts_.operations[items_[i].call], to);
        continue;
      }
      StageSource stage(parts_, *items_[i].stage, i, buffered_);
      if (!stage.write_calls(is_whole_, to)) return false;
      functions_ += stage.functions();
    }
    return true;
  }

  /// The address of an operand of a kernel in the current strip.
  std::string address(std::uint32_t slot) const {
    const GroupParts::Value& value = parts_.values[slot];
    const std::string first = is_whole_ ? "" : " + first";
    switch (value.kind) {
      case Kind::number:
      case Kind::repeated:
        return scalar_address(slot);
      case Kind::input:
        return input_address(value.index, value.dtype) + " + " + text_of(value.offset) + first;
      case Kind::output:
        return output_address(value.index, value.dtype) + first;
      default:
        return "t" + GroupParts::name(slot);
    }
  }

  std::size_t add_address(const void* address) {
    table_.push_back({address, none});
    return table_.size() - 1;
  }
  std::size_t add_attributes(NodeId node) {
    table_.push_back({nullptr, node});
    return table_.size() - 1;
  }

  void write_call(const Operation& operation, std::string& to) {
    const std::size_t kernel = add_address(reinterpret_cast<const void*>(operation.kernel));
    const std::size_t attributes = add_attributes(operation.node);
    std::string inputs;
    std::string steps;
    for (std::size_t i = 0; i < 3; ++i) {
      const bool is_there = i < operation.inputs.size();
      inputs += (i > 0 ? ", " : "") + (is_there ? address(operation.inputs[i]) : "0");
      steps += (i > 0 ? ", " : "") + (is_there ? text_of(operation.steps[i]) : "0");
    }
    to += "  {\n    const pointwise_call call = {table[" + std::to_string(attributes) + "], {" +
          inputs + "}, {" + steps + "}, " + address(operation.output) + ", end - first};\n";
    to += "    ((pointwise_kernel)table[" + std::to_string(kernel) + "])(&call);\n  }\n";
  }

  /// True if more elements are reduced together than a strip has.
  bool is_long_row() const { return !parts_.folds.empty() && parts_.reduced_elements > strip_; }

  std::vector<FoldSource> folds() {
    std::vector<FoldSource> made;
    for (std::size_t i = 0; i < parts_.folds.size(); ++i) made.emplace_back(parts_, i, table_);
    return made;
  }

  const GroupParts& parts_;
  std::vector<Item> items_;
  std::vector<bool> buffered_;         // by slot
  std::vector<std::uint32_t> copied_;  // slots of loads that are copied to buffers
  std::int64_t strip_ = 0;             // elements
  bool is_whole_ = false;              // all elements in one call and one strip
  std::string functions_;
  std::vector<GroupSource::Entry> table_;
};

}  // namespace

GroupSource group_source(const FusedKernel& kernel, const Tape& tape, bool literals) {
  const GroupParts parts(kernel, tape, literals);
  GroupSource made;
  made.problem = parts.problem;
  if (made.problem.empty()) made = Writer(parts).write();
  for (const GroupParts::Literal& literal : parts.literals) {
    made.literals.push_back({parts.values[literal.slot].index, literal.number});
  }
  return made;
}

}  // namespace palimpsest
