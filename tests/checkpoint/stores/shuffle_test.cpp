#include "checkpoint/stores/shuffle.h"

#include <string>
#include <vector>

#include "tests/catch.h"

#include <rapidcheck/catch.h>

namespace shuffle_test {

using namespace palimpsest;

namespace {

std::string shuffled(const std::string& text, std::size_t width) {
  std::string to(text.size(), '\0');
  shuffle(std::as_bytes(std::span(text)), width, std::as_writable_bytes(std::span(to)));
  return to;
}

std::string unshuffled(const std::string& text, std::size_t width) {
  std::string to(text.size(), '\0');
  unshuffle(std::as_bytes(std::span(text)), width, std::as_writable_bytes(std::span(to)));
  return to;
}

}  // namespace

TEST_CASE("shuffle: bytes of one significance lie together, what is left over at the end") {
  CHECK(shuffled("abcd", 1) == "abcd");
  CHECK(shuffled("a1b2c3d", 2) == "abc123d");
  CHECK(shuffled("a123b456xyz", 4) == "ab142536xyz");
  CHECK(shuffled("a1234567b1234567", 8) == "ab11223344556677");
  CHECK(shuffled("abc", 4) == "abc");
  CHECK(shuffled("", 8).empty());
}

TEST_CASE("shuffle: it can be undone") {
  rc::prop("any bytes", [](const std::string& text) {
    for (const std::size_t width : {1, 2, 4, 8}) {
      RC_ASSERT(unshuffled(shuffled(text, width), width) == text);
    }
  });
}

}  // namespace shuffle_test
