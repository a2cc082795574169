#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/reverse/journal.h"
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
