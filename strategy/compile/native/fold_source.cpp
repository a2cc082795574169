#include "strategy/compile/native/fold_source.h"

#include "autodiff/operations/piece_fold.h"
#include "strategy/compile/native/formulas.h"
#include "strategy/compile/native/source_text.h"

namespace palimpsest {
namespace {

/// Sums of rows of so few elements are loops over the rows.
constexpr std::int64_t most_in_expression = 7;

/// The sum of elements x[0], x[1] and so on of a short row, in the order of `PieceFold`.
std::string sum_of_row(std::int64_t row, const std::string& total_type) {
  const auto element = [](std::int64_t i) { return "x[" + text_of(i) + "]"; };
  const std::int64_t lanes = row / 2;
  std::vector<std::string> sums;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    sums.push_back("(" + element(lane) + " + " + element(lanes + lane) + ")");
  }
  if (row == 3) sums[0] = "(" + sums[0] + " + x[2])";
  while (sums.size() > 1) {
    const std::size_t half = (sums.size() + 1) / 2;
    for (std::size_t lane = 0; lane < sums.size() - half; ++lane) {
      sums[lane] = "(" + sums[lane] + " + " + sums[half + lane] + ")";
    }
    sums.resize(half);
  }
  const std::string total = "(" + total_type + ")0 + (" + total_type + ")" + sums[0];
  const bool has_rest = row % 2 != 0 && lanes > 1;
  return has_rest ? total + " + (" + total_type + ")" + element(2 * lanes) : total;
}

}  // namespace

FoldSource::FoldSource(const GroupParts& parts, std::size_t index,
                       std::vector<GroupSource::Entry>& table)
    : parts_(parts),
      fold_(parts.folds[index]),
      kernel_(fold_.kernel),
      index_(index),
      table_(table),
      name_("f" + std::to_string(index)),
      type_(c_type(parts.values[fold_.input].dtype)) {}

std::string FoldSource::declarations() const {
  if (kernel_.rows != nullptr) return {};
  if (fold_.is_sum) {
    return "  SUM(" + type_ + ", " + name_ + ", " + text_of(kernel_.columns) + ", " +
           text_of(most_lanes(kernel_.columns)) + ");\n";
  }
  return "  _Alignas(64) char " + name_ + "[" + text_of(kernel_.state_bytes) +
         "];\n  _Alignas(8) char " + name_ + "t[" + text_of(kernel_.total_bytes()) + "];\n";
}

std::string FoldSource::whole_results(const std::string& x) {
  if (kernel_.rows != nullptr) return rows(x);
  const std::string row = text_of(kernel_.elements);
  std::string text = "  for (i64 row = 0; row < end - first; row += " + row + ") {\n    ";
  if (fold_.is_sum && kernel_.columns == 1) {
    text += name_ + "t[0] = sum_of_" + type_ + "(" + x + " + row, " + row + ");\n    ";
  } else {
    text += begin(row) + "    " + add(x + " + row", row) + "    " + end() + "    ";
  }
  return text + finish("(first + row) / " + row) + "  }\n";
}

std::string FoldSource::rows(const std::string& x) {
  const std::string length = text_of(kernel_.elements);
  const std::string to =
      "(" + output_address(fold_.output, fold_.result) + " + first / " + length + ")";
  if (fold_.returns_total && kernel_.elements <= most_in_expression) {
    return "  INDEPENDENT for (i64 i = 0; i < (end - first) / " + length + "; ++i) {\n    const " +
           type_ + "* const x = " + x + " + i * " + length + ";\n    " + to + "[i] = (" + type_ +
           ")(" + sum_of_row(kernel_.elements, "total_" + type_) + ");\n  }\n";
  }
  const std::string kernel = address(reinterpret_cast<const void*>(kernel_.rows));
  return "  ((fold_rows)" + kernel + ")(" + attributes() + ", (const char*)(" + x +
         "), (end - first) / " + length + ", " + length + ", (char*)" + to + ");\n";
}

std::string FoldSource::begin_segment() { return begin("end_of_part - begin_of_part"); }
std::string FoldSource::add(const std::string& x) { return add(x, "end - first"); }

std::string FoldSource::end_segment() {
  const std::string complete = "  if (end == end_of_part) {\n    " + end() + "    ";
  if (parts_.segments == 1) return complete + finish("result") + "  }\n";
  const std::int64_t count = parts_.elements / parts_.reduced_elements * parts_.segments;
  return complete + "__builtin_memcpy(totals + (" +
         text_of(static_cast<std::int64_t>(index_) * count) + " + part) * " +
         text_of(kernel_.total_bytes()) + ", " + name_ + "t, sizeof " + name_ + "t);\n  }\n";
}

/// Begins to reduce so many elements.
std::string FoldSource::begin(const std::string& elements) {
  if (fold_.is_sum) return "begin_" + type_ + "(&" + name_ + ", " + elements + ");\n";
  return "((fold_begin)" + address(reinterpret_cast<const void*>(kernel_.begin)) + ")(" + name_ +
         ", " + elements + ", " + text_of(kernel_.columns) + ");\n";
}

std::string FoldSource::add(const std::string& x, const std::string& count) {
  if (fold_.is_sum) return "add_" + type_ + "(&" + name_ + ", " + x + ", " + count + ");\n";
  return "((fold_add)" + address(reinterpret_cast<const void*>(kernel_.add)) + ")(" + name_ +
         ", (const char*)(" + x + "), " + count + ");\n";
}

/// Completes the totals, which are then in an array of the state's name and `t`.
std::string FoldSource::end() {
  if (fold_.is_sum) return "join_" + type_ + "(&" + name_ + ");\n";
  return "((fold_end)" + address(reinterpret_cast<const void*>(kernel_.end)) + ")(" + name_ + ", " +
         name_ + "t);\n";
}

/// Makes results of their only totals; `group` is the number of the elements reduced together.
std::string FoldSource::finish(const std::string& group) {
  const std::string columns = text_of(kernel_.columns);
  const std::string to =
      output_address(fold_.output, fold_.result) + " + (" + group + ") * " + columns;
  if (fold_.returns_total) {
    return "for (i64 i = 0; i < " + columns + "; ++i) (" + to + ")[i] = (" + type_ + ")" + name_ +
           "t[i];\n";
  }
  const std::string kernel = address(reinterpret_cast<const void*>(kernel_.finish));
  return "((fold_finish)" + kernel + ")(" + attributes() + ", (char*)" + name_ + "t, 1, " +
         columns + ", (char*)(" + to + "));\n";
}

std::string FoldSource::address(const void* function) {
  table_.push_back({function, none});
  return "table[" + std::to_string(table_.size() - 1) + "]";
}

std::string FoldSource::attributes() {
  table_.push_back({nullptr, fold_.node});
  return "table[" + std::to_string(table_.size() - 1) + "]";
}

}  // namespace palimpsest
