#include "checkpoint/stores/codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "tests/catch.h"
#include "tests/error_of.h"

#include <rapidcheck/catch.h>

namespace codec_test {

using namespace palimpsest;

namespace {

template <class T>
std::vector<std::byte> encoded(const std::vector<T>& numbers, Codec codec) {
  const auto from = std::as_bytes(std::span(numbers));
  const auto size = static_cast<Bytes>(from.size());
  std::vector<std::byte> to(static_cast<std::size_t>(stored_bytes(size, dtype_of<T>(), codec)));
  encode(from, dtype_of<T>(), codec, to);
  return to;
}

template <class T>
std::vector<T> decoded(const std::vector<std::byte>& bytes, std::size_t count, Codec codec) {
  std::vector<T> numbers(count);
  decode(bytes, dtype_of<T>(), codec, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

/// Numbers of all magnitudes of `T`, of either sign.
template <class T>
std::vector<T> numbers(std::size_t count, T largest) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  std::mt19937_64 random(1);
  std::vector<T> all;
  while (all.size() < count) {
    const T number = std::bit_cast<T>(static_cast<Bits>(random()));
    if (std::abs(number) <= largest) all.push_back(number);
  }
  return all;
}

/// Checks the table in the header: half the bytes, the errors, and that encoding decoded numbers
/// again changes nothing.
template <class T>
void check_half(Codec codec, DType stored, T largest, int digits, int smallest, int absolute) {
  const std::vector<T> before = numbers<T>(200'000, largest);
  CHECK(stored_dtype(dtype_of<T>(), codec) == stored);
  const std::vector<std::byte> bytes = encoded(before, codec);
  CHECK(bytes.size() == before.size() * sizeof(T) / 2);
  const std::vector<T> after = decoded<T>(bytes, before.size(), codec);
  double relative_error = 0;
  double absolute_error = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double error = std::abs(static_cast<double>(before[i]) - static_cast<double>(after[i]));
    if (std::abs(before[i]) >= std::ldexp(T{1}, smallest)) {
      relative_error = std::max(relative_error, error / std::abs(static_cast<double>(before[i])));
    } else {
      absolute_error = std::max(absolute_error, error);
    }
  }
  CHECK(relative_error <= std::ldexp(1.0, -digits));
  CHECK(relative_error > std::ldexp(0.98, -digits));
  CHECK(absolute_error <= std::ldexp(1.0, -absolute));
  CHECK(absolute_error > std::ldexp(0.9, -absolute));
  CHECK(encoded(after, codec) == bytes);
}

}  // namespace

TEST_CASE("codec: half the bytes, with the errors that the table states") {
  check_half<double>(Codec::half, DType::f32, std::numeric_limits<float>::max(), 24, -126, 150);
  check_half<double>(Codec::half_f16, DType::f32, std::numeric_limits<float>::max(), 24, -126, 150);
  check_half<float>(Codec::half, DType::bf16, 3.38e38f, 8, -126, 134);
  check_half<float>(Codec::half_f16, DType::f16, 65504, 11, -14, 25);
}

TEST_CASE("codec: exact keeps the bytes, and so does any codec of what has no half") {
  const auto keeps = [](auto number, Codec codec) {
    using T = decltype(number);
    std::mt19937 random(1);
    std::vector<std::byte> bytes(40'000 * sizeof(T));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    std::vector<std::byte> kept(bytes.size());
    std::vector<std::byte> back(bytes.size());
    CHECK(stored_dtype(dtype_of<T>(), codec) == dtype_of<T>());
    CHECK(stored_bytes(static_cast<Bytes>(bytes.size()), dtype_of<T>(), codec) ==
          static_cast<Bytes>(bytes.size()));
    encode(bytes, dtype_of<T>(), codec, kept);
    CHECK(kept == bytes);
    decode(kept, dtype_of<T>(), codec, back);
    CHECK(back == bytes);
  };
  keeps(double{}, Codec::exact);
  keeps(float{}, Codec::exact);
  for (const Codec codec : {Codec::exact, Codec::half, Codec::half_f16}) {
    keeps(BFloat16{}, codec);
    keeps(Float16{}, codec);
    keeps(std::int64_t{}, codec);
    keeps(std::int32_t{}, codec);
    keeps(bool{}, codec);
  }
}

TEST_CASE("codec: what is no ordinary number stays what it is") {
  const auto check = [](auto number, Codec codec) {
    using T = decltype(number);
    using Limits = std::numeric_limits<T>;
    const std::vector<T> before{Limits::infinity(),  -Limits::infinity(), T{0}, -T{0},
                                Limits::quiet_NaN(), -Limits::quiet_NaN()};
    const std::vector<T> after = decoded<T>(encoded(before, codec), before.size(), codec);
    for (std::size_t i = 0; i < before.size(); ++i) {
      CHECK(std::signbit(after[i]) == std::signbit(before[i]));
      CHECK((after[i] == before[i] || (std::isnan(after[i]) && std::isnan(before[i]))));
    }
  };
  for (const Codec codec : {Codec::half, Codec::half_f16}) {
    check(double{}, codec);
    check(float{}, codec);
  }
}

TEST_CASE("codec: a number that would become infinite is an error") {
  const auto at_the_end = [](auto number) {
    std::vector<decltype(number)> all(100'000, 1);
    all.back() = number;
    return all;
  };
  check_error([&] { encoded(at_the_end(65520.0f), Codec::half_f16); },
              {"[snapshot] 65520", "too large for f16", "use Codec::half or Codec::exact"});
  CHECK_NOTHROW(encoded(at_the_end(65519.0f), Codec::half_f16));
  check_error([&] { encoded(at_the_end(-3.4e38f), Codec::half); },
              {"too large for bf16", "use Codec::exact"});
  check_error([&] { encoded(at_the_end(1e39), Codec::half); }, {"too large for f32"});
  CHECK_NOTHROW(encoded(at_the_end(HUGE_VAL), Codec::half));
}

TEST_CASE("codec: bytes that do not fit each other") {
  std::vector<std::byte> from(12);
  std::vector<std::byte> to(5);
  check_error([&] { encode(from, DType::f32, Codec::half, to); },
              {"12 bytes of f32", "5 bytes of bf16", "stored_bytes"});
  check_error([&] { decode(to, DType::f32, Codec::half, from); }, {"5 bytes of bf16"});
}

TEST_CASE("codec: keeping twice is keeping once") {
  rc::prop("as before", [](const std::vector<float>& before, bool f16) {
    const Codec codec = f16 ? Codec::half_f16 : Codec::half;
    std::vector<float> small;
    for (const float number : before) small.push_back(std::fmod(number, 60'000.0f));
    const std::vector<std::byte> bytes = encoded(small, codec);
    RC_ASSERT(encoded(decoded<float>(bytes, small.size(), codec), codec) == bytes);
  });
}

}  // namespace codec_test
