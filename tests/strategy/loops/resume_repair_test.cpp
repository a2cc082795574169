#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "checkpoint/reverse/journal_bytes.h"
#include "strategy/loops/loop_journal.h"
#include "tests/catch.h"
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

TEST_CASE("loops, resume: a rounded state damaged after the journal was opened is an error") {
  const ResumedLoop loop = resumed_way(6);
  const TemporaryDirectory directory(quick_folder());
  REQUIRE(stop_loop_after(80, loop, directory.path()));
  const std::string expected = [&] {
    const TemporaryDirectory copy(quick_folder());
    copy_files(directory.path(), copy.path());
    return found_by_loop(loop, copy.path()).bits;
  }();
  using Kind = JournalEntry::Kind;
  int errors = 0;
  for (const Kind kind : {Kind::in_memory, Kind::state}) {
    for (const int call : {1, 2, 3, 4, 6}) {
      CAPTURE(kind, call);
      const TemporaryDirectory copy(quick_folder());
      copy_files(directory.path(), copy.path());
      ResumedLoop damaged = loop;
      auto calls = std::make_shared<std::atomic<int>>(0);
      damaged.progress = on_progress([&, calls](const RunProgress&) {
        if (++*calls == call) damage(copy.path() + "/palimpsest-loop-3-states", kind);
      });
      try {
        const std::string bits = found_by_loop(damaged, copy.path()).bits;
        CHECK(bits == expected);
      } catch (const FileError& error) {
        ++errors;
        CHECK_THAT(error.what(), Catch::Matchers::Contains("has been changed (recorded at "));
      }
    }
  }
  CHECK(errors > 0);
}

TEST_CASE("loops, resume: a finished journal keeps the hashes of states") {
  ResumedLoop loop = resumed_way(0);
  const TemporaryDirectory directory(quick_folder());
  const std::string expected = found_by_loop(loop, directory.path()).bits;
  const auto record =
      Journal::last_in({"scan", loop_journal_mark}, directory.path() + "/palimpsest-loop-3-states");
  REQUIRE(record);
  CHECK(record->is_finished);
  const auto hashes =
      std::ranges::find(record->entries, JournalEntry::Kind::hashes, &JournalEntry::kind);
  REQUIRE(hashes != record->entries.end());
  CHECK(hashes->extent.bytes == loop.steps * 8);
}

TEST_CASE("loops, resume: every part repeats the division of memory of a killed process") {
  const auto found = [](bool has_two_parts, const std::string& directory, RunOptions run) {
    Tape tape;
    const Var u = tape.parameter(wave(64).reshape({8, 8}));
    const Var x = scan(
        u, 60, [](const Var& x, const StepNumber&) { return tanh(matmul(x, x) + sum(x, 0)); },
        recorded_often({.memory_budget = 30'000, .resume = directory}));
    if (!has_two_parts) return backward(sum(x), run)[u].clone();
    const Var first = gradient(sum(x * x), {u})[0];
    const Var second = gradient(sum(x), {u})[0];
    return backward(sum(first * second), run)[u].clone();
  };
  for (const bool has_two_parts : {false, true}) {
    CAPTURE(has_two_parts);
    const TemporaryDirectory directory(quick_folder());
    const Tensor expected = found(has_two_parts, "", {.threads = 1});
    for (const int threads : {1, 2, 4}) {
      // 142 of at least 180 steps, so that no order of the two parts ends both journals.
      const int steps = has_two_parts && threads == 1 ? 62 : 40;
      REQUIRE(is_stopped_after(steps, [&](std::stop_token stop, auto progress) {
        found(has_two_parts, directory.path(),
              {.threads = threads, .stop = std::move(stop), .progress = std::move(progress)});
      }));
    }
    int unfinished = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      const auto record = Journal::last_in({"scan", loop_journal_mark}, entry.path().native());
      if (!record || record->is_finished) continue;
      ++unfinished;
      CHECK(record->position_as<LoopPosition>().room > 10'000);
    }
    CHECK(unfinished > 0);
    CHECK(same_bits(found(has_two_parts, directory.path(), {.threads = 3}), expected));
  }
}

TEST_CASE("loops, resume: records of another version are no damage") {
  const ResumedLoop loop = resumed_way(0);
  const TemporaryDirectory directory(quick_folder());
  const std::string journal = directory.path() + "/palimpsest-loop-3-states";
  std::filesystem::create_directories(journal);
  JournalWriter writer;
  writer.text("palimpsest loop journal 0\n");
  writer.number(0);
  const std::vector<std::byte> content = writer.with_hash();
  std::ofstream(journal + "/palimpsest-journal-1.record", std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()), std::ssize(content));
  std::string message;
  try {
    found_by_loop(loop, directory.path());
  } catch (const FileError& error) {
    message = error.what();
  }
  CHECK_THAT(message, Catch::Matchers::Contains("was written by another version of the library"));
  CHECK_THAT(message, Catch::Matchers::Contains("finish that run with the version that began it"));
}

}  // namespace palimpsest::loop_resume_repair_test
