#include "autodiff/files.h"

#include <filesystem>
#include <ostream>
#include <stdexcept>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/named_pipe.h"
#include "tests/temporary_directory.h"

namespace palimpsest::files_test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a file that is replaced keeps its rights") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  write_file(path, "old", "test");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file(path, "new", "test");
  CHECK(read_file(path, "test") == "new");
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(directory.files().size() == 1);
}

TEST_CASE("a link stays one when what it names is written") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  const std::string link = directory.path() + "/link";
  fs::create_symlink("file", link);
  for (const char* content : {"made", "replaced"}) {
    write_file(link, content, "test");
    CHECK(fs::is_symlink(link));
    CHECK(read_file(path, "test") == content);
    CHECK(directory.files().size() == 2);
  }
}

TEST_CASE("a file stays as it was when what writes it throws") {
  const auto folder = GENERATE(as<std::string>(), "/tmp", quick_folder());
  const TemporaryDirectory directory(folder);
  const std::string path = directory.path() + "/file";
  write_file(path, "old", "test");
  const auto write = [](std::ostream& file) {
    file << "half";
    throw std::length_error("no more");
  };
  CHECK_THROWS_AS(write_file(path, write, "test"), std::length_error);
  CHECK(read_file(path, "test") == "old");
  CHECK(directory.files().size() == 1);
}

TEST_CASE("what is no regular file is written directly") {
  CHECK_NOTHROW(write_file("/dev/null", "lost", "test"));
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_AS(write_file("/dev/full", "too much", "test"), FileError);
}

TEST_CASE("files that cannot be written or read are named") {
  const TemporaryDirectory directory;
  for (const std::string& path :
       {directory.path() + "/none/file", directory.path(), std::string()}) {
    INFO(path);
    CHECK_THROWS_AS(write_file(path, "lost", "test"), FileError);
    CHECK_THROWS_AS(read_file(path, "test"), FileError);
  }
  CHECK_THROWS_WITH(read_file(directory.path() + "/none", "test"),
                    Catch::Matchers::Contains("[test] cannot open " + directory.path() + "/none"));
}

TEST_CASE("a pipe that nothing writes to is not read") {
  const NamedPipe pipe;
  CHECK_THROWS_AS(read_file(pipe.path(), "test"), FileError);
  CHECK_THROWS_WITH(read_file(pipe.path(), "test"),
                    Catch::Matchers::Contains("[test] " + pipe.path() + " is not a regular file"));
}

}  // namespace
}  // namespace palimpsest::files_test
