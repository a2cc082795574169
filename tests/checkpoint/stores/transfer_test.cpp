#include "checkpoint/stores/transfer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace transfer_test {

using namespace palimpsest;

namespace {

/// An open file.
class File {
 public:
  File(const std::string& path, int flags) : descriptor_(open(path.c_str(), flags, 0600)) {
    REQUIRE(descriptor_ >= 0);
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Cuts `text` into pieces of 0, 1, 2, … bytes.
std::vector<iovec> cut(std::string& text) {
  std::vector<iovec> pieces;
  std::size_t first = 0;
  for (std::size_t size = 0; first < text.size(); first += size, ++size) {
    pieces.push_back({text.data() + first, std::min(size, text.size() - first)});
  }
  return pieces;
}

}  // namespace

TEST_CASE("transfer: more pieces than one call takes, there and back") {
  TemporaryFile temporary;
  const File file(temporary.path(), O_RDWR | O_CREAT | O_TRUNC);
  std::string written(3'000'000, ' ');
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<char>(i * i >> 3);
  const std::vector<iovec> from = cut(written);
  REQUIRE(from.size() > 2000);
  const Transfer there = write_at(file.descriptor(), 5, from);
  CHECK(there.error == 0);
  CHECK(there.bytes == 3'000'000);

  std::string read(written.size(), '\0');
  const Transfer back = read_at(file.descriptor(), 5, cut(read));
  CHECK(back.error == 0);
  CHECK(back.bytes == 3'000'000);
  CHECK(read == written);
}

TEST_CASE("transfer: the end of a file is no error, and no more is read") {
  TemporaryFile temporary;
  temporary.write("0123456789");
  const File file(temporary.path(), O_RDONLY);
  std::string read(8, '.');
  const Transfer done = read_at(file.descriptor(), 7, cut(read));
  CHECK(done.error == 0);
  CHECK(done.bytes == 3);
  CHECK(read == "789.....");
}

TEST_CASE("transfer: a full disk, a limit and a file that may not be written") {
  std::string text = "text";
  const std::vector<iovec> pieces = cut(text);
  CHECK(write_at(File("/dev/full", O_WRONLY).descriptor(), 0, pieces).error == ENOSPC);

  TemporaryFile temporary;
  temporary.write("");
  CHECK(write_at(File(temporary.path(), O_RDONLY).descriptor(), 0, pieces).error == EBADF);

  const File file(temporary.path(), O_RDWR);
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low{.rlim_cur = 100, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  const Transfer within = write_at(file.descriptor(), 96, pieces);
  const Transfer beyond = write_at(file.descriptor(), 97, pieces);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(within.error == 0);
  CHECK(beyond.error == EFBIG);
}

}  // namespace transfer_test
