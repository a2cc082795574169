#include "strategy/run/address_row.h"

#include <array>

#include "tests/catch.h"

namespace palimpsest::address_row_test {
namespace {

TEST_CASE("addresses of a row of runs: in a row up or down, in turns, and the same") {
  std::array<std::byte, 400> memory;
  std::array<std::byte, 8> other;
  std::byte* up = nullptr;
  std::byte* down = nullptr;
  std::byte* in_turns = nullptr;
  std::byte* same = other.data();
  std::byte** const places[] = {&up, &down, &in_turns, &same};
  const auto set = [&](std::uint32_t run) {
    up = &memory[24 * run];
    down = &memory[390 - 8 * run];
    in_turns = run % 2 == 0 ? &other[3] : &memory[1];
  };
  AddressRow row;
  for (int time = 0; time < 2; ++time) {
    row.learn(places, set);
    for (std::uint32_t run = 0; run < 15; ++run) {
      row.next();
      const std::array found{up, down, in_turns, same};
      set(run);
      CHECK(found == std::array{up, down, in_turns, same});
    }
  }
}

}  // namespace
}  // namespace palimpsest::address_row_test
