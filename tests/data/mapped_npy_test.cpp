#include <cstring>
#include <filesystem>

#include "data/mapped_dataset.h"
#include "tests/catch.h"
#include "tests/data/npy_files.h"
#include "tests/temporary_file.h"

namespace palimpsest::mapped_npy_test {
namespace {

using Catch::Matchers::Contains;
using tests::bytes_of;
using tests::npy_file;
using tests::npy_text;

/// All rows of the array with these elements, in shape (3, 2).
Tensor mapped(const std::string& element, const std::string& data) {
  const TemporaryFile file;
  file.write(npy_file(npy_text(element, "(3, 2)"), data));
  const Dataset dataset = mapped_npy(file.path());
  CHECK(dataset.size() == 3);
  return dataset.rows({0, 1, 2})[0];
}

template <class T>
void check_plain(const std::string& element, DType dtype) {
  INFO(element);
  const Tensor expected = Tensor::arange(6).to(dtype).reshape({3, 2});
  const std::string data(reinterpret_cast<const char*>(expected.raw()),
                         static_cast<std::size_t>(expected.bytes()));
  CHECK(same_bits(mapped(element, data), expected));
}

TEST_CASE("little-endian elements stay as they are") {
  check_plain<double>("<f8", DType::f64);
  check_plain<float>("<f4", DType::f32);
  check_plain<Float16>("<f2", DType::f16);
  check_plain<std::int64_t>("<i8", DType::i64);
  check_plain<std::int32_t>("<i4", DType::i32);
  check_plain<std::int16_t>("<i2", DType::i16);
  check_plain<std::int8_t>("|i1", DType::i8);
  check_plain<std::uint8_t>("|u1", DType::u8);
  check_plain<bool>("|b1", DType::boolean);
}

TEST_CASE("u16 becomes i32") {
  const Tensor expected = Tensor::from<std::int32_t>({0, 1, 255, 256, 32768, 65535}, {3, 2});
  CHECK(
      same_bits(mapped("<u2", bytes_of<std::uint16_t>({0, 1, 255, 256, 32768, 65535})), expected));
}

TEST_CASE("files of all versions and spellings are read") {
  const std::string data = bytes_of<float>({1, 2});
  const TemporaryFile file;
  for (const std::string& content : {
           npy_file(npy_text("<f4", "(2,)"), data, 1),
           npy_file(npy_text("<f4", "(2,)"), data, 2),
           npy_file(npy_text("<f4", "(2,)"), data, 3),
           npy_file(npy_text("<f4", "(2L,)"), data),
           npy_file("{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":False}", data),
       }) {
    file.write(content);
    const Dataset dataset = mapped_npy(file.path(), "x");
    CHECK(dataset.columns()[0] == DatasetColumn{"x", {{}, DType::f32}});
    CHECK(dataset.rows({1})[0].at(0) == 2);
  }
  file.write(npy_file(npy_text("<f4", "(0, 3)"), ""));
  CHECK(mapped_npy(file.path()).size() == 0);
}

TEST_CASE("a mapped array is not read before its rows are requested") {
  const TemporaryFile file;
  const std::string start = npy_file(npy_text("<f8", "(2147483648, 1)"), "");
  file.write(start);
  // Most file systems store no bytes for the zeros.
  std::filesystem::resize_file(file.path(), start.size() + (std::size_t{16} << 30));
  const Dataset dataset = mapped_npy(file.path());
  CHECK(dataset.size() == std::int64_t{1} << 31);
  CHECK(dataset.rows({(std::int64_t{1} << 31) - 1})[0].at(0) == 0);
}

TEST_CASE("a file cut anywhere is an error") {
  const TemporaryFile file;
  for (const int major : {1, 2}) {
    const std::string whole = npy_file(npy_text("<f4", "(2,)"), bytes_of<float>({1, 2}), major);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      file.write(whole.substr(0, length));
      CHECK_THROWS_AS(mapped_npy(file.path()), FileError);
    }
    file.write(whole + "x");
    CHECK_THROWS_WITH(mapped_npy(file.path()), Contains("take 8 bytes, but the file has 9"));
  }
}

TEST_CASE("arrays that are not supported are errors that say where and what to do") {
  const auto text = [](const std::string& header) { return npy_file(header, std::string(8, 0)); };
  const struct {
    std::string content;
    std::initializer_list<const char*> words;
  } rows[] = {
      {text(npy_text("<c8", "(1,)")), {"byte 20: ", "'<c8'", "f8, f4, f2"}},
      {text(npy_text("|O", "(1,)")), {"'|O' are not supported"}},
      {text("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"), {"each field"}},
      {text(npy_text("<f4", "(9, 0)")), {"shape (0) have no elements", "positive sizes"}},
      {text(npy_text("<f4", "()")), {"scalar", "axis of examples"}},
      {text(npy_text("<f4", "(1,1,1,1,1,1,1,1,2)")), {"9 axes", "at most 8"}},
      {text(npy_text("<f4", "(3,)")), {"3 elements take 12 bytes, but the file has 8"}},
      {text(npy_text("<f4", "(9223372036854775807,)")), {"more elements than any memory"}},
      {text(npy_text("<f4", "(0, 9223372036854775807)")), {"more elements than any memory"}},
      {text(npy_text("<f4", "(99999999999999999999,)")), {"no number from 0 on"}},
      {text(npy_text("<f4", "(-2,)")), {"no number from 0 on"}},
      {text(npy_text("<f4", "2")), {"'(' is missing"}},
      {text(npy_text("<f4", "(2,)", "0")), {"no True or False"}},
      {text("{'descr': '<f4', 'shape': (2,)}"), {"has no 'fortran_order'"}},
      {text("{'descr': '<f4', 'descr': '<f4'}"), {"'descr' twice"}},
      {text("{'other': '<f4'}"), {"unknown member 'other'"}},
      {text("{'descr': <f4}"), {"quotes is missing"}},
      {text(npy_text("<f4", "(2,)") + "x"), {"text follows"}},
      {npy_file(npy_text("<f4", "(2,)"), "", 4), {"byte 6: ", "version 4"}},
      {"not npy", {"not a .npy file", "numpy.save"}},
      {"", {"not a .npy file"}},
  };
  const TemporaryFile file;
  for (const auto& row : rows) {
    file.write(row.content);
    for (const char* words : row.words) {
      CHECK_THROWS_WITH(mapped_npy(file.path()),
                        Contains("[mapped_npy] " + file.path() + ", byte ") && Contains(words));
    }
  }
  CHECK_THROWS_WITH(mapped_npy("/nowhere/file"), Contains("cannot open /nowhere/file"));
  CHECK_THROWS_WITH(mapped_npy("/tmp"), Contains("is a folder"));
}

TEST_CASE("a bool that is neither 0 nor 1 is an error when its row is requested") {
  const TemporaryFile file;
  const std::string header = npy_text("|b1", "(3, 2)");
  file.write(npy_file(header, std::string("\0\1\0\2\1\0", 6)));
  const Dataset dataset = mapped_npy(file.path());
  CHECK_NOTHROW(dataset.rows({0, 2}));
  CHECK_THROWS_WITH(dataset.rows({0, 1}),
                    Contains("byte " + std::to_string(10 + header.size() + 3) + ": a bool"));
}

}  // namespace
}  // namespace palimpsest::mapped_npy_test
