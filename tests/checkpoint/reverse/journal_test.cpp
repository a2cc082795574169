#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/reverse/journal.h"
#include "checkpoint/reverse/reverse_position.h"
#include "checkpoint/reverse/snapshot_codec.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace reverse_journal_test {

namespace {

/// The directories that were synchronized, and the one for which that fails. Other tests have
/// several threads that synchronize.
std::mutex mutex_of_synchronized;
std::vector<std::string> synchronized;
std::string failing;

std::string path_of(int file) {
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)).native();
}

}  // namespace

/// The library's calls come here too.
extern "C" int fsync(int file) {
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
    const std::lock_guard lock(mutex_of_synchronized);
    synchronized.push_back(path_of(file));
    if (synchronized.back() == failing) {
      errno = EIO;
      return -1;
    }
  }
  return static_cast<int>(syscall(SYS_fsync, file));
}

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::uint64_t steps = 60;

ReverseOptions options_in(const std::string& directory) {
  return {
      .steps = steps, .resume = directory, .tag = "row 1", .record_every = std::chrono::hours(1)};
}

void add_finished(Journal& journal, int records) {
  for (; records > 0; --records) {
    journal.add(std::uint64_t{0}, true, {});
  }
}

}  // namespace

TEST_CASE("reverse, journal: tolerances that differ in late digits are different runs") {
  const TemporaryDirectory directory(quick_folder());
  ReverseOptions options = options_in(directory.path());
  options.codec = ReverseCodec::zfp;
  options.tolerance = 1e-7;
  options.stop_after = std::chrono::seconds(0);
  bool has_ended = true;
  try {
    has_ended = found_by_driver(steps, 40, options).adjoint.has_value();
  } catch (const ArgumentError& error) {
    CHECK_THAT(error.what(), Catch::Matchers::Contains("install libzfp-dev"));
    return;
  }
  REQUIRE(!has_ended);
  options.tolerance = 1e-9;
  check_error([&] { found_by_driver(steps, 40, options); },
              {"is of another run", "it has tolerance 0x1.ad7f29abcaf48p-24"});

  const Numbers numbers = Row().start(200);
  const auto state = std::as_bytes(std::span(numbers));
  const auto fine = make_snapshot_codec({.codec = ReverseCodec::zfp, .tolerance = 1e-7}, DType::f64,
                                        0, Where::current());
  const auto coarse = make_snapshot_codec({.codec = ReverseCodec::zfp, .tolerance = 1e-3},
                                          DType::f64, 0, Where::current());
  std::vector<std::byte> encoded(static_cast<std::size_t>(fine->most(std::ssize(state))));
  encoded.resize(static_cast<std::size_t>(fine->encode(state, encoded)));
  std::vector<std::byte> decoded(state.size());
  CHECK(fine->decode(encoded, decoded));
  CHECK(!coarse->decode(encoded, decoded));
}

TEST_CASE("reverse, journal: adjoints that another process could not take are rejected") {
  const TemporaryDirectory directory(quick_folder());
  const auto run = [&]<class Adjoint>(Adjoint adjoint, const ReverseOptions& options) {
    ReverseFunctions<Numbers, Adjoint> functions{
        .advance = [](Numbers&, std::uint64_t) {},
        .reverse = [](Numbers&, Adjoint&, std::uint64_t) {},
        .seed = [adjoint](Numbers&) { return adjoint; }};
    Numbers u(3);
    return ReverseDriver(functions, options).run(u).has_value();
  };
  Numbers memory(3);
  const std::span<double> row(memory);
  const ReverseOptions options = options_in(directory.path());
  for (const char* words : {"give save_adjoint and load_adjoint", "type that owns its memory"}) {
    check_error([&] { run(row, options); }, {words});
    check_error([&] { run(std::vector{row}, options); }, {words});
  }
  for (const std::string& file : directory.files()) CHECK(!file.ends_with(".record"));
  CHECK(run(row, {.steps = steps}));
  CHECK(run(std::vector<Numbers>{{1, 2}, {}}, options));
}

TEST_CASE("reverse, journal: a new run removes the records of a finished one in order") {
  const TemporaryDirectory directory;
  {
    Journal journal(reverse_journal, directory.path(), {"one"}, Where::current());
    journal.start();
    add_finished(journal, 2);
  }
  Journal journal(reverse_journal, directory.path(), {"other"}, Where::current());
  const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(events >= 0);
  REQUIRE(inotify_add_watch(events, directory.path().c_str(), IN_DELETE) >= 0);
  journal.start();
  alignas(inotify_event) std::array<char, 4096> buffer;
  const ssize_t size = read(events, buffer.data(), buffer.size());
  close(events);
  std::vector<std::string> removed;
  for (ssize_t at = 0; at < size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
    removed.emplace_back(event->name);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  CHECK(removed ==
        std::vector<std::string>{"palimpsest-journal-1.record", "palimpsest-journal-2.record"});
}

TEST_CASE("reverse, journal: names of records and of new directories are durable") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/a/b";
  synchronized.clear();
  Journal journal(reverse_journal, path + "/", {"one"}, Where::current());
  for (const std::string& parent : {directory.path(), directory.path() + "/a"}) {
    CHECK(std::ranges::count(synchronized, parent) == 1);
  }
  journal.start();
  synchronized.clear();
  add_finished(journal, 1);
  CHECK(synchronized == std::vector{path});
  failing = path;
  std::string message;
  try {
    add_finished(journal, 1);
  } catch (const FileError& error) {
    message = error.what();
  }
  failing.clear();
  CHECK_THAT(message, Catch::Matchers::Contains("'" + path + "' cannot be written to the disk"));
}

namespace {

/// Ends a run that has records after some steps of its reversal.
void end_in_reversal(ReverseOptions options) {
  options.record_every = std::chrono::seconds(0);
  std::stop_source stop;
  options.stop = stop.get_token();
  Row row{.steps = steps};
  ReverseFunctions<Numbers> functions = row.functions();
  functions.reverse = [&](Numbers& u, Numbers& a, std::uint64_t n) {
    row.reverse(u, a, n);
    if (n == 40) stop.request_stop();
  };
  Numbers u = row.start(40);
  REQUIRE(!ReverseDriver(functions, options).run(u));
}

std::vector<std::string> records_in(const TemporaryDirectory& directory) {
  std::vector<std::string> records;
  for (const std::string& file : directory.files()) {
    if (file.ends_with(".record")) records.push_back(file);
  }
  return records;
}

/// Changes the plan in a record, with the hash that belongs to it.
void change_plan(const std::string& path, const JournalPosition& from, const JournalPosition& to) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes_of = [](const JournalPosition& position) {
    return std::string(reinterpret_cast<const char*>(&position), sizeof position);
  };
  const std::size_t at = text.find(bytes_of(from));
  REQUIRE(at != std::string::npos);
  text.replace(at, sizeof to, bytes_of(to));
  const std::size_t body = text.size() - sizeof(Hash128);
  const Hash128 hash = hash_bytes_128(std::as_bytes(std::span(text)).first(body));
  std::memcpy(text.data() + body, &hash, sizeof hash);
  file.clear();
  file.seekp(0);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace

TEST_CASE("reverse, journal: a run that another version planned otherwise is refused") {
  const TemporaryDirectory directory(quick_folder());
  const ReverseOptions options = options_in(directory.path());
  end_in_reversal(options);
  const std::vector<std::string> records = records_in(directory);
  REQUIRE(records.size() == 2);
  std::filesystem::remove(std::min(records[0], records[1]));
  const std::string last = std::max(records[0], records[1]);
  const auto record = Journal::last_in(reverse_journal, directory.path());
  REQUIRE(record.has_value());
  const auto planned = record->position_as<JournalPosition>();
  JournalPosition other = planned;
  const auto check_refused = [&] {
    change_plan(last, planned, other);
    check_error([&] { found_by_driver(steps, 40, options); },
                {"was planned with", "and this process would have",
                 "continue with the versions of the libraries that began it"});
    change_plan(last, std::exchange(other, planned), planned);
  };
  ++other.snapshots;
  check_refused();
  ++other.segment;
  check_refused();
  ++other.slot_bytes;
  check_refused();
  ++other.planned_write_cost;
  check_refused();
  const Found found = found_by_driver(steps, 40, options);
  CHECK(found == plainly(steps, 40));
  CHECK(found.report.resumed_at.has_value());
}

TEST_CASE("reverse, journal: what cannot be read for a moment is not taken for missing") {
  const TemporaryDirectory directory(quick_folder());
  const ReverseOptions options = options_in(directory.path());
  end_in_reversal(options);
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  REQUIRE(next >= 0);
  close(next);
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  // The lock and the data take two numbers of files; a record or the list of them takes another.
  const rlimit low{.rlim_cur = static_cast<rlim_t>(next) + 2, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  std::string message;
  try {
    found_by_driver(steps, 40, options);
  } catch (const FileError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK_THAT(message, Catch::Matchers::Contains("cannot be read: Too many open files"));
  const Found found = found_by_driver(steps, 40, options);
  CHECK(found == plainly(steps, 40));
  CHECK(found.report.resumed_at.has_value());
}

TEST_CASE("reverse, journal: spill and resume name one directory, however it is written") {
  const TemporaryDirectory directory(quick_folder());
  ReverseOptions options = options_in(directory.path() + "/new/./");
  options.spill = directory.path() + "/new";
  Row row{.steps = steps};
  Numbers u = row.start(40);
  const ReverseForecast forecast = ReverseDriver(row.functions(), options).forecast(u);
  CHECK(forecast.steps == steps);
  CHECK(std::filesystem::is_directory(options.spill));
  CHECK(found_by_driver(steps, 40, options) == plainly(steps, 40));
}

}  // namespace reverse_journal_test
