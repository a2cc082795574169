#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "autodiff/mapped_file.h"
#include "data/mapped_dataset.h"
#include "data/npy_header.h"
#include "data/stored_column.h"

namespace palimpsest {
namespace {

struct NpyElement {
  std::string_view name;
  DType dtype;
  StoredAs stored_as;
};

constexpr std::array<NpyElement, 10> npy_elements = {{
    {"<f8", DType::f64, StoredAs::plain},
    {"<f4", DType::f32, StoredAs::plain},
    {"<f2", DType::f16, StoredAs::plain},
    {"<i8", DType::i64, StoredAs::plain},
    {"<i4", DType::i32, StoredAs::plain},
    {"|b1", DType::boolean, StoredAs::plain},
    {"|u1", DType::u8, StoredAs::plain},
    {"|i1", DType::i8, StoredAs::plain},
    {"<u2", DType::i32, StoredAs::u16},
    {"<i2", DType::i16, StoredAs::plain},
}};

const NpyElement& npy_element(const std::string& file, const NpyHeader& header) {
  for (const NpyElement& element : npy_elements) {
    if (element.name == header.element) return element;
  }
  if (header.element.starts_with('>')) {
    refuse_file(file, header.element_at, "elements '" + header.element + "' are big-endian",
                "save array.astype('<" + header.element.substr(1) + "')");
  }
  refuse_file(file, header.element_at, "elements '" + header.element + "' are not supported",
              "save array.astype('<f4') or another of f8, f4, f2, i8, i4, i2, i1, u2, u1 and bool");
}

}  // namespace

Dataset mapped_npy(const std::string& path, const std::string& name) {
  const MappedFile file = map_file(path, "mapped_npy");
  const std::string named = "[mapped_npy] " + path;
  const std::string_view content(reinterpret_cast<const char*>(file.content.get()),
                                 static_cast<std::size_t>(file.bytes));
  const NpyHeader header = read_npy_header(named, content);
  const NpyElement& element = npy_element(named, header);
  if (header.is_fortran_order) {
    refuse_file(named, header.order_at, "the array is in Fortran order",
                "save numpy.ascontiguousarray(array)");
  }
  if (header.sizes.size() > max_rank) {
    refuse_file(named, header.sizes_at,
                "the array has " + std::to_string(header.sizes.size()) + " axes",
                "give it at most " + std::to_string(max_rank));
  }
  return mapped_array({.column = {name, {}},
                       .memory = file.content,
                       .first = file.content.get() + header.data,
                       .stored_as = element.stored_as,
                       .file = named,
                       .offset = header.data},
                      {Shape(header.sizes), element.dtype}, file.bytes, header.sizes_at);
}

}  // namespace palimpsest
