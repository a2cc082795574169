#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/stores/disk_seconds.h"
#include "checkpoint/stores/spill_file.h"
#include "tests/catch.h"
#include "tests/checkpoint/stores/records.h"
#include "tests/child_process.h"
#include "tests/temporary_directory.h"

namespace spill_room_test {

using namespace palimpsest;
using Catch::Matchers::Contains;
using tests::Record;

namespace {

constexpr int not_possible_here = 77;
const tests::Sizes sizes{{300'000}};

/// Writes until the disk is full, which must be reported. Records written before must remain
/// readable, and so must records that overwrite them.
void fill(SpillFile& file, const std::string& reason, const std::string& cure) {
  const Record record(sizes, 1);
  Record room(sizes, 0);
  std::uint32_t slot = 0;
  std::string error;
  while (error.empty() && slot < 100) {
    file.write(slot, 10 * slot, record.bytes());
    file.write(slot, 10 * slot + 1, record.bytes());
    try {
      file.wait(slot);
      ++slot;
    } catch (const FileError&) {
      FAIL("a file error, where it is the room that ends");
    } catch (const EnvironmentError& caught) {
      error = caught.what();
    }
  }
  REQUIRE(slot > 1);
  REQUIRE(slot < 100);
  CHECK_THAT(error, Contains("[spill] " + file.path()));
  CHECK_THAT(error, Contains("step " + std::to_string(10 * slot) + " in slot " +
                             std::to_string(slot) + " cannot be written"));
  CHECK_THAT(error, Contains(reason));
  CHECK_THAT(error, Contains(cure));
  file.write(0, 5, record.bytes());
  file.prefetch(0, 5, room.room());
  CHECK_NOTHROW(file.finish());
  CHECK(room == record);
}

}  // namespace

TEST_CASE("spill room: a limit for files is an error, no signal") {
  const TemporaryDirectory directory;
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low{.rlim_cur = 1'000'000, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  {
    SpillFile file(directory.path(), sizes);
    fill(file, "File too large", "`ulimit -f`");
  }
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(directory.files().empty());
}

TEST_CASE("child process: a small disk", "[.]") {
  const std::string directory = ChildProcess::task();
  // Mounts a file system that only this process sees. If that is not permitted, skips the test.
  const bool own = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  if (!own || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", directory.c_str(), "tmpfs", 0, "size=2m") != 0) {
    _exit(not_possible_here);
  }
  const bool compress = GENERATE(false, true);
  {
    SpillFile file(directory, sizes, {.compress = compress});
    fill(file, "No space left on device, ", "free disk space, name another directory");
  }
  CHECK(measure_disk(directory, 100'000, 500'000).write > 0);
  CHECK_THROWS_AS(measure_disk(directory, 4'000'000, 4'000'000), EnvironmentError);
}

TEST_CASE("spill room: a full disk") {
  const TemporaryDirectory directory;
  const int code = ChildProcess("child process: a small disk", directory.path()).wait();
  if (code == not_possible_here) WARN("no small disk can be made here");
  CHECK((code == 0 || code == not_possible_here));
}

}  // namespace spill_room_test
