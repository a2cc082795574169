#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace palimpsest {

/// How memory stores an element of a column.
struct StoredElement {
  /// Unsigned integers that tensors lack become the next wider integers.
  enum class As : std::uint8_t {
    itself,  ///< the dtype of the column
    u16,     ///< i32 in the column
    u32,     ///< i64 in the column
    u64,     ///< i64 in the column; a number that this cannot hold is an error
  };

  As as = As::itself;
  bool is_swapped = false;  ///< with its bytes in reverse order
};

/// A column whose rows are in memory, at any alignment.
struct StoredColumn {
  DatasetColumn column;
  Buffer memory;  ///< keeps the rows in memory
  const std::byte* first = nullptr;
  StoredElement element = {};
  /// 0 if the rows are one after another. Otherwise the memory has so many rows in Fortran order:
  /// the first elements of all rows, then the next ones.
  std::int64_t fortran_rows = 0;
  /// For a mapped file: `[operation] path`, with which errors begin, and the byte of the first row.
  std::string file = {};
  std::int64_t offset = 0;
};

/// Bytes of an element of the column in memory.
Bytes stored_element_bytes(const StoredColumn& column);

/// Writes the elements of a row to `to`. If an element of a file's bool column is neither 0 nor 1,
/// or a u64 does not fit, throws `FileError`.
void copy_row(const StoredColumn& column, std::int64_t row, std::byte* to);

/// A dataset that copies its rows from memory, as `copy_row` does.
Dataset stored_dataset(std::int64_t size, std::vector<StoredColumn> columns);

/// The type of one example of an array in a file. Refuses a scalar, examples without elements, and
/// sizes that no memory holds.
/// `place` is the byte that states the sizes.
ValueType example_in_file(const std::string& file, const ValueType& array, std::int64_t place);

/// Refuses a file whose bytes from `column.offset` on are not those of `elements` elements.
void require_stored_bytes(const StoredColumn& column, std::int64_t elements, Bytes file_bytes,
                          std::int64_t place);

/// The dataset of a file with one array, whose elements fill the rest of the file. `column` has all
/// except the type of an example.
Dataset mapped_array(StoredColumn column, const ValueType& array, Bytes file_bytes,
                     std::int64_t place);

/// Throws `FileError` for a byte of a file. `step` says what to do.
[[noreturn]] void refuse_file(const std::string& file, std::int64_t offset,
                              const std::string& problem,
                              const std::string& step = "write the file again");

}  // namespace palimpsest
