#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/operations/registry.h"
#include "tests/autodiff/operation_rows.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/programs/program_directions.h"
#include "tests/programs/program_export.h"
#include "tests/programs/program_lifetimes.h"
#include "tests/programs/program_misuses.h"
#include "tests/programs/program_passes.h"
#include "tests/programs/program_values.h"
#include "tests/strategy/export/lacks_c_compiler.h"

namespace composed_programs_test {

using namespace palimpsest;

TEST_CASE("random programs of all operations have the bits of single operations in every cell") {
  keep_native_code();
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t k = 0; k < 100; ++k) {
    for (const std::uint64_t first : {std::uint64_t{1}, first_with_modules}) {
      seeds.push_back(first + k);
    }
    constexpr std::uint64_t last[] = {first_with_weights, first_with_nesting,
                                      first_with_components};
    seeds.push_back(last[k % 3] + k);
  }
  for (const std::uint64_t seed : seeds) {
    const Cell cell = cell_of(seed, 0);
    // Planning stages and parts within a budget takes seconds per program: see `./dev check
    // programs`.
    const bool has_parts = cell.mode == Cell::Mode::hybrid || is_executed(cell.mode);
    if (has_parts && cell.share) continue;
    const ProgramText text = program_of(seed);
    const auto problem = problem_in(text, cell, reference_of(text));
    INFO("find_defects --repeat " << to_string(text) << " 0\n"
                                  << to_string(cell) << "\n"
                                  << problem.value_or(""));
    CHECK_FALSE(problem.has_value());
  }
}

TEST_CASE("a hybrid tape gets further within a budget that it names") {
  const ProgramText text = program_of(90);
  Cell cell{.mode = Cell::Mode::hybrid, .simplify = false, .share = 0.8};
  for (const int threads : {1, 2}) {
    cell.threads = threads;
    INFO(to_string(cell));
    CHECK(problem_in(text, cell, reference_of(text)).value_or("") == "");
  }
}

TEST_CASE("devices compute a loop in a checkpoint again where its states are read") {
  const ProgramText text = text_of("20359:7,8,9,10,11");
  const Cell cell = cell_of(text.seed, 0);
  REQUIRE(cell.mode == Cell::Mode::devices);
  CHECK(problem_in(text, cell, reference_of(text)).value_or("") == "");
}

TEST_CASE("a fused unit is named after a node that it computes") {
  const ProgramText text = text_of("20024126:0,1,2,3,4,6,7");
  const Cell cell = cell_of(text.seed, 3);
  REQUIRE(cell.mode == Cell::Mode::devices);
  CHECK(problem_in(text, cell, reference_of(text)).value_or("") == "");
}

TEST_CASE("a reduction runs by itself where it would take more memory in a group") {
  CHECK(broken_pass_in(text_of("25486513")).value_or("") == "");
}

TEST_CASE(
    "a budget that is named is enough for a loop and a planner that takes more than keep-all") {
  const ProgramText text = text_of("20041401:0,1,3");
  const Cell cell = cell_of(text.seed, 3);
  INFO(to_string(cell));
  CHECK(problem_in(text, cell, reference_of(text)).value_or("") == "");
}

/// Checks programs that once failed, each in a cell by its number.
template <class IsRight>
void check_again(const std::vector<std::pair<std::string, std::uint32_t>>& found,
                 IsRight is_right) {
  for (const auto& [program, number] : found) {
    const ProgramText text = text_of(program);
    const Cell cell = cell_of(text.seed, number);
    INFO(program << " " << to_string(cell));
    REQUIRE(is_right(cell));
    CHECK(problem_in(text, cell, reference_of(text)).value_or("") == "");
  }
}

TEST_CASE("a budget that is named is enough for stages with a loop") {
  check_again({{"21051006:0,1", 6}, {"21050312:0,1,3", 0}},
              [](const Cell& cell) { return cell.mode == Cell::Mode::stages; });
}

TEST_CASE("a budget that is named is enough where results are cached and values are present") {
  check_again({{"30651:5,6,7,8,9", 1}, {"30035:0,1,3,4,5,6,7,8,9,10,11", 6}},
              [](const Cell& cell) { return cell.memory == AllocationPolicy::cached; });
}

TEST_CASE("a budget that is named is enough to count what the means of parts divide by") {
  check_again({{"22126172", 4}}, [](const Cell& cell) {
    return cell.mode == Cell::Mode::micro_batches && cell.share.has_value();
  });
}

/// Checks so many programs from each of the seeds. `problem_of` returns what is wrong with one.
template <class ProblemOf>
void check_programs(std::uint64_t count, std::initializer_list<std::uint64_t> firsts,
                    ProblemOf problem_of) {
  for (const std::uint64_t first : firsts) {
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      const ProgramText text = program_of(seed);
      const std::optional<std::string> problem = problem_of(text);
      INFO("program " << to_string(text) << "\n" << problem.value_or(""));
      CHECK_FALSE(problem.has_value());
    }
  }
}

TEST_CASE("what the passes make of random programs keeps to their specifications") {
  check_programs(100, {1, first_with_modules, first_with_weights}, broken_pass_in);
}

TEST_CASE("results of random programs outlive what made them, and their Vars become errors") {
  check_programs(
      static_cast<std::uint64_t>(cases(200)), {1, first_with_modules},
      [](const ProgramText& text) { return problem_of_lifetimes(text, reference_of(text)); });
}

TEST_CASE("random programs have the same bits where functions of the user misbehave") {
  check_programs(
      static_cast<std::uint64_t>(cases(400)), {1, first_with_modules},
      [](const ProgramText& text) { return problem_of_misuse(text, reference_of(text)); });
}

TEST_CASE("random programs have the same values within any budget without derivatives") {
  check_programs(
      static_cast<std::uint64_t>(cases(200)), {1, first_with_components},
      [](const ProgramText& text) { return problem_of_values(text, reference_of(text)); });
}

TEST_CASE("random programs have second and third derivatives along any direction") {
  check_programs(static_cast<std::uint64_t>(cases(300)), {1, first_with_components},
                 problem_of_directions);
}

TEST_CASE("random programs have the same bits by schedules of their graphs, through files") {
  const auto programs = static_cast<std::uint64_t>(cases(500));
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const ProgramText text = program_of(seed);
    const double share = seed % 2 == 0 ? 1 : 0.7;
    const auto problem = problem_through_files(text, share, reference_of(text));
    INFO("program " << to_string(text) << " at " << share << "\n" << problem.value_or(""));
    CHECK_FALSE(problem.has_value());
  }
}

TEST_CASE("exported C may round a sum of f32 that cancels in another way") {
  if (lacks_c_compiler()) return;
  const ProgramText text = text_of("20024368:0,1,4");
  CHECK(problem_in_c(text, reference_of(text)).value_or("") == "");
}

TEST_CASE("random programs have the engine's results in exported C") {
  if (lacks_c_compiler()) return;
  for (std::uint64_t seed = first_with_modules; seed < first_with_modules + 24; ++seed) {
    const ProgramText text = program_of(seed);
    const auto problem = problem_in_c(text, reference_of(text));
    INFO("program " << to_string(text) << "\n" << problem.value_or(""));
    CHECK_FALSE(problem.has_value());
  }
}

// A program that draws random numbers is not compared in modes that clear tapes. It is found by the
// names of its steps (see `is_model`).
TEST_CASE("rows that draw random numbers name an operation that does") {
  for (const RowFamily& family : row_families()) {
    for (const OperationRow& row : family.rows()) {
      Tape tape;
      std::vector<Var> inputs;
      for (const Tensor& input : row.inputs) inputs.push_back(tape.constant(input));
      row.call(inputs);
      const std::string name = row.operation + " (" + row.label + ")";
      bool draws = false;
      for (NodeId node = 0; node < tape.node_count(); ++node) draws |= tape.operation(node).random;
      const bool says_so = std::ranges::any_of(operations(), [&](const Operation* operation) {
        return operation->random && name.find(operation->name) != std::string::npos;
      });
      INFO(name);
      CHECK((says_so || !draws));
    }
  }
}

TEST_CASE("each operation occurs in a hundredth of the random programs") {
  constexpr std::uint64_t programs = 1000;
  std::map<std::string, std::uint64_t> count;  // by name, without the custom operations
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    Tape tape;
    const ComposedProgram program = compose(tape, program_of(seed));
    const std::vector<Var> gradients = gradient(program.loss, program.parameters);
    std::set<std::string> names;
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      names.emplace(tape.operation(node).name);
    }
    for (const std::string& name : names) ++count[name];
  }
  for (const Operation* operation : operations()) {
    const std::uint64_t times = count[std::string(operation->name)];
    CAPTURE(operation->name, times);
    CHECK(times >= programs / 100);
  }
}

TEST_CASE("each layer occurs in a hundredth of the random programs that have layers") {
  constexpr std::uint64_t programs = 500;
  std::map<std::string, std::uint64_t> count;
  const std::vector<std::string> names{
      "tied linear", "conv1d",     "conv2d",     "conv3d",    "layer norm", "rms norm",
      "group norm",  "batch norm", "embedding",  "attention", "multi-head", "rnn",
      "gru",         "lstm",       "sequential", "linear",    "dropout",    "by running statistics",
      "twice",       "frozen"};
  for (std::uint64_t seed = first_with_modules; seed < first_with_modules + programs; ++seed) {
    std::set<std::string> found;
    Tape tape;
    for (const std::string& line : compose(tape, program_of(seed)).lines) {
      for (const std::string& name : names) {
        if (line.find(name) != std::string::npos) found.insert(name);
      }
    }
    for (const std::string& name : found) ++count[name];
  }
  for (const std::string& name : names) {
    CAPTURE(name, count[name]);
    CHECK(count[name] >= programs / 100);
  }
}

TEST_CASE("programs can be written and read") {
  for (const std::uint64_t seed : {1, 2, 77}) {
    ProgramText text = program_of(seed);
    CHECK(text_of(to_string(text)).steps == text.steps);
    text.steps = {0, 3, 4};
    CHECK(to_string(text) == std::to_string(seed) + ":0,3,4");
    CHECK(text_of(to_string(text)).steps == text.steps);
    CHECK(text_of(to_string(text)).seed == seed);
  }
}

}  // namespace composed_programs_test
