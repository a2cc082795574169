#include "autodiff/sparse.h"

#include <string>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

void check(const SparsePattern::Lines& rows, std::int64_t columns) {
  const auto entries = static_cast<std::int64_t>(rows.other.size());
  if (rows.lines < 0 || columns < 0 || columns > INT32_MAX || rows.lines > INT32_MAX) {
    throw ArgumentError("[sparse] a matrix cannot have " + std::to_string(rows.lines) +
                        " rows and " + std::to_string(columns) + " columns; give 0 to " +
                        std::to_string(INT32_MAX) + " of each");
  }
  bool rises = static_cast<std::int64_t>(rows.starts.size()) == rows.lines + 1 &&
               rows.starts.front() == 0 && rows.starts.back() == entries;
  for (std::size_t i = 1; rises && i < rows.starts.size(); ++i) {
    rises = rows.starts[i - 1] <= rows.starts[i];
  }
  if (!rises) {
    throw ArgumentError("[sparse] the " + std::to_string(rows.starts.size()) +
                        " row starts must ascend from 0 to the number of entries, " +
                        std::to_string(entries) + ", with one start more than the " +
                        std::to_string(rows.lines) + " rows");
  }
  for (const std::int32_t column : rows.other) {
    if (column >= 0 && column < columns) continue;
    throw ArgumentError("[sparse] an entry is in column " + std::to_string(column) +
                        " of a matrix with " + std::to_string(columns) +
                        " columns; give at least 0 and less than that number");
  }
}

/// The same entries by column. A counting sort, so the entries of a column are ordered by row.
SparsePattern::Lines turned(const SparsePattern::Lines& rows, std::int64_t columns) {
  SparsePattern::Lines result{columns, {}, {}, {}};
  result.starts.resize(static_cast<std::size_t>(columns) + 1);
  result.other.resize(rows.other.size());
  result.entry.resize(rows.other.size());
  for (const std::int32_t column : rows.other)
    ++result.starts[static_cast<std::size_t>(column) + 1];
  for (std::size_t i = 1; i < result.starts.size(); ++i) result.starts[i] += result.starts[i - 1];
  std::vector<std::int64_t> next = result.starts;
  for (std::int64_t row = 0; row < rows.lines; ++row) {
    const auto at = static_cast<std::size_t>(row);
    for (std::int64_t place = rows.starts[at]; place < rows.starts[at + 1]; ++place) {
      const auto column = static_cast<std::size_t>(rows.other[static_cast<std::size_t>(place)]);
      const auto to = static_cast<std::size_t>(next[column]++);
      result.other[to] = static_cast<std::int32_t>(row);
      result.entry[to] = place;
    }
  }
  return result;
}

}  // namespace

SparsePattern::SparsePattern(std::int64_t rows, std::int64_t columns,
                             std::vector<std::int64_t> row_starts,
                             std::vector<std::int32_t> column_of) {
  Lines by_row{rows, std::move(row_starts), std::move(column_of), {}};
  check(by_row, columns);
  Lines by_column = turned(by_row, columns);
  lists_ = std::make_shared<const Lists>(Lists{std::move(by_row), std::move(by_column)});
}

}  // namespace palimpsest
