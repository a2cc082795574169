#include "autodiff/convert.h"

#include <bit>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace palimpsest::convert_test {
namespace {

template <class From, class To>
std::vector<To> converted(std::vector<From>& from) {
  std::vector<To> to(from.size());
  const auto operand = []<class T>(std::vector<T>& all) {
    return Operand{.data = reinterpret_cast<std::byte*>(all.data()),
                   .type = {{static_cast<std::int64_t>(all.size())}, dtype_of<T>()}};
  };
  convert(operand(from), operand(to));
  return to;
}

/// Compares bits, because NaN is not equal to itself.
std::uint32_t bits(float number) { return std::bit_cast<std::uint32_t>(number); }
std::uint32_t bits(BFloat16 number) { return number.bits; }
std::uint32_t bits(Float16 number) { return number.bits; }

template <class From, class To>
void check_as_one_by_one(std::vector<From> from) {
  const std::vector<To> to = converted<From, To>(from);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    wrong += bits(to[i]) != bits(convert_element<To>(from[i]));
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("convert: arrays give the bits of their elements, one by one", "[convert]") {
  std::mt19937 random(1);
  std::vector<float> numbers(1'000'000);
  for (float& number : numbers) number = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  // Numbers around every finite 16-bit number, including ties and both ends of the range.
  for (std::uint32_t half = 0; half < 0x8000; ++half) {
    for (const std::uint32_t step : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
      numbers.push_back(std::bit_cast<float>(0x33000000u + (half << 13) + step));
      numbers.push_back(std::bit_cast<float>(0x80000000u + (half << 16) + step));
    }
  }
  check_as_one_by_one<float, BFloat16>(numbers);
  check_as_one_by_one<float, Float16>(numbers);

  std::vector<Float16> halves(0x10000);
  std::vector<BFloat16> brains(0x10000);
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    halves[i].bits = static_cast<std::uint16_t>(i);
    brains[i].bits = static_cast<std::uint16_t>(i);
  }
  check_as_one_by_one<Float16, float>(halves);
  check_as_one_by_one<BFloat16, float>(brains);
}

}  // namespace palimpsest::convert_test
