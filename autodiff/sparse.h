#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The positions of a sparse matrix's entries, in compressed sparse row (CSR) form without values.
/// An immutable handle; copies share the arrays. Entries of a row may be in any order. Duplicate
/// positions are allowed; their values add up.
class SparsePattern {
 public:
  /// Row i has the entries [row_starts[i], row_starts[i + 1]); `column_of` gives the column of each
  /// entry. Throws `ArgumentError` when a column is out of range, or when the rows + 1 starts do
  /// not rise from 0 to the number of entries.
  SparsePattern(std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> row_starts,
                std::vector<std::int32_t> column_of);

  /// The sizes of the matrix, and the number of its entries.
  std::int64_t rows() const { return lists_->by_row.lines; }
  std::int64_t columns() const { return lists_->by_column.lines; }
  std::int64_t entries() const { return static_cast<std::int64_t>(lists_->by_row.other.size()); }

  /// The entries along one side of the matrix. Line i has places [starts[i], starts[i + 1]). Place
  /// p is in line `other[p]` of the other side, and its value is number `entry[p]`.
  struct Lines {
    std::int64_t lines;
    std::vector<std::int64_t> starts;
    std::vector<std::int32_t> other;
    std::vector<std::int64_t> entry;  ///< empty if it is 0, 1, 2 …
  };
  /// The entries row by row, and column by column.
  const Lines& by_row() const { return lists_->by_row; }
  const Lines& by_column() const { return lists_->by_column; }

  /// True for copies of the same pattern. Patterns constructed separately are never equal.
  bool operator==(const SparsePattern&) const = default;
  /// Identifies the pattern in all processes.
  const Lines& described() const { return by_row(); }

 private:
  struct Lists {
    Lines by_row;
    Lines by_column;
  };
  std::shared_ptr<const Lists> lists_;
};

}  // namespace palimpsest
