#include "checkpoint/stores/spill_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/stores/records.h"
#include "tests/temporary_directory.h"

namespace spill_damage_test {

using namespace palimpsest;
using Catch::Matchers::Contains;
using tests::Record;

namespace {

const tests::Sizes sizes{{100'000}, {400'000, DType::f32}};
constexpr std::uint32_t slot = 3;

/// A spill file with a record in slot 3, and another one in slot 2 before it.
class Damaged {
 public:
  explicit Damaged(bool compress) : file_(directory_.path(), sizes, {.compress = compress}) {
    const Record before(sizes, 7);
    write(2, 11, before);
    write(slot, 12, record_);
  }

  SpillFile& file() { return file_; }
  const Record& record() const { return record_; }

  void write(std::uint32_t into, std::uint64_t step, const Record& record) {
    file_.write(into, step, record.bytes());
    file_.wait(into);
  }
  /// The error message of reading slot 3; empty when the record is intact.
  std::string error(std::uint64_t step = 12) {
    Record read(sizes, 0);
    file_.prefetch(slot, step, read.room());
    try {
      file_.wait(slot);
    } catch (const FileError& error) {
      return error.what();
    }
    CHECK(read == record_);
    return "";
  }

  std::string content() const {
    std::ifstream stream(file_.path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void put(std::size_t offset, const std::string& bytes) {
    std::fstream stream(file_.path(), std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream << bytes;
  }

 private:
  TemporaryDirectory directory_;
  SpillFile file_;
  Record record_{sizes, 8};
};

/// All slots have the same size, a multiple of a page: the record and the headers of its two
/// blocks.
constexpr std::size_t slot_bytes = (500'000 + 2 * 64 + 4095) / 4096 * 4096;
constexpr std::size_t slot_begin = 4096 + slot * slot_bytes;
constexpr std::size_t header_bytes = 64;

}  // namespace

TEST_CASE("spill damage: any flipped bit is found, and named") {
  const bool compress = GENERATE(false, true);
  Damaged damaged(compress);
  CHECK(damaged.error() == "");
  const std::string content = damaged.content();
  int harmless = 0;
  const std::size_t dense_until = slot_begin + header_bytes + 20;
  for (std::size_t at = slot_begin; at < content.size(); at += at < dense_until ? 1 : 4099) {
    CAPTURE(at);
    damaged.put(at, {static_cast<char>(content[at] ^ 0x20)});
    const std::string error = damaged.error();
    if (error.empty()) {
      ++harmless;
    } else {
      CHECK_THAT(error, Contains("[spill] " + damaged.file().path() + ", byte "));
      CHECK_THAT(error, Contains("step 12 in slot 3"));
      CHECK_THAT(error, Contains("name another directory, and run again"));
    }
    damaged.put(at, {content[at]});
  }
  CHECK(damaged.error() == "");
  // Damage in the unused space after a compressed block is harmless.
  CHECK((harmless > 0) == compress);
}

TEST_CASE("spill damage: an earlier record, another slot's and another file's are not taken") {
  const bool compress = GENERATE(false, true);
  Damaged damaged(compress);
  const std::string before = damaged.content();
  damaged.write(slot, 12, damaged.record());
  damaged.put(slot_begin, before.substr(slot_begin));
  CHECK_THAT(damaged.error(), Contains("an earlier record is in its place"));
  damaged.put(slot_begin, before.substr(slot_begin - slot_bytes, slot_bytes));
  CHECK_THAT(damaged.error(), Contains("is missing"));
  const std::string others = Damaged(compress).content();
  damaged.put(slot_begin, others.substr(slot_begin));
  CHECK_THAT(damaged.error(), Contains("is damaged"));
  damaged.write(slot, 12, damaged.record());
  CHECK(damaged.error() == "");
}

TEST_CASE("spill damage: a file cut short") {
  const bool compress = GENERATE(false, true);
  Damaged damaged(compress);
  const std::size_t whole = damaged.content().size();
  for (const std::size_t size : {whole - 1, slot_begin + 100, slot_begin, std::size_t{0}}) {
    std::filesystem::resize_file(damaged.file().path(), size);
    const std::string error = damaged.error();
    CHECK_THAT(error, Contains("step 12 in slot 3 is truncated: the file ends here"));
    CHECK_THAT(error, Contains(", byte " + std::to_string(size)) ||
                          Contains(", byte " + std::to_string(slot_begin)));
  }
  // Records written from now on are readable; the others are not.
  damaged.write(slot, 13, damaged.record());
  CHECK(damaged.error(13) == "");
  Record room(sizes, 0);
  damaged.file().prefetch(2, 11, room.room());
  CHECK_THROWS_WITH(damaged.file().wait(2), Contains("step 11 in slot 2"));
}

TEST_CASE("spill damage: a deleted file is an error of the next writing or reading") {
  Damaged damaged(false);
  std::filesystem::remove(damaged.file().path());
  const std::string error = damaged.error();
  CHECK_THAT(error, Contains(damaged.file().path() + " was deleted"));
  CHECK_THAT(error, Contains("step 12 in slot 3"));
  CHECK_THAT(error, Contains("run again"));
  CHECK_THROWS_AS(damaged.write(0, 1, damaged.record()), FileError);
}

TEST_CASE("spill damage: another's file of the same name is not removed") {
  TemporaryDirectory directory;
  std::string path;
  {
    SpillFile file(directory.path(), {{8}});
    path = file.path();
    std::filesystem::remove(path);
    std::ofstream(path) << "another's";
  }
  CHECK(directory.files() == std::vector{path});
}

}  // namespace spill_damage_test
