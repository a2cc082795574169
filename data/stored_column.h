#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace palimpsest {

/// How memory stores an element of a column.
enum class StoredAs : std::uint8_t {
  plain,    ///< as in tensors
  swapped,  ///< with its bytes in reverse order
  u16,      ///< made i32
};

/// A column whose rows are one after another in memory, at any alignment.
struct StoredColumn {
  DatasetColumn column;
  Buffer memory;  ///< keeps the rows in memory
  const std::byte* first = nullptr;
  StoredAs stored_as = StoredAs::plain;
  /// For a mapped file: `[operation] path`, with which errors begin, and the byte of the first row.
  std::string file = {};
  std::int64_t offset = 0;
};

/// A dataset that copies its rows from memory. If a copied element of a bool column is neither 0
/// nor 1, `rows` throws `FileError`.
Dataset stored_dataset(std::int64_t size, std::vector<StoredColumn> columns);

/// The type of one example of an array in a file. Refuses a scalar, examples without elements, and
/// sizes that no memory holds.
/// `place` is the byte that states the sizes.
ValueType example_in_file(const std::string& file, const ValueType& array, std::int64_t place);

/// The dataset of a file with one array, whose elements fill the rest of the file. `column` has all
/// except the type of an example.
Dataset mapped_array(StoredColumn column, const ValueType& array, Bytes file_bytes,
                     std::int64_t place);

/// Throws `FileError` for a byte of a file. `step` says what to do.
[[noreturn]] void refuse_file(const std::string& file, std::int64_t offset,
                              const std::string& problem,
                              const std::string& step = "write the file again");

}  // namespace palimpsest
