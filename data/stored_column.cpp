#include "data/stored_column.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace palimpsest {
namespace {

/// Elements of a row that are at equal distances in memory.
struct Stretch {
  const std::byte* from;
  std::int64_t step;  // in bytes
  std::byte* to;
  std::int64_t count;
};

/// The byte of a file that an element is at.
std::int64_t byte_of(const StoredColumn& column, const std::byte* element) {
  return column.offset + (element - column.first);
}

void copy_plain(const Stretch& stretch, std::int64_t width) {
  const auto size = static_cast<std::size_t>(width);
  if (stretch.step == width) {
    std::memcpy(stretch.to, stretch.from, size * static_cast<std::size_t>(stretch.count));
    return;
  }
  for (std::int64_t i = 0; i < stretch.count; ++i) {
    std::memcpy(stretch.to + i * width, stretch.from + i * stretch.step, size);
  }
}

void copy_swapped(const Stretch& stretch, std::int64_t width) {
  for (std::int64_t i = 0; i < stretch.count; ++i) {
    const std::byte* const from = stretch.from + i * stretch.step;
    std::reverse_copy(from, from + width, stretch.to + i * width);
  }
}

/// Copies integers of type `From`, which may not be aligned, as the wider or signed `To`.
template <class From, class To>
void copy_widened(const StoredColumn& column, const Stretch& stretch) {
  for (std::int64_t i = 0; i < stretch.count; ++i) {
    const std::byte* const from = stretch.from + i * stretch.step;
    std::byte bytes[sizeof(From)];
    std::memcpy(bytes, from, sizeof(From));
    if (column.element.is_swapped) std::ranges::reverse(bytes);
    From narrow{};
    std::memcpy(&narrow, bytes, sizeof(From));
    if constexpr (sizeof(From) == sizeof(To)) {
      if (narrow > static_cast<From>(std::numeric_limits<To>::max())) {
        refuse_file(column.file, byte_of(column, from),
                    "the number " + std::to_string(narrow) + " does not fit i64",
                    "save array.astype('f8'), or smaller numbers");
      }
    }
    const To wide = static_cast<To>(narrow);
    std::memcpy(stretch.to + i * static_cast<std::int64_t>(sizeof(To)), &wide, sizeof(To));
  }
}

void copy_stretch(const StoredColumn& column, const Stretch& stretch) {
  const std::int64_t width = stored_element_bytes(column);
  switch (column.element.as) {
    case StoredElement::As::itself:
      if (column.element.is_swapped) {
        copy_swapped(stretch, width);
      } else {
        copy_plain(stretch, width);
      }
      break;
    case StoredElement::As::u16:
      copy_widened<std::uint16_t, std::int32_t>(column, stretch);
      break;
    case StoredElement::As::u32:
      copy_widened<std::uint32_t, std::int64_t>(column, stretch);
      break;
    case StoredElement::As::u64:
      copy_widened<std::uint64_t, std::int64_t>(column, stretch);
      break;
  }
  if (column.column.example.dtype != DType::boolean || column.file.empty()) return;
  for (std::int64_t i = 0; i < stretch.count; ++i) {
    if (stretch.to[i] <= std::byte{1}) continue;
    refuse_file(column.file, byte_of(column, stretch.from + i * stretch.step),
                "a bool is neither 0 nor 1");
  }
}

/// Copies a row of an array in Fortran order: along the last axis of an example at a time.
void copy_fortran_row(const StoredColumn& column, std::int64_t row, std::byte* to) {
  const Shape& example = column.column.example.shape;
  const Bytes width = stored_element_bytes(column);
  const int outer = std::max(example.rank() - 1, 0);
  Strides strides{};  // in bytes
  Bytes stride = column.fortran_rows * width;
  for (int axis = 0; axis < example.rank(); ++axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= example[axis];
  }
  const std::int64_t count = example.rank() > 0 ? example[outer] : 1;
  const std::int64_t step = example.rank() > 0 ? strides[static_cast<std::size_t>(outer)] : width;
  Strides index{};
  const std::byte* from = column.first + row * width;
  for (std::int64_t left = example.elements(); left > 0; left -= count) {
    copy_stretch(column, {from, step, to, count});
    to += count * size_of(column.column.example.dtype);
    for (int axis = outer - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      from += strides[a];
      if (++index[a] < example[axis]) break;
      from -= strides[a] * index[a];
      index[a] = 0;
    }
  }
}

Tensor copied_rows(const StoredColumn& column, std::span<const std::int64_t> indices) {
  Shape shape = column.column.example.shape;
  shape.insert(0, std::ssize(indices));
  Tensor rows(shape, column.column.example.dtype);
  const Bytes row_bytes = column.column.example.bytes();
  std::byte* to = rows.raw();
  for (const std::int64_t index : indices) {
    copy_row(column, index, to);
    to += row_bytes;
  }
  return rows;
}

}  // namespace

Bytes stored_element_bytes(const StoredColumn& column) {
  using As = StoredElement::As;
  if (column.element.as == As::u16) return sizeof(std::uint16_t);
  if (column.element.as == As::u32) return sizeof(std::uint32_t);
  return size_of(column.column.example.dtype);  // that of i64 for u64
}

void copy_row(const StoredColumn& column, std::int64_t row, std::byte* to) {
  const std::int64_t count = column.column.example.shape.elements();
  if (count == 0) return;
  if (column.fortran_rows > 0) return copy_fortran_row(column, row, to);
  const Bytes width = stored_element_bytes(column);
  copy_stretch(column, {column.first + row * count * width, width, to, count});
}

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

void require_stored_bytes(const StoredColumn& column, std::int64_t elements, Bytes file_bytes,
                          std::int64_t place) {
  const Bytes data = elements * stored_element_bytes(column);
  if (data == file_bytes - column.offset) return;
  refuse_file(column.file, place,
              std::to_string(elements) + " elements take " + std::to_string(data) +
                  " bytes, but the file has " + std::to_string(file_bytes - column.offset) +
                  " for them");
}

Dataset mapped_array(StoredColumn column, const ValueType& array, Bytes file_bytes,
                     std::int64_t place) {
  column.column.example = example_in_file(column.file, array, place);
  require_stored_bytes(column, array.shape.elements(), file_bytes, place);
  return stored_dataset(array.shape[0], {std::move(column)});
}

void refuse_file(const std::string& file, std::int64_t offset, const std::string& problem,
                 const std::string& step) {
  throw FileError(file + ", byte " + std::to_string(offset) + ": " + problem + "; " + step);
}

}  // namespace palimpsest
