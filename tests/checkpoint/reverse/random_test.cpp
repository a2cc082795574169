#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <optional>
#include <random>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

#include "autodiff/error.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/random_chain.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

// Random chains, options, stops and kills. A case is made of a seed. One that fails is made simpler
// as long as it fails.

namespace reverse_random_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

/// Ends a run early, at the call of a function with this number.
struct End {
  enum class By : std::uint8_t { exception, kill, stop, stop_after };
  By by = By::exception;
  std::uint64_t calls = 0;
};

struct Case {
  std::uint64_t steps = 0;
  std::size_t size = 1;
  Sizes sizes = Sizes::equal;
  bool knows_length = true;
  bool sizes_change = false;
  bool spills = false;
  DiskCosts costs = {1, 1};
  ReverseCodec codec = ReverseCodec::none;
  bool checks = false;
  std::uint64_t states = 0;  ///< that fit in addition to what the smallest budget has
  Bytes tape = 0;            ///< per step; 0: one step is reversed at a time
  bool resumes = false;
  int record_every = 0;  ///< in microseconds; negative: only a stop makes records
  std::vector<End> ends = {};

  bool is_lossy() const { return codec == ReverseCodec::half; }
};

std::string to_string(const Case& c) {
  std::ostringstream text;
  text << c.steps << (c.knows_length ? "" : " unknown") << " steps of " << c.size << " numbers ("
       << names_of_sizes[static_cast<int>(c.sizes)] << "), " << c.states << " states more, codec "
       << static_cast<int>(c.codec);
  if (c.sizes_change) text << ", sizes_change";
  if (c.spills) text << ", spill at " << c.costs.write << " and " << c.costs.read;
  if (c.checks) text << ", check";
  if (c.tape > 0) text << ", segments of " << c.tape << " bytes per step";
  if (c.resumes) text << ", resume with records every " << c.record_every << " us";
  constexpr const char* names[] = {"exception", "kill", "stop", "stop_after"};
  for (const End& end : c.ends) {
    text << ", " << names[static_cast<int>(end.by)] << " at call " << end.calls;
  }
  return text.str();
}

Case case_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto one_in = [&](std::uint64_t n) { return below(n) == 0; };
  Case c;
  constexpr std::uint64_t few[] = {0, 1, 2, 3, 5};
  c.steps = one_in(3) ? few[below(5)] : one_in(12) ? 100 + below(200) : 5 + below(40);
  constexpr std::size_t sizes[] = {1, 2, 3, 7, 33, 128, 501};
  c.size = sizes[below(std::size(sizes))];
  if (one_in(2)) c.sizes = static_cast<Sizes>(below(5));
  c.knows_length = !one_in(3);
  c.sizes_change = one_in(c.sizes == Sizes::equal ? 6 : 2);
  c.spills = one_in(3);
  c.costs = {static_cast<double>(below(9)), static_cast<double>(below(9))};
  constexpr ReverseCodec codecs[] = {ReverseCodec::none, ReverseCodec::none, ReverseCodec::zstd,
                                     ReverseCodec::half};
  c.codec = codecs[below(4)];
  c.checks = !c.is_lossy() && one_in(4);
  constexpr std::uint64_t more[] = {0, 0, 1, 2, 4, 9, 1000};
  c.states = more[below(std::size(more))];
  if (one_in(4)) c.tape = static_cast<Bytes>(1 + below(2 * c.size * sizeof(double)));
  c.resumes = one_in(2);
  constexpr int records[] = {0, 100, 2000, -1};
  c.record_every = records[below(4)];
  const std::uint64_t ends = c.resumes ? below(4) : below(2);
  for (std::uint64_t i = 0; i < ends; ++i) {
    // The calls of one run, so that it ends before its end in most cases.
    const std::uint64_t calls = below(3 * c.steps + 3);
    constexpr End::By ways[] = {End::By::exception, End::By::exception, End::By::stop,
                                End::By::stop_after, End::By::kill};
    const End::By by = ways[below(5)];
    const bool may_stop_after = c.resumes || by != End::By::stop_after;
    c.ends.push_back({may_stop_after ? by : End::By::stop, calls});
  }
  return c;
}

ReverseOptions options_of(const Case& c, const std::string& directory) {
  ReverseOptions options;
  const RandomChain chain(c.steps, c.size, c.sizes);
  if (c.knows_length) options.steps = c.steps;
  options.tape_bytes_per_step = c.tape;
  options.sizes_change = c.sizes_change;
  const auto largest = static_cast<Bytes>(chain.largest_size() * sizeof(double));
  if (!c.sizes_change || c.codec != ReverseCodec::none) options.largest_state = largest;
  if (c.spills) {
    options.spill = directory;
    options.disk_costs = c.costs;
  }
  options.codec = c.codec;
  options.sampled_segments = 2;
  options.check = c.checks;
  if (c.resumes) {
    options.resume = directory;
    options.tag = "random 1";
    options.record_every = c.record_every < 0 ? std::chrono::duration<double>(std::chrono::hours(1))
                                              : std::chrono::microseconds(c.record_every);
  }
  return options;
}

struct Ended {};

/// One run, which `end` may end.
Found run_once(const Case& c, ReverseOptions options, const End* end) {
  RandomChain chain(c.steps, c.size, c.sizes);
  std::stop_source stop;
  options.stop = stop.get_token();
  if (end != nullptr && end->by == End::By::stop_after) {
    options.stop_after = std::chrono::microseconds(5 * end->calls);
  }
  std::uint64_t calls = 0;
  const auto before_call = [&] {
    if (end == nullptr || calls++ != end->calls) return;
    if (end->by == End::By::exception) throw Ended();
    if (end->by == End::By::kill) ::kill(::getpid(), SIGKILL);
    if (end->by == End::By::stop) stop.request_stop();
  };
  ReverseDriver driver(chain.functions(c.knows_length, c.tape > 0, before_call), options);
  Numbers u = chain.start();
  Found found;
  try {
    found = {driver.run(u), chain.loss, chain.gradient, driver.report()};
  } catch (const Ended&) {
    return {};
  } catch (const StoppedError&) {
    return {};
  }
  if (found.report.steps_advanced != chain.advanced) {
    throw std::runtime_error("the report counts " + std::to_string(found.report.steps_advanced) +
                             " steps and not " + std::to_string(chain.advanced));
  }
  const auto tape = static_cast<Bytes>(chain.longest_segment) * options.tape_bytes_per_step;
  if (tape > options.memory_budget) throw std::runtime_error("a segment is longer than it may be");
  return found;
}

/// A run in a process of its own, which is killed.
void run_and_kill(const Case& c, const ReverseOptions& options, const End& end) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      run_once(c, options, &end);
    } catch (const std::exception& error) {
      std::fputs(error.what(), stderr);
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    throw std::runtime_error("a run in a process of its own failed");
  }
}

Bytes smallest_budget_of(const Case& c, ReverseOptions options) {
  options.memory_budget = 1;
  try {
    run_once(c, options, nullptr);
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
  throw std::runtime_error("a budget of one byte is enough");
}

void require(bool holds, const std::string& problem) {
  if (!holds) throw std::runtime_error(problem);
}

/// Compares a whole run with its forecast.
void check_forecast(const Case& c, const ReverseOptions& options, const Found& found) {
  RandomChain chain(c.steps, c.size, c.sizes);
  const ReverseDriver driver(chain.functions(c.knows_length, c.tape > 0, [] {}), options);
  Numbers u = chain.start();
  const ReverseForecast forecast = driver.forecast(u);
  const ReverseReport& report = found.report;
  require(forecast.bytes <= options.memory_budget, "the forecast exceeds the budget");
  const bool is_by_bytes = c.sizes_change || (c.codec == ReverseCodec::zstd && !c.spills);
  if (!c.knows_length || is_by_bytes) return;
  const auto same = [&](const char* what, std::uint64_t expected, std::uint64_t is) {
    require(expected == is, std::to_string(expected) + " " + what + " are forecast, and " +
                                std::to_string(is) + " are taken");
  };
  same("steps advanced again", forecast.steps_advanced_again, report.steps_advanced_again);
  same("states", forecast.states_in_memory, report.states_in_memory);
  same("writes", forecast.disk_writes, report.disk_writes);
  same("reads", forecast.disk_reads, report.disk_reads);
  require(report.peak_bytes <= forecast.bytes, "more bytes are taken than forecast");
}

/// Throws `std::runtime_error` for a broken promise, and whatever a run throws.
void check(const Case& c) {
  const TemporaryDirectory directory(quick_folder());
  const TemporaryDirectory other(quick_folder());
  ReverseOptions whole_options = options_of(c, other.path());
  const auto state = static_cast<Bytes>(c.size * sizeof(double));
  const Bytes budget =
      smallest_budget_of(c, whole_options) + static_cast<Bytes>(c.states) * (state + 1000);
  whole_options.memory_budget = budget;
  const Found whole = run_once(c, whole_options, nullptr);
  const auto check_found = [&](const Found& found, const char* which) {
    const auto fail = [&](const char* problem) {
      throw std::runtime_error(std::string(which) + problem);
    };
    if (!found.adjoint) fail(" has no result");
    if (!c.is_lossy() && found != RandomChain(c.steps, c.size, c.sizes).plain()) {
      fail(" has other bits than the plain reversal");
    }
    if (found != whole) fail(" has other bits than a whole run");
    if (!found.report.finished || found.report.steps != c.steps) fail(" reports other steps");
    if (found.report.peak_bytes > budget) fail(" takes more bytes than the budget");
  };
  check_found(whole, "a whole run");
  require(whole.report.steps_reversed == c.steps, "not all steps are reversed");
  require(c.is_lossy() || whole.report.steps_advanced ==
                              whole.report.steps_advanced_again + (c.steps == 0 ? 0 : c.steps),
          "steps are advanced that are not counted");
  check_forecast(c, whole_options, whole);
  ReverseOptions options = options_of(c, directory.path());
  options.memory_budget = budget;
  for (const End& end : c.ends) {
    if (end.by == End::By::kill) {
      run_and_kill(c, options, end);
      continue;
    }
    const Found found = run_once(c, options, &end);
    if (found.adjoint) check_found(found, "a run that was not ended");
    require(found.report.peak_bytes <= budget, "an ended run takes more bytes than the budget");
  }
  check_found(run_once(c, options, nullptr), "the last run");
  if (!c.resumes) {
    require(directory.files().empty(), "a file is left behind");
    return;
  }
  const Found again = run_once(c, options, nullptr);
  check_found(again, "a finished journal");
  require(again.report.steps_advanced == 0, "a finished run advances");
}

std::optional<std::string> problem_in(const Case& c) {
  try {
    check(c);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// Cases that are simpler in one respect.
std::vector<Case> simpler(const Case& c) {
  std::vector<Case> made;
  const auto add = [&](bool differs, auto change) {
    if (!differs) return;
    made.push_back(c);
    change(made.back());
  };
  for (std::size_t i = 0; i < c.ends.size(); ++i) {
    add(true, [&](Case& s) { s.ends.erase(s.ends.begin() + static_cast<std::ptrdiff_t>(i)); });
    add(c.ends[i].by != End::By::exception, [&](Case& s) { s.ends[i].by = End::By::exception; });
    for (const std::uint64_t less : {c.ends[i].calls / 2 + 1, std::uint64_t{1}}) {
      add(c.ends[i].calls >= less, [&](Case& s) { s.ends[i].calls -= less; });
    }
  }
  for (const std::uint64_t less : {c.steps / 2 + 1, std::uint64_t{1}}) {
    add(c.steps >= less, [&](Case& s) { s.steps -= less; });
  }
  add(c.size > 1, [](Case& s) { s.size = s.size / 2; });
  add(c.sizes != Sizes::equal, [](Case& s) { s.sizes = Sizes::equal; });
  add(!c.knows_length, [](Case& s) { s.knows_length = true; });
  add(c.sizes_change, [](Case& s) { s.sizes_change = false; });
  add(c.spills, [](Case& s) { s.spills = false; });
  add(c.costs.write != 1 || c.costs.read != 1, [](Case& s) { s.costs = {1, 1}; });
  add(c.codec != ReverseCodec::none, [](Case& s) { s.codec = ReverseCodec::none; });
  add(c.checks, [](Case& s) { s.checks = false; });
  add(c.states > 0, [](Case& s) { s.states /= 2; });
  add(c.tape > 0, [](Case& s) { s.tape = 0; });
  add(c.resumes &&
          std::ranges::none_of(c.ends, [](const End& e) { return e.by == End::By::stop_after; }),
      [](Case& s) { s.resumes = false; });
  add(c.record_every != 0, [](Case& s) { s.record_every = 0; });
  return made;
}

/// The simplest case found that fails, with its problem.
std::string simplest_failure(Case c, std::string problem) {
  for (bool is_simplest = false; !is_simplest;) {
    is_simplest = true;
    for (const Case& other : simpler(c)) {
      const std::optional<std::string> found = problem_in(other);
      if (!found) continue;
      c = other;
      problem = *found;
      is_simplest = false;
      break;
    }
  }
  return to_string(c) + ": " + problem;
}

}  // namespace

TEST_CASE("reverse: random chains, options, stops and kills: bits, bytes and counts") {
  const auto count = static_cast<std::uint64_t>(cases(1700));
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const Case c = case_of(seed);
    const std::optional<std::string> problem = problem_in(c);
    if (!problem) continue;
    FAIL_CHECK("seed " << seed << ": " << to_string(c)
                       << "\nsimplest: " << simplest_failure(c, *problem));
  }
}

}  // namespace reverse_random_test
