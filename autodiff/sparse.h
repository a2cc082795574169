#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace palimpsest {

/// Where the entries of a sparse matrix are, row by row: compressed sparse rows without the values.
/// Immutable; a handle whose copies share the lists. Entries of a row may come in any order, and
/// several may lie at one place, where they add up.
class SparsePattern {
 public:
  /// Row i has the entries [row_starts[i], row_starts[i + 1]), in the columns `columns` names.
  /// Throws `ArgumentError` when the starts do not rise from 0 to the number of entries in rows + 1
  /// steps, or a column is outside.
  SparsePattern(std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> row_starts,
                std::vector<std::int32_t> column_of);

  std::int64_t rows() const { return lists_->by_row.lines; }
  std::int64_t columns() const { return lists_->by_column.lines; }
  std::int64_t entries() const { return static_cast<std::int64_t>(lists_->by_row.other.size()); }

  /// The entries along one side of the matrix. Line i has places [starts[i], starts[i + 1]); place
  /// p lies in line `other[p]` of the other side and its value is number `entry[p]`.
  struct Lines {
    std::int64_t lines;
    std::vector<std::int64_t> starts;
    std::vector<std::int32_t> other;
    std::vector<std::int64_t> entry;  ///< empty when it counts 0, 1, 2 …
  };
  const Lines& by_row() const { return lists_->by_row; }
  const Lines& by_column() const { return lists_->by_column; }

  /// True for the pattern made together, and for copies of it.
  bool operator==(const SparsePattern&) const = default;

 private:
  struct Lists {
    Lines by_row;
    Lines by_column;
  };
  std::shared_ptr<const Lists> lists_;
};

}  // namespace palimpsest
