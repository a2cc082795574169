#include "strategy/compile/compile_log.h"

#include "checkpoint/engine_planner.h"

#include <fstream>
#include <sstream>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/environment_variable.h"
#include "tests/error_of.h"
#include "tests/strategy/random_program.h"
#include "tests/temporary_file.h"

namespace palimpsest::compile_log_test {
namespace {

Var record(Tape& tape) {
  const Var w = tape.parameter(Tensor::ones({8, 8}));
  const Var x = tape.constant(Tensor::ones({4, 8}));
  const Var h = tanh(matmul(x, w) * 0.5);
  return sum(square(h) + square(h) * 1.0);
}

std::string log_of(const RunOptions& options, DumpLevel level) {
  Tape tape;
  std::ostringstream stream;
  write_compilation(stream, record(tape), options, level);
  return stream.str();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a log of compilation names the passes, what they did and the user's lines") {
  const std::string passes = log_of({.threads = 1}, DumpLevel::passes);
  INFO(passes);
  CHECK(passes.starts_with("compile 2 targets of "));
  std::size_t at = 0;
  for (const char* pass : {"eliminate common subexpressions, fold constants: ", "lower: fused, ",
                           "plan: ", "emit instructions: "}) {
    const std::size_t next = passes.find(pass, at);
    REQUIRE(next != std::string::npos);
    at = next;
  }
  CHECK(has(passes, "tanh, square, add (compile_log_test.cpp:"));
  CHECK(has(passes, ") is square ("));
  CHECK_FALSE(has(passes, "compute unit"));
}

TEST_CASE("levels of a log add the schedule and the instructions") {
  const std::string plan = log_of({}, DumpLevel::plan);
  CHECK(has(plan, "    compute unit "));
  CHECK(has(plan, "    drop value "));
  CHECK_FALSE(has(plan, " -> "));
  const std::string instructions = log_of({}, DumpLevel::instructions);
  CHECK_FALSE(has(instructions, "    compute unit "));
  CHECK(has(instructions, " -> "));
  CHECK(has(instructions, "leaf "));
  const std::string all = log_of({}, DumpLevel::all);
  CHECK(has(all, "    compute unit "));
  CHECK(has(all, " -> "));
  const std::string refused = error_of([] { (void)log_of({}, static_cast<DumpLevel>(77)); });
  CHECK(has(refused, "[write_compilation] the level is 77, which has no name"));
}

TEST_CASE("a log shows what is recomputed within a budget, the loops' states, and a refusal") {
  Tape tape;
  const RandomProgram program = record_random(tape, 3, 40);
  const Bytes all = plan_backward(program.loss).predicted_peak();
  const Bytes smallest = [&] {
    try {
      return plan_backward(program.loss, {.memory_budget = 1}).predicted_peak();
    } catch (const BudgetError& error) {
      return error.smallest_feasible();
    }
  }();
  REQUIRE(smallest < all);
  std::ostringstream stream;
  write_compilation(stream, program.loss, {.memory_budget = smallest}, DumpLevel::plan);
  CHECK(has(stream.str(), "a budget of "));
  CHECK(has(stream.str(), "    recompute unit "));
  std::ostringstream of_refused;
  CHECK_THROWS_AS(write_compilation(of_refused, program.loss, {.memory_budget = 1}), BudgetError);
  CHECK(has(of_refused.str(), "refused: "));

  Tape with_loop;
  const Var x = with_loop.parameter(Tensor::ones({16}));
  const Var loss = sum(scan(x, 10, [](const Var& y, const StepNumber&) { return sin(y); }));
  std::ostringstream of_loop;
  write_compilation(of_loop, loss);
  CHECK(has(of_loop.str(), "reserve loop state budgets: "));
}

/// Finds no schedule, by a defect.
class Broken final : public EnginePlanner {
 public:
  std::string name() const override { return "broken"; }
  std::vector<Proposal> propose(const Graph&, Bytes) const override {
    throw InternalError("a planner is broken");
  }
  bool accepts_keep_all() const override { return false; }
};

TEST_CASE("an internal error during compilation has a dump of the program") {
  Tape tape;
  const Var loss = record(tape);
  try {
    backward(loss, {.memory_budget = 1 << 20, .planner = std::make_shared<Broken>()});
    FAIL("nothing was thrown");
  } catch (const InternalError& error) {
    const std::string message = error.what();
    INFO(message);
    CHECK(has(message, "a planner is broken"));
    CHECK(has(message, "compile 2 targets of "));
    CHECK(has(message, "eliminate common subexpressions"));
  }
}

TEST_CASE("the environment asks for a log by the name of a level") {
  CHECK(CompileLog::of_environment() == nullptr);
  {
    const EnvironmentVariable variable("PALIMPSEST_DUMP", "plan");
    CHECK(CompileLog::of_environment() != nullptr);
  }
  const EnvironmentVariable variable("PALIMPSEST_DUMP", "everything");
  const std::string message = error_of([] { CompileLog::of_environment(); });
  CHECK(has(message, "PALIMPSEST_DUMP=everything"));
  CHECK(has(message, "passes, plan, instructions, native or all"));
}

}  // namespace
}  // namespace palimpsest::compile_log_test
