#include "checkpoint/stores/disk_seconds.h"

#include <chrono>
#include <cmath>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace disk_seconds_test {

using namespace palimpsest;

TEST_CASE("disk seconds: positive, soon there, and nothing is left") {
  const TemporaryDirectory directory;
  const Bytes bytes = GENERATE(8_B, 8_KiB, 3_MiB, 1_GiB);
  const Bytes total = GENERATE(0_B, 1_MiB, 1_GiB, 1024 * 1024_GiB);
  CAPTURE(bytes, total);
  const auto start = std::chrono::steady_clock::now();
  const DiskSeconds seconds = measure_disk(directory.path(), bytes, total);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  CHECK(std::isfinite(seconds.write));
  CHECK(std::isfinite(seconds.read));
  CHECK(seconds.write > 0);
  CHECK(seconds.read > 0);
  CHECK(taken.count() < 10);  // generous, as the machine may be busy
  CHECK(directory.files().empty());
}

TEST_CASE("disk seconds: what cannot be measured") {
  const TemporaryDirectory directory;
  check_error([&] { measure_disk(directory.path(), 0, 1); }, {"0 bytes", "positive"});
  check_error([&] { measure_disk(directory.path(), 1, -1); }, {"-1 in total"});
  CHECK_THROWS_AS(measure_disk(directory.path() + "/missing", 8, 8), FileError);
}

}  // namespace disk_seconds_test
