#include "data/npy.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>

#include "autodiff/error.h"
#include "autodiff/files.h"
#include "autodiff/mapped_file.h"
#include "data/mapped_dataset.h"
#include "data/npy_header.h"
#include "data/stored_column.h"

namespace palimpsest {
namespace {

using As = StoredElement::As;

struct NpyElement {
  std::string_view name;  // as NumPy calls it, without the order of bytes
  DType dtype;
  As as;
};

constexpr std::array<NpyElement, 12> npy_elements = {{
    {"f8", DType::f64, As::itself},
    {"f4", DType::f32, As::itself},
    {"f2", DType::f16, As::itself},
    {"i8", DType::i64, As::itself},
    {"i4", DType::i32, As::itself},
    {"i2", DType::i16, As::itself},
    {"i1", DType::i8, As::itself},
    {"u1", DType::u8, As::itself},
    {"b1", DType::boolean, As::itself},
    {"u2", DType::i32, As::u16},
    {"u4", DType::i64, As::u32},
    {"u8", DType::i64, As::u64},
}};

const NpyElement& npy_element(const std::string& file, const NpyHeader& header) {
  const std::string_view text = header.element;
  for (const NpyElement& element : npy_elements) {
    const bool has_order = text.starts_with('<') || text.starts_with('>') || text.starts_with('|');
    if (!has_order || text.substr(1) != element.name) continue;
    if (text.starts_with('|') && element.name.back() != '1') continue;
    return element;
  }
  refuse_file(file, header.element_at, "elements '" + header.element + "' are not supported",
              "save array.astype('<f4') or another of f8, f4, f2, i8, i4, i2, i1, u8, u4, u2, u1 "
              "and bool");
}

/// The array of a mapped file.
struct NpyArray {
  StoredColumn column;  // has all except the type of an example
  ValueType type;
  std::int64_t sizes_at;  // byte of the file
};

NpyArray array_in(const std::string& path, const MappedFile& file, const std::string& operation) {
  const std::string named = "[" + operation + "] " + path;
  const std::string_view content(reinterpret_cast<const char*>(file.content.get()),
                                 static_cast<std::size_t>(file.bytes));
  const NpyHeader header = read_npy_header(named, content);
  const NpyElement& element = npy_element(named, header);
  if (header.sizes.size() > max_rank) {
    refuse_file(named, header.sizes_at,
                "the array has " + std::to_string(header.sizes.size()) + " axes",
                "give it at most " + std::to_string(max_rank));
  }
  NpyArray array{{.column = {"", {{}, element.dtype}},
                  .memory = file.content,
                  .first = file.content.get() + header.data,
                  .element = {element.as, header.element.starts_with('>')},
                  .file = named,
                  .offset = header.data},
                 {Shape(header.sizes), element.dtype},
                 header.sizes_at};
  if (header.is_fortran_order && !header.sizes.empty()) {
    array.column.fortran_rows = header.sizes.front();
  }
  return array;
}

std::string header_of(const Tensor& tensor) {
  std::string_view name;
  for (const NpyElement& element : npy_elements) {
    if (element.dtype == tensor.dtype() && element.as == As::itself) name = element.name;
  }
  if (name.empty()) {
    throw DTypeError("[save_npy] the tensor is " + to_string(tensor.type()) +
                     ", a dtype that NumPy lacks; convert it to f32 with to(DType::f32)");
  }
  std::string sizes;
  for (const std::int64_t size : tensor.shape()) sizes += std::to_string(size) + ", ";
  if (tensor.shape().rank() > 1) sizes.resize(sizes.size() - 2);
  if (tensor.shape().rank() == 1) sizes.pop_back();
  std::string text = "{'descr': '" + std::string(name.back() == '1' ? "|" : "<");
  text.append(name).append("', 'fortran_order': False, 'shape': (").append(sizes).append("), }");
  return text;
}

}  // namespace

Tensor load_npy(const std::string& path) {
  const MappedFile file = map_file(path, "load_npy");
  NpyArray array = array_in(path, file, "load_npy");
  if (!array.type.shape.is_possible()) {
    refuse_file(
        array.column.file, array.sizes_at,
        "shape " + to_string(array.type.shape) + " has more elements than any memory can hold");
  }
  // The whole array is one row.
  array.column.column.example = array.type;
  if (array.column.fortran_rows > 0) array.column.fortran_rows = 1;
  require_stored_bytes(array.column, array.type.shape.elements(), file.bytes, array.sizes_at);
  Tensor tensor(array.type.shape, array.type.dtype);
  copy_row(array.column, 0, tensor.raw());
  return tensor;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  if (!tensor.defined()) {
    throw ArgumentError("[save_npy] the tensor is empty; give one with a shape");
  }
  constexpr std::size_t begin_bytes = 10;  // the mark, the version and the length
  constexpr std::size_t alignment = 64;    // of the elements in the file
  std::string header = header_of(tensor);
  const std::size_t end = begin_bytes + header.size() + 1;
  header.append((alignment - end % alignment) % alignment, ' ').push_back('\n');
  const auto write = [&](std::ostream& file) {
    file << npy_mark << '\1' << '\0' << static_cast<char>(header.size() & 0xff)
         << static_cast<char>(header.size() >> 8) << header;
    file.write(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
  };
  write_file(path, write, "save_npy");
}

Dataset mapped_npy(const std::string& path, const std::string& name) {
  const MappedFile file = map_file(path, "mapped_npy");
  NpyArray array = array_in(path, file, "mapped_npy");
  array.column.column.name = name;
  return mapped_array(std::move(array.column), array.type, file.bytes, array.sizes_at);
}

}  // namespace palimpsest
