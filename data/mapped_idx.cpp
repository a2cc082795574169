#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "autodiff/mapped_file.h"
#include "data/mapped_dataset.h"
#include "data/stored_column.h"

namespace palimpsest {
namespace {

/// An element type of IDX files, by its number in the third byte.
struct IdxElement {
  unsigned char number;
  DType dtype;
  bool is_swapped;
};

constexpr std::array<IdxElement, 6> idx_elements = {{
    {0x08, DType::u8, false},
    {0x09, DType::i8, false},
    {0x0b, DType::i16, true},
    {0x0c, DType::i32, true},
    {0x0d, DType::f32, true},
    {0x0e, DType::f64, true},
}};

const IdxElement& idx_element(const std::string& file, unsigned char number) {
  for (const IdxElement& element : idx_elements) {
    if (element.number == number) return element;
  }
  refuse_file(file, 2, "type " + std::to_string(number) + " of elements is not known",
              "use one of 8, 9, 11, 12, 13 and 14");
}

}  // namespace

Dataset mapped_idx(const std::string& path, const std::string& name) {
  constexpr std::int64_t word = 4;
  const MappedFile file = map_file(path, "mapped_idx");
  const std::string named = "[mapped_idx] " + path;
  const auto byte = [&](std::int64_t at) {
    return static_cast<unsigned char>(file.content.get()[at]);
  };
  if (file.bytes < word) refuse_file(named, file.bytes, "the file ends before its first size");
  if (byte(0) == 0x1f && byte(1) == 0x8b) {
    refuse_file(named, 0, "the file is compressed", "run gunzip on it, so that it can be mapped");
  }
  if (byte(0) != 0 || byte(1) != 0) refuse_file(named, 0, "this is not an IDX file");
  const IdxElement& element = idx_element(named, byte(2));
  const std::int64_t rank = byte(3);
  if (rank > max_rank) {
    refuse_file(named, 3, "the array has " + std::to_string(rank) + " axes",
                "give it at most " + std::to_string(max_rank));
  }
  const std::int64_t data = word + word * rank;
  if (file.bytes < data) refuse_file(named, file.bytes, "the file ends inside its sizes");
  Shape shape;
  for (std::int64_t at = word; at < data; at += word) {
    std::int64_t size = 0;
    for (std::int64_t i = at; i < at + word; ++i) size = size << 8 | byte(i);
    shape.push_back(size);
  }
  return mapped_array({.column = {name, {}},
                       .memory = file.content,
                       .first = file.content.get() + data,
                       .element = {.is_swapped = element.is_swapped},
                       .file = named,
                       .offset = data},
                      {shape, element.dtype}, file.bytes, word);
}

}  // namespace palimpsest
