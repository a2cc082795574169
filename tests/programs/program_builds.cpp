#include "tests/programs/program_builds.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "tests/environment_variable.h"
#include "tests/programs/exact_program.h"
#include "tests/programs/program_export.h"
#include "tests/strategy/export/exported_runs.h"
#include "tests/temporary_directory.h"

namespace palimpsest {
namespace {

std::vector<Tensor> numbers_of(const Program& program, Report::Native* native = nullptr) {
  Runner runner(program);
  runner.run();
  if (native != nullptr) *native = runner.report().native;
  std::vector<Tensor> results;
  for (const Var& output : program.outputs()) results.push_back(runner.value(output).clone());
  return results;
}

/// The same numbers. The sign of a zero depends on the order of additions.
bool are_equal(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    if (!(a.at(i) == b.at(i))) return false;
  }
  return true;
}

std::string difference_text(std::uint64_t seed, std::size_t result, const CBuild& build,
                            const Tensor& found, const Tensor& expected) {
  std::ostringstream text;
  text << "result " << result << " of exact program " << seed << " by " << build.compiler << " "
       << build.level << " is\n"
       << found << "\nnot\n"
       << expected;
  return text.str();
}

/// The program in C: half of the seeds without a budget, the others within the smallest one.
CRun exported_run(const Program& program, std::uint64_t seed) {
  const std::string name = "exact_" + std::to_string(seed);
  if (seed / 2 % 2 == 1) {
    try {
      return c_run_of(program, export_c(program, {.memory_budget = 1, .name = name}));
    } catch (const BudgetError& error) {
      const Bytes budget = error.smallest_feasible();
      return c_run_of(program, export_c(program, {.memory_budget = budget, .name = name}));
    }
  }
  return c_run_of(program, export_c(program, {.name = name}));
}

}  // namespace

std::optional<std::string> problem_of_exported_builds(std::uint64_t from, std::uint64_t count) {
  std::vector<CRun> runs;
  std::vector<std::vector<Tensor>> expected;
  for (std::uint64_t seed = from; seed < from + count; ++seed) {
    const Program program = Program::values([&](Tape& tape) { return record_exact(tape, seed); },
                                            {.threads = 1, .native = NativeCode::off});
    runs.push_back(exported_run(program, seed));
    expected.push_back(numbers_of(program));
  }
  for (const CBuild& build : c_builds()) {
    const std::vector<CResult> results = run_in_c(runs, build);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::uint64_t seed = from + i;
      if (results[i].status != 0) return "exact program " + std::to_string(seed) + " fails";
      const std::size_t first = runs[i].exported.pointers.size() - expected[i].size();
      for (std::size_t k = 0; k < expected[i].size(); ++k) {
        const Tensor& found = results[i].tensors[first + k];
        if (are_equal(found, expected[i][k])) continue;
        return difference_text(seed, k, build, found, expected[i][k]);
      }
    }
  }
  return {};
}

std::optional<std::string> problem_of_native_builds(std::uint64_t from, std::uint64_t count) {
  // A short program is one function, as longer ones are not.
  constexpr std::uint64_t programs_at_once = 4;
  const TemporaryDirectory folder;
  const EnvironmentVariable cache("XDG_CACHE_HOME", folder.path());
  for (std::uint64_t seed = from; seed < from + count; seed += programs_at_once) {
    const auto make = [&](NativeCode native) {
      return Program::values(
          [&](Tape& tape) {
            std::vector<Var> all;
            for (std::uint64_t each = seed; each < seed + programs_at_once; ++each) {
              std::ranges::copy(record_exact(tape, each), std::back_inserter(all));
            }
            return all;
          },
          {.threads = 1, .native = native});
    };
    const std::vector<Tensor> expected = numbers_of(make(NativeCode::off));
    for (const CBuild& build : c_builds()) {
      // The last level counts.
      const std::string script = folder.path() + "/compiler" + build.level;
      std::ofstream(script) << "#!/bin/sh\nexec " << build.compiler << " \"$@\" " << build.level
                            << "\n";
      if (::chmod(script.c_str(), 0700) != 0) throw std::runtime_error("no compiler in " + script);
      const EnvironmentVariable compiler("CC", script);
      Report::Native native;
      const std::vector<Tensor> found = numbers_of(make(NativeCode::at_once), &native);
      if (native.groups == 0 && !native.problem.empty()) {
        return "no native code by " + build.compiler + ": " + native.problem;
      }
      for (std::size_t k = 0; k < expected.size(); ++k) {
        if (!are_equal(found[k], expected[k])) {
          return difference_text(seed, k, build, found[k], expected[k]);
        }
      }
    }
  }
  return {};
}

}  // namespace palimpsest
