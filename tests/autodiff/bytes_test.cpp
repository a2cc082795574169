#include "autodiff/bytes.h"

#include <string>

#include "tests/catch.h"

namespace palimpsest::bytes_test {
namespace {

TEST_CASE("bytes are written with a binary unit and three digits") {
  const auto [bytes, text] = GENERATE(table<Bytes, std::string>({
      {0, "0 B"},
      {1023, "1023 B"},
      {1_KiB, "1.00 KiB"},
      {1_MiB + 512_KiB, "1.50 MiB"},
      {-10_MiB, "-10.0 MiB"},
      {256_MiB, "256 MiB"},
      {3_GiB, "3.00 GiB"},
      {1_MiB - 1, "1.00 MiB"},
      {1_MiB - 1_KiB, "1023 KiB"},
  }));
  CHECK(format_bytes(bytes) == text);
}

}  // namespace
}  // namespace palimpsest::bytes_test
