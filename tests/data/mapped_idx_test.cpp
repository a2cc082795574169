#include "data/mapped_dataset.h"
#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace palimpsest::mapped_idx_test {
namespace {

using Catch::Matchers::Contains;

/// A file with elements of type `type` and these sizes below 256.
std::string idx_file(int type, std::initializer_list<int> sizes, const std::string& data) {
  std::string content{'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const int size : sizes) content += {'\0', '\0', '\0', static_cast<char>(size)};
  return content + data;
}

TEST_CASE("elements of every type are read") {
  const TemporaryFile file;
  const auto mapped = [&](int type, const std::string& data) {
    file.write(idx_file(type, {2, 1}, data));
    return mapped_idx(file.path(), "x").rows({1, 0})[0];
  };
  CHECK(same_bits(mapped(0x08, "\x01\xff"), Tensor::from<std::uint8_t>({255, 1}, {2, 1})));
  CHECK(same_bits(mapped(0x09, "\x01\xff"), Tensor::from<std::int8_t>({-1, 1}, {2, 1})));
  CHECK(same_bits(mapped(0x0b, "\x01\x02\xff\xfe"), Tensor::from<std::int16_t>({-2, 258}, {2, 1})));
  CHECK(same_bits(mapped(0x0c, std::string("\1\2\3\4\xff\xff\xff\xfe", 8)),
                  Tensor::from<std::int32_t>({-2, 0x01020304}, {2, 1})));
  CHECK(same_bits(mapped(0x0d, std::string("\x3f\x80\0\0\xc0\0\0\0", 8)),
                  Tensor::from<float>({-2, 1}, {2, 1})));
  CHECK(same_bits(mapped(0x0e, std::string("\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 16)),
                  Tensor::from<double>({-2, 1}, {2, 1})));
}

TEST_CASE("a file cut anywhere is an error, and so is one that is too long") {
  const TemporaryFile file;
  const std::string whole = idx_file(0x08, {2, 2}, "abcd");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    file.write(whole.substr(0, length));
    CHECK_THROWS_AS(mapped_idx(file.path()), FileError);
  }
  file.write(whole + "x");
  CHECK_THROWS_WITH(mapped_idx(file.path()), Contains("take 4 bytes, but the file has 5"));
}

TEST_CASE("files that are not supported are errors that say where and what to do") {
  const struct {
    std::string content;
    const char* words;
  } rows[] = {
      {"\x1f\x8b\x08\x08 and more", "byte 0: the file is compressed; run gunzip"},
      {"other", "byte 0: this is not an IDX file"},
      {idx_file(0x0a, {1}, "a"), "byte 2: type 10 of elements is not known; use one of 8"},
      {idx_file(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "a"), "byte 3: the array has 9 axes"},
      {idx_file(0x08, {}, "a"), "byte 4: the array is a scalar"},
  };
  const TemporaryFile file;
  for (const auto& row : rows) {
    file.write(row.content);
    CHECK_THROWS_WITH(mapped_idx(file.path()),
                      Contains("[mapped_idx] " + file.path()) && Contains(row.words));
  }
}

}  // namespace
}  // namespace palimpsest::mapped_idx_test
