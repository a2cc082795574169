#include "data/stored_column.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace palimpsest {
namespace {

Bytes element_bytes(const StoredColumn& column) {
  if (column.stored_as == StoredAs::u16) return sizeof(std::uint16_t);
  return size_of(column.column.example.dtype);
}

/// Copies n elements of `width` bytes, each with its bytes reversed.
void copy_swapped(const std::byte* from, std::byte* to, std::int64_t n, std::int64_t width) {
  for (std::int64_t i = 0; i < n; ++i, from += width, to += width) {
    std::reverse_copy(from, from + width, to);
  }
}

/// Copies n u16, which may not be aligned, as i32.
void copy_widened(const std::byte* from, std::byte* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint16_t narrow = 0;
    std::memcpy(&narrow, from + i * static_cast<std::int64_t>(sizeof(narrow)), sizeof(narrow));
    const std::int32_t wide = narrow;
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof(wide)), &wide, sizeof(wide));
  }
}

/// Copies the n elements of a row.
void copy_elements(const StoredColumn& column, const std::byte* from, std::byte* to,
                   std::int64_t n) {
  switch (column.stored_as) {
    case StoredAs::plain:
      std::memcpy(to, from, static_cast<std::size_t>(n * element_bytes(column)));
      break;
    case StoredAs::swapped:
      copy_swapped(from, to, n, element_bytes(column));
      break;
    case StoredAs::u16:
      copy_widened(from, to, n);
      break;
  }
}

/// Checks a row of bools that was copied to `row`, from byte `offset` of the file.
void check_copied_bools(const StoredColumn& column, std::span<const std::byte> row,
                        std::int64_t offset) {
  const auto wrong = std::ranges::find_if(row, [](std::byte b) { return b > std::byte{1}; });
  if (wrong == row.end()) return;
  refuse_file(column.file, offset + (wrong - row.begin()), "a bool is neither 0 nor 1");
}

/// Bytes of one row in memory.
Bytes stored_row_bytes(const StoredColumn& column) {
  return column.column.example.shape.elements() * element_bytes(column);
}

Tensor copied_rows(const StoredColumn& column, std::span<const std::int64_t> indices) {
  Shape shape = column.column.example.shape;
  const std::int64_t n = shape.elements();
  shape.insert(0, std::ssize(indices));
  Tensor rows(shape, column.column.example.dtype);
  const Bytes stride = stored_row_bytes(column);
  const Bytes row_bytes = column.column.example.bytes();
  const bool has_bools = rows.dtype() == DType::boolean && !column.file.empty();
  std::byte* to = rows.raw();
  for (const std::int64_t index : indices) {
    if (n == 0) break;
    copy_elements(column, column.first + index * stride, to, n);
    if (has_bools) {
      const std::span row(to, static_cast<std::size_t>(row_bytes));
      check_copied_bools(column, row, column.offset + index * stride);
    }
    to += row_bytes;
  }
  return rows;
}

}  // namespace

Dataset stored_dataset(std::int64_t size, std::vector<StoredColumn> columns) {
  std::vector<DatasetColumn> types;
  for (const StoredColumn& column : columns) types.push_back(column.column);
  const auto rows = [stored = std::move(columns)](std::span<const std::int64_t> indices) {
    std::vector<Tensor> tensors;
    for (const StoredColumn& column : stored) tensors.push_back(copied_rows(column, indices));
    return tensors;
  };
  return {size, std::move(types), rows};
}

ValueType example_in_file(const std::string& file, const ValueType& array, std::int64_t place) {
  if (array.shape.rank() == 0) {
    refuse_file(file, place, "the array is a scalar", "give it an axis of examples");
  }
  ValueType example = array;
  example.shape.erase(0);
  if (!array.shape.is_possible() || !example.shape.is_possible()) {
    refuse_file(file, place,
                "shape " + to_string(array.shape) + " has more elements than any memory can hold");
  }
  // Otherwise a small file could have so many examples that their order takes much memory.
  if (array.shape[0] > 0 && example.shape.elements() == 0) {
    refuse_file(file, place, "examples of shape " + to_string(example.shape) + " have no elements",
                "give them axes of positive sizes");
  }
  return example;
}

Dataset mapped_array(StoredColumn column, const ValueType& array, Bytes file_bytes,
                     std::int64_t place) {
  column.column.example = example_in_file(column.file, array, place);
  const std::int64_t size = array.shape[0];
  const Bytes data = size * stored_row_bytes(column);
  if (data != file_bytes - column.offset) {
    refuse_file(column.file, place,
                std::to_string(array.shape.elements()) + " elements take " + std::to_string(data) +
                    " bytes, but the file has " + std::to_string(file_bytes - column.offset) +
                    " for them");
  }
  return stored_dataset(size, {std::move(column)});
}

void refuse_file(const std::string& file, std::int64_t offset, const std::string& problem,
                 const std::string& step) {
  throw FileError(file + ", byte " + std::to_string(offset) + ": " + problem + "; " + step);
}

}  // namespace palimpsest
