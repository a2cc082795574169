#include <filesystem>
#include <fstream>
#include <set>

#include "strategy/loops/loop_journal.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/resumed_loop.h"
#include "tests/temporary_directory.h"

// Damage that is met while a loop runs.

namespace palimpsest::loop_resume_repair_test {

using namespace palimpsest::tests;

namespace {

/// Damages objects of a kind in the data file of a journal. Returns their number.
int damage(const std::string& journal, JournalEntry::Kind kind) {
  std::set<Bytes> places;
  const auto record = Journal::last_in({"scan", loop_journal_mark}, journal);
  for (const JournalEntry& entry : record->entries) {
    if (entry.kind == kind) places.insert(entry.extent.offset);
  }
  std::fstream file(journal + "/palimpsest-journal.data",
                    std::ios::in | std::ios::out | std::ios::binary);
  for (const Bytes place : places) {
    file.seekg(place);
    const char byte = static_cast<char>(file.get());
    file.seekp(place);
    file.put(static_cast<char>(byte ^ 0x10));
  }
  return static_cast<int>(places.size());
}

void copy_files(const std::string& from, const std::string& to) {
  std::filesystem::copy(
      from, to,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
}

}  // namespace

TEST_CASE("loops, resume: a stop while a damaged state on disk is made again loses nothing") {
  const ResumedLoop loop = resumed_way(2);
  const TemporaryDirectory directory(quick_folder());
  REQUIRE(stop_loop_after(65, loop, directory.path()));
  const std::string expected = found_by_loop(loop, "").bits;
  std::uint64_t repaired = 0;
  for (const int steps : {20, 24, 28}) {  // while a state is made again
    CAPTURE(steps);
    const TemporaryDirectory copy(quick_folder());
    copy_files(directory.path(), copy.path());
    CHECK(damage(copy.path() + "/palimpsest-loop-3-states", JournalEntry::Kind::on_disk) > 3);
    REQUIRE(stop_loop_after(steps, loop, copy.path()));
    const FoundByLoop found = found_by_loop(loop, copy.path());
    CHECK(found.bits == expected);
    repaired += found.report.loops.at(0).states_repaired;
  }
  CHECK(repaired > 0);
}

}  // namespace palimpsest::loop_resume_repair_test
