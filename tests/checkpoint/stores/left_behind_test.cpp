#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/stores/locked_file.h"
#include "checkpoint/stores/spill_file.h"
#include "tests/catch.h"
#include "tests/checkpoint/stores/records.h"
#include "tests/child_process.h"
#include "tests/temporary_directory.h"

namespace left_behind_test {

using namespace palimpsest;
using Catch::Matchers::Contains;
using tests::Record;

namespace {

const std::string mark = "palimpsest spill file 1\n";

void put(const std::string& path, const std::string& content) { std::ofstream(path) << content; }

bool is_there(const std::string& path) {
  return std::filesystem::exists(std::filesystem::symlink_status(path));
}

}  // namespace

TEST_CASE("left behind: files of ours that nobody holds are removed, and nothing else") {
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/";
  const std::string name = "palimpsest-0123456789abcdef.spill";
  SECTION("a file of ours") {
    put(folder + name, mark + std::string(5000, 'x'));
    CHECK(directory.files() == std::vector{folder + name});
    const LockedFile file(directory.path());
    CHECK(directory.files() == std::vector{file.path()});
  }
  SECTION("one whose process ended before the mark was whole") {
    const std::string content = GENERATE(std::string(), std::string("palimp"));
    put(folder + name, content);
    const LockedFile file(directory.path());
    CHECK_FALSE(is_there(folder + name));
  }
  SECTION("others' files") {
    const std::string other = GENERATE(
        as<std::string>{}, "palimpsest-0123456789abcde.spill", "palimpsest-0123456789abcdeF.spill",
        "notes.spill", "palimpsest-0123456789abcdef.spill.txt", "palimpsest-.spill");
    put(folder + other, mark);
    {
      const LockedFile file(directory.path());
    }
    CHECK(is_there(folder + other));
  }
  SECTION("a file of such a name with another content") {
    const std::string content =
        GENERATE(as<std::string>{}, "palimpsest spill file 2\nx", "my notes");
    put(folder + name, content);
    {
      const LockedFile file(directory.path());
    }
    CHECK(is_there(folder + name));
  }
  SECTION("a directory, a pipe, a link to a file of ours") {
    const std::string elsewhere = folder + "elsewhere";
    put(elsewhere, mark);
    const int kind = GENERATE(0, 1, 2);
    if (kind == 0) std::filesystem::create_directory(folder + name);
    if (kind == 1) REQUIRE(mkfifo((folder + name).c_str(), 0600) == 0);
    if (kind == 2) std::filesystem::create_symlink(elsewhere, folder + name);
    {
      const LockedFile file(directory.path());
    }
    CHECK(is_there(folder + name));
    CHECK(is_there(elsewhere));
  }
  SECTION("one in use") {
    put(folder + name, mark);
    const int holder = open((folder + name).c_str(), O_RDWR);
    REQUIRE(flock(holder, LOCK_EX | LOCK_NB) == 0);
    {
      const LockedFile file(directory.path());
    }
    CHECK(is_there(folder + name));
    close(holder);
    {
      const LockedFile file(directory.path());
    }
    CHECK_FALSE(is_there(folder + name));
  }
}

TEST_CASE("left behind: many that begin at once find each other's files in use") {
  const TemporaryDirectory directory;
  std::atomic<int> lost = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 150; ++k) {
        const LockedFile file(directory.path());
        if (file.deleted() || !is_there(file.path())) ++lost;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(lost == 0);
  CHECK(directory.files().empty());
}

TEST_CASE("child process: writes until it is killed", "[.]") {
  const tests::Sizes sizes{{300'000}};
  const Record record(sizes, 1);
  SpillFile file(ChildProcess::task(), sizes);
  for (std::uint32_t i = 0;; ++i) {
    file.write(i % 10, i, record.bytes());
    if (i % 7 == 6) file.finish();
  }
}

TEST_CASE("left behind: what a killed process has left goes with the next run") {
  const TemporaryDirectory directory;
  ChildProcess child("child process: writes until it is killed", directory.path());
  const auto written = [&] {
    const std::vector<std::string> files = directory.files();
    return !files.empty() && std::filesystem::file_size(files.front()) > 2'000'000;
  };
  for (int i = 0; i < 6000 && !written(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  REQUIRE(written());
  const std::string left = directory.files().front();
  {
    const SpillFile other(directory.path(), {{8}});
  }
  CHECK(is_there(left));

  child.kill();
  CHECK(is_there(left));
  SpillFile file(directory.path(), {{300'000}});
  CHECK(directory.files() == std::vector{file.path()});
  // The file does not serve the next run.
  Record room({{300'000}}, 0);
  CHECK_THROWS_AS(file.prefetch(0, 0, room.room()), ArgumentError);
}

TEST_CASE("left behind: directories in which no file can be made") {
  const TemporaryDirectory directory;
  const auto error_in = [](const std::string& path) -> std::string {
    try {
      const SpillFile file(path, {{8}});
    } catch (const FileError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(error_in(directory.path() + "/missing"), Contains("[spill]") &&
                                                          Contains("/missing'") &&
                                                          Contains("the directory does not exist"));
  CHECK_THAT(error_in(""), Contains("the directory does not exist"));
  put(directory.path() + "/file", "");
  CHECK_THAT(error_in(directory.path() + "/file"), Contains("it is not a directory"));
  CHECK_THAT(error_in("/proc/self"), Contains("/proc/self"));
  if (geteuid() != 0) {
    std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_read);
    CHECK_THAT(error_in(directory.path()), Contains("it is not writable"));
    std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all);
  }
}

}  // namespace left_behind_test
