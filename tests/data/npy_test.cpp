#include "data/npy.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "data/mapped_dataset.h"
#include "tests/catch.h"
#include "tests/data/npy_files.h"
#include "tests/temporary_file.h"

namespace palimpsest::npy_test {
namespace {

using Catch::Matchers::Contains;
using tests::bytes_of;
using tests::npy_file;
using tests::npy_text;

constexpr DType numpy_dtypes[] = {DType::f64, DType::f32, DType::f16, DType::i64,    DType::i32,
                                  DType::i16, DType::i8,  DType::u8,  DType::boolean};

TEST_CASE("arrays of every dtype and shape survive a .npy file") {
  const TemporaryFile file;
  for (const DType dtype : numpy_dtypes) {
    for (const Shape& shape : {Shape{}, Shape{6}, Shape{1}, Shape{2, 3}, Shape{3, 1, 2},
                               Shape{1, 1, 1, 2, 1, 1, 3, 1}}) {
      INFO(name_of(dtype) << ' ' << to_string(shape));
      const Tensor whole = shape.elements() == 6 ? Tensor::arange(6).to(dtype).reshape(shape)
                                                 : Tensor::full(shape, 1, dtype);
      save_npy(file.path(), whole);
      CHECK(same_bits(load_npy(file.path()), whole));
    }
  }
  save_npy(file.path(), Tensor({0, 4}, DType::i64));
  CHECK(load_npy(file.path()).type() == ValueType{{0, 4}, DType::i64});
}

TEST_CASE("a .npy file is written as NumPy writes it") {
  const TemporaryFile file;
  save_npy(file.path(), Tensor::matrix({{1, 2}, {3, 4}, {5, 6}}));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  header.append(128 - 10 - header.size() - 1, ' ').push_back('\n');
  CHECK(file.read() == npy_file(header, bytes_of<float>({1, 2, 3, 4, 5, 6})));
  save_npy(file.path(), Tensor::full({3}, 1, DType::boolean));
  CHECK_THAT(file.read(), Contains("'descr': '|b1'") && Contains("'shape': (3,), }"));
  save_npy(file.path(), Tensor::scalar(1));
  CHECK_THAT(file.read(), Contains("'shape': (), }"));
}

TEST_CASE("elements in Fortran order are put in C order") {
  const TemporaryFile file;
  const Shape shape{3, 2, 4};
  const Tensor expected = Tensor::arange(24).to(DType::i32).reshape(shape);
  std::vector<std::int32_t> stored(24);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      for (std::int64_t k = 0; k < 4; ++k) {
        stored[static_cast<std::size_t>(i + 3 * j + 6 * k)] =
            static_cast<std::int32_t>(8 * i + 4 * j + k);
      }
    }
  }
  std::string data(reinterpret_cast<const char*>(stored.data()), 96);
  const bool is_swapped = GENERATE(false, true);
  for (std::size_t at = 0; is_swapped && at < data.size(); at += 4) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at) + 4);
  }
  file.write(npy_file(npy_text(is_swapped ? ">i4" : "<i4", "(3, 2, 4)", "True"), data));
  CHECK(same_bits(load_npy(file.path()), expected));
  const Tensor rows = mapped_npy(file.path()).rows({2, 0})[0];
  CHECK(same_bits(rows, Tensor::from<std::int32_t>(
                            {16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 4})));
  file.write(npy_file(npy_text("<f4", "(2,)", "True"), bytes_of<float>({1, 2})));
  CHECK(same_bits(load_npy(file.path()), Tensor::vector({1, 2})));
  CHECK(mapped_npy(file.path()).rows({1})[0].at(0) == 2);
  file.write(npy_file(npy_text("<f4", "()", "True"), bytes_of<float>({7})));
  CHECK(load_npy(file.path()).item() == 7);
  file.write(npy_file(npy_text("<f4", "(0, 3)", "True"), ""));
  CHECK(load_npy(file.path()).shape() == Shape{0, 3});
}

/// Reads the array by both functions, which must agree.
Tensor read(const std::string& element, const std::string& data) {
  const TemporaryFile file;
  file.write(npy_file(npy_text(element, "(3,)"), data));
  const Tensor tensor = load_npy(file.path());
  CHECK(same_bits(mapped_npy(file.path()).rows({0, 1, 2})[0], tensor));
  return tensor;
}

TEST_CASE("big-endian elements are swapped") {
  CHECK(same_bits(read(">f4", std::string("\x3f\x80\0\0\x40\0\0\0\xc0\x40\0\0", 12)),
                  Tensor::vector({1, 2, -3})));
  CHECK(same_bits(read(">i2", std::string("\1\2\0\1\xff\xfe", 6)),
                  Tensor::from<std::int16_t>({258, 1, -2}, {3})));
  CHECK(same_bits(read(">u2", std::string("\1\2\0\1\xff\xfe", 6)),
                  Tensor::from<std::int32_t>({258, 1, 65534}, {3})));
}

TEST_CASE("unsigned integers become wider ones, and an error names the one that does not fit") {
  CHECK(same_bits(read("<u2", bytes_of<std::uint16_t>({0, 32768, 65535})),
                  Tensor::from<std::int32_t>({0, 32768, 65535}, {3})));
  CHECK(same_bits(read("<u4", bytes_of<std::uint32_t>({0, 2147483648, 4294967295})),
                  Tensor::from<std::int64_t>({0, 2147483648, 4294967295}, {3})));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(same_bits(read("<u8", bytes_of<std::uint64_t>({0, 5, std::uint64_t{most}})),
                  Tensor::from<std::int64_t>({0, 5, most}, {3})));
  const TemporaryFile file;
  const std::string header = npy_text("<u8", "(3,)");
  file.write(npy_file(header, bytes_of<std::uint64_t>({0, 9223372036854775808u, 1})));
  const auto words = Contains("byte " + std::to_string(10 + header.size() + 8) +
                              ": the number 9223372036854775808 does not fit i64; save");
  CHECK_THROWS_WITH(load_npy(file.path()), words && Contains("[load_npy] " + file.path()));
  const Dataset dataset = mapped_npy(file.path());
  CHECK_NOTHROW(dataset.rows({0, 2}));
  CHECK_THROWS_WITH(dataset.rows({1}), words && Contains("[mapped_npy] " + file.path()));
}

TEST_CASE("arrays that cannot be read or written are errors") {
  const TemporaryFile file;
  const auto refused = [&](const std::string& content, const std::string& words) {
    file.write(content);
    CHECK_THROWS_WITH(load_npy(file.path()),
                      Contains("[load_npy] " + file.path() + ", byte ") && Contains(words));
  };
  refused("not npy", "not a .npy file");
  refused(npy_file(npy_text("<f4", "(3,)"), "12345678"), "12 bytes, but the file has 8");
  refused(npy_file(npy_text("<c8", "(1,)"), "12345678"), "'<c8' are not supported");
  refused(npy_file(npy_text("|f4", "(2,)"), "12345678"), "'|f4' are not supported");
  refused(npy_file(npy_text("=f4", "(2,)"), "12345678"), "'=f4' are not supported");
  refused(npy_file(npy_text("<f4", "(9223372036854775807,)"), ""), "more elements than any memory");
  refused(npy_file(npy_text("<f4", "(1,1,1,1,1,1,1,1,1)"), "1234"), "9 axes");
  refused(npy_file(npy_text("|b1", "(3,)"), std::string("\0\1\2", 3)), "a bool is neither 0 nor 1");
  CHECK_THROWS_AS(load_npy("/nowhere/file"), FileError);
  CHECK_THROWS_AS(save_npy("/nowhere/file", Tensor::ones({1})), FileError);
  CHECK_THROWS_WITH(save_npy(file.path(), Tensor::ones({1}, DType::bf16)),
                    Contains("[save_npy] the tensor is bf16 (1)") && Contains("to(DType::f32)"));
  CHECK_THROWS_AS(save_npy(file.path(), Tensor()), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::npy_test
