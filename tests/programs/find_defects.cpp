// Runs random programs in random cells, in child processes, so that a crash is a finding. Makes
// each finding as small as possible and prints how to repeat it. Fails if there is a finding.
//
//     find_defects [--from SEED] [--count PROGRAMS] [--cells CELLS] [--seconds MOST] [--jobs JOBS]
//     find_defects --repeat PROGRAM CELL
//     find_defects --builds PROGRAMS [--from SEED] [--seconds MOST]
//
// The last form exports exact programs as C and compiles them, and native code of as many, by each
// compiler at each level of optimization.
#include <poll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "tests/programs/program_builds.h"
#include "tests/programs/program_directions.h"
#include "tests/programs/program_export.h"
#include "tests/programs/program_lifetimes.h"
#include "tests/programs/program_misuses.h"
#include "tests/programs/program_passes.h"
#include "tests/programs/program_values.h"

namespace palimpsest {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::uint64_t from = 1;
  std::uint64_t count = 1000;
  std::uint32_t cells = 4;
  double seconds = 1e9;
  int jobs = 2;
};

/// A program and a cell in which it fails.
struct Finding {
  ProgramText text;
  std::uint32_t cell;
  std::string problem;
};

/// Checks a program in this process. The plain results are computed once for all cells.
class Check {
 public:
  explicit Check(ProgramText text) : text_(std::move(text)) {}

  /// The problem in a cell. The first cell also checks passes, where that does not take long. The
  /// second one checks lifetimes, the third one of some programs checks exported C, the fourth
  /// one checks functions of the user that misbehave, the fifth one derivatives along
  /// directions, and the sixth one values within budgets.
  std::optional<std::string> problem(std::uint32_t cell) {
    if (!is_begun_) begin();
    if (is_invalid_ || problem_) return problem_;
    if (cell == 0 && has_time_to_plan(text_.seed, cell)) {
      if (auto broken = broken_pass_in(text_)) return broken;
      if (auto dearer = dearer_within_more(text_)) return dearer;
      if (auto problem = problem_through_files(text_, 0.7, expected_)) return problem;
    }
    if (cell == 1) {
      if (auto problem = problem_of_lifetimes(text_, expected_)) return problem;
    }
    constexpr std::uint64_t programs_per_exported_one = 16;  // the C compiler takes 0.3 s
    if (cell == 2 && text_.seed % programs_per_exported_one == 0) {
      if (auto problem = problem_in_c(text_, expected_)) return problem;
    }
    if (cell == 3) {
      if (auto problem = problem_of_misuse(text_, expected_)) return problem;
    }
    if (cell == 4) {
      if (auto problem = problem_of_directions(text_)) return problem;
    }
    if (cell == 5 && has_time_to_plan(text_.seed, cell)) {
      if (auto problem = problem_of_values(text_, expected_)) return problem;
    }
    return problem_in(text_, cell_of(text_.seed, cell), expected_);
  }

 private:
  void begin() {
    is_begun_ = true;
    try {
      expected_ = reference_of(text_);
    } catch (const UsageError&) {
      is_invalid_ = true;  // a decomposition of numbers that do not have one
    } catch (const std::exception& error) {
      problem_ = std::string("the reference: ") + error.what();
    }
  }

  ProgramText text_;
  bool is_begun_ = false;
  bool is_invalid_ = false;
  std::optional<std::string> problem_;  // in every cell
  Results expected_;
};

/// A child process and its output.
class Child {
 public:
  explicit Child(const std::function<void(int to)>& work) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("no process");
    if (process_ == 0) {
      close(ends[0]);
      work(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  Child(Child&& other) noexcept
      : process_(std::exchange(other.process_, -1)), from_(std::exchange(other.from_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(process_, other.process_);
    std::swap(from_, other.from_);
    return *this;
  }
  ~Child() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    if (from_ >= 0) close(from_);
  }

  int from() const { return from_; }
  /// Reads the available output; false at its end.
  bool read_into(std::string& text) const {
    char buffer[4096];
    const ssize_t n = read(from_, buffer, sizeof buffer);
    if (n <= 0) return false;
    text.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  /// How the child ended; empty when it succeeded.
  std::string end() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    if (WIFSIGNALED(status)) return std::string("ended by ") + strsignal(WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return "exit code " + std::to_string(WEXITSTATUS(status));
    return {};
  }
  void stop() const { kill(process_, SIGKILL); }

 private:
  pid_t process_ = -1;
  int from_ = -1;
};

void write_all(int to, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(to, text.data() + done, text.size() - done);
    if (n <= 0) _exit(3);
    done += static_cast<std::size_t>(n);
  }
}

/// Returns the problem of a program in a cell, including crashes and hangs.
std::optional<std::string> problem_in_child(const ProgramText& text, std::uint32_t cell) {
  constexpr int most_milliseconds = 60'000;
  Child child([&](int to) {
    if (const auto problem = Check(text).problem(cell)) write_all(to, *problem);
  });
  std::string problem;
  for (;;) {
    pollfd wait{child.from(), POLLIN, 0};
    if (poll(&wait, 1, most_milliseconds) == 0) {
      child.stop();
      problem += "hangs";
      break;
    }
    if (!child.read_into(problem)) break;
  }
  const std::string end = child.end();
  if (!end.empty()) problem += (problem.empty() ? "" : ", ") + end;
  return problem.empty() ? std::nullopt : std::optional(problem);
}

/// Removes steps while the program still fails in the cell, fewer and fewer at once.
Finding smallest(Finding finding) {
  for (std::size_t piece = std::max<std::size_t>(finding.text.steps.size() / 2, 1);; piece /= 2) {
    for (std::size_t first = 0; first < finding.text.steps.size();) {
      ProgramText text = finding.text;
      const auto begin = text.steps.begin() + static_cast<std::ptrdiff_t>(first);
      const std::size_t end = std::min(first + piece, text.steps.size());
      text.steps.erase(begin, text.steps.begin() + static_cast<std::ptrdiff_t>(end));
      if (auto problem = problem_in_child(text, finding.cell)) {
        finding = {text, finding.cell, *problem};
      } else {
        first += piece;
      }
    }
    if (piece == 1) return finding;
  }
}

void print(const Finding& finding) {
  std::cout << "\nfinding: find_defects --repeat " << to_string(finding.text) << " " << finding.cell
            << "\n  " << to_string(cell_of(finding.text.seed, finding.cell)) << "\n";
  try {
    Tape tape;
    for (const std::string& line : compose(tape, finding.text).lines) {
      std::cout << "  " << line << "\n";
    }
  } catch (const std::exception& error) {
    std::cout << "  " << error.what() << "\n";
  }
  std::cout << "  " << finding.problem << std::endl;
}

/// Turns a hang into a crash: a run of 2 minutes of processor time, or of 20 minutes elapsed. Other
/// processes may slow a run down.
void limit_run() {
  constexpr itimerval busy{.it_interval = {}, .it_value = {.tv_sec = 120, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &busy, nullptr);
  alarm(1200);
}

/// A child process that runs a range of programs. It writes a line `SEED CELL` before each run, and
/// a line that begins with `!` for each failure.
struct Worker {
  Child child;
  std::uint64_t next;
  std::uint64_t end;
  std::uint32_t next_cell = 0;
  std::string text = {};
};

Child start(std::uint64_t first, std::uint32_t first_cell, std::uint64_t end,
            const Settings& settings, Clock::time_point stop) {
  return Child([=](int to) {
    for (std::uint64_t seed = first; seed < end && Clock::now() < stop; ++seed) {
      Check check(program_of(seed));
      for (std::uint32_t cell = seed == first ? first_cell : 0; cell < settings.cells; ++cell) {
        write_all(to, std::to_string(seed) + " " + std::to_string(cell) + "\n");
        limit_run();
        if (check.problem(cell)) write_all(to, "!\n");
      }
    }
  });
}

class Search {
 public:
  explicit Search(const Settings& settings)
      : settings_(settings),
        stop_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(settings.seconds))),
        next_(settings.from) {}

  int run() {
    const auto is_over = [&] { return Clock::now() >= stop_; };
    std::vector<Worker> workers;
    while (true) {
      while (!is_over() && std::ssize(workers) < settings_.jobs && next_ < end()) {
        const std::uint64_t last = std::min(next_ + chunk, end());
        workers.push_back({start(next_, 0, last, settings_, stop_), next_, last});
        next_ = last;
      }
      if (workers.empty()) break;
      std::vector<pollfd> waits;
      for (const Worker& worker : workers) waits.push_back({worker.child.from(), POLLIN, 0});
      poll(waits.data(), waits.size(), -1);
      for (std::size_t i = workers.size(); i-- > 0;) {
        if (waits[i].revents == 0) continue;
        if (!attend(workers[i])) workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (const Finding& finding : raw_) print(smallest(finding));
    std::cout << "programs " << settings_.from << " to " << next_ - 1
              << (is_over() ? ", as far as there was time, " : ", ") << runs_ << " runs, "
              << raw_.size() << " findings" << std::endl;
    return raw_.empty() ? 0 : 1;
  }

 private:
  static constexpr std::uint64_t chunk = 100;
  static constexpr std::size_t most_findings = 20;
  std::uint64_t end() const {
    return raw_.size() < most_findings ? settings_.from + settings_.count : next_;
  }

  /// Reads a worker's output; false when it has nothing left to do.
  bool attend(Worker& worker) {
    const bool goes_on = worker.child.read_into(worker.text);
    for (std::size_t line; (line = worker.text.find('\n')) != std::string::npos;) {
      const std::string said = worker.text.substr(0, line);
      worker.text.erase(0, line + 1);
      if (said == "!") {
        note(worker, "");
        continue;
      }
      ++runs_;
      std::size_t space = 0;
      worker.next = std::stoull(said, &space);
      worker.next_cell = static_cast<std::uint32_t>(std::stoul(said.substr(space)));
    }
    if (goes_on) return true;
    const std::string crash = worker.child.end();
    if (crash.empty()) return false;
    note(worker, crash);
    // Continue after the run that crashed.
    if (++worker.next_cell == settings_.cells) {
      worker.next_cell = 0;
      ++worker.next;
    }
    if (worker.next >= worker.end) return false;
    worker.child = start(worker.next, worker.next_cell, worker.end, settings_, stop_);
    worker.text.clear();
    return true;
  }

  void note(const Worker& worker, const std::string& problem) {
    raw_.push_back({program_of(worker.next), worker.next_cell, problem});
    std::cout << "program " << worker.next << " fails in cell " << worker.next_cell << " "
              << problem << std::endl;
  }

  Settings settings_;
  Clock::time_point stop_;
  std::uint64_t next_;
  std::uint64_t runs_ = 0;
  std::vector<Finding> raw_;
};

/// Compares builds of exact programs; `settings.count` says how many.
int compare_builds(const Settings& settings) {
  constexpr std::uint64_t programs_at_once = 20;
  const auto begin = Clock::now();
  std::uint64_t done = 0;
  int findings = 0;
  while (done < settings.count &&
         std::chrono::duration<double>(Clock::now() - begin).count() < settings.seconds) {
    const std::uint64_t from = settings.from + done;
    const std::uint64_t count = std::min(programs_at_once, settings.count - done);
    for (const auto& problem :
         {problem_of_exported_builds(from, count), problem_of_native_builds(from, count)}) {
      if (!problem) continue;
      ++findings;
      std::cout << "finding: " << *problem << std::endl;
    }
    done += count;
    std::cout << "exact programs " << settings.from << " to " << settings.from + done - 1 << ", "
              << findings << " findings" << std::endl;
  }
  return findings == 0 ? 0 : 1;
}

int main_of(std::span<char*> arguments) {
  keep_native_code();
  Settings settings;
  bool compares_builds = false;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string name = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw std::runtime_error(name + " needs a value");
      return std::string(arguments[++i]);
    };
    if (name == "--repeat") {
      const ProgramText text = text_of(value());
      const auto cell = static_cast<std::uint32_t>(std::stoul(value()));
      print({text, cell, "as before"});
      const auto problem = Check(text).problem(cell);
      std::cout << problem.value_or("all is well") << "\n";
      return problem ? 1 : 0;
    }
    if (name == "--from") {
      settings.from = std::stoull(value());
    } else if (name == "--count") {
      settings.count = std::stoull(value());
    } else if (name == "--builds") {
      settings.count = std::stoull(value());
      compares_builds = true;
    } else if (name == "--cells") {
      settings.cells = static_cast<std::uint32_t>(std::stoul(value()));
    } else if (name == "--seconds") {
      settings.seconds = std::stod(value());
    } else if (name == "--jobs") {
      settings.jobs = std::stoi(value());
    } else {
      throw std::runtime_error(name + " is no option");
    }
  }
  return compares_builds ? compare_builds(settings) : Search(settings).run();
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  try {
    return palimpsest::main_of({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
