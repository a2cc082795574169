// Automatic mode keeps native code only where runs with it are faster. The times are given here.
#include "strategy/compile/native/speed_trial.h"

#include <memory>
#include <sstream>
#include <vector>

#include "palimpsest.h"
#include "strategy/compile/native/native_program.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

using Outcome = SpeedTrial::Outcome;

/// Adds runs in the order that the trial asks for, until it ends; returns their number. `seconds`
/// maps whether a run is native, and the number of such runs before, to its time.
int run_trial(SpeedTrial& trial, auto seconds) {
  int counts[2] = {};
  while (trial.outcome() == Outcome::open) {
    const bool native = trial.next_is_native();
    trial.add(native, seconds(native, counts[native]++));
    REQUIRE(counts[0] + counts[1] < 100);
  }
  return counts[0] + counts[1];
}

TEST_CASE("the faster kind of run is kept", "[native]") {
  for (const double native_seconds : {0.5e-6, 1e-6, 2e-6}) {
    SpeedTrial trial;
    const int runs =
        run_trial(trial, [&](bool native, int) { return native ? native_seconds : 1e-6; });
    CHECK(trial.outcome() == (native_seconds > 1e-6 ? Outcome::interpreter : Outcome::native));
    CHECK(trial.native_seconds() == native_seconds);
    CHECK(trial.interpreted_seconds() == 1e-6);
    CHECK(runs == 16);
  }
}

TEST_CASE("runs that something else delays do not decide", "[native]") {
  SpeedTrial trial;
  run_trial(trial, [](bool native, int before) {
    const bool is_delayed = before % 3 != 2;
    return native ? (is_delayed ? 9e-6 : 1e-6) : 1.1e-6;
  });
  CHECK(trial.outcome() == Outcome::native);
  SpeedTrial other;
  run_trial(other, [](bool native, int before) {
    const bool is_delayed = before % 3 != 2;
    return native ? 1.1e-6 : (is_delayed ? 9e-6 : 1e-6);
  });
  CHECK(other.outcome() == Outcome::interpreter);
}

TEST_CASE("two long native runs are enough if the interpreter was timed before", "[native]") {
  SpeedTrial trial;
  trial.add(false, 2.1);
  trial.add(false, 2.0);
  CHECK(trial.outcome() == Outcome::open);
  CHECK(run_trial(trial, [](bool native, int) { return native ? 1.0 : 2.0; }) == 2);
  CHECK(trial.outcome() == Outcome::native);
}

TEST_CASE("long native runs that are slower end after two interpreted ones", "[native]") {
  SpeedTrial trial;
  for (int run = 0; run < 20; ++run) trial.add(false, 1.0);
  CHECK(run_trial(trial, [](bool native, int) { return native ? 2.0 : 1.0; }) == 4);
  CHECK(trial.outcome() == Outcome::interpreter);
  trial.add(true, 1e-9);  // too late
  CHECK(trial.outcome() == Outcome::interpreter);
}

TEST_CASE("only the last interpreted runs before the code count", "[native]") {
  SpeedTrial trial;
  for (int run = 0; run < 5; ++run) trial.add(false, 1e-6);  // the machine was faster then
  for (int run = 0; run < 8; ++run) trial.add(false, 3e-6);
  run_trial(trial, [](bool native, int) { return native ? 2e-6 : 3e-6; });
  CHECK(trial.outcome() == Outcome::native);
  CHECK(trial.interpreted_seconds() == 3e-6);
}

/// A program whose code is ready, and which only automatic runs are to compare.
struct Compared {
  Compared() {
    const Var x = tape.constant(numbers({90}, DType::f64, 1));
    const Var y = x * 2.5 + x * x;
    lowered = std::make_shared<const Lowered>(
        Lowered::fused(tape, std::vector<ValueId>{y.id()}, 1, tape.node_count(), {}));
    plan = make_plan(lowered->graph(), *keep_all());
    instructions = std::make_shared<const Instructions>(tape, lowered, plan);
    program = std::make_shared<NativeProgram>(*instructions);
    REQUIRE(program->service_for(*instructions, tape, NativeCode::at_once).code != nullptr);
  }
  NativeProgram::Service service() {
    return program->service_for(*instructions, tape, NativeCode::automatic);
  }

  Tape tape;
  std::shared_ptr<const Lowered> lowered;
  Plan plan;
  std::shared_ptr<const Instructions> instructions;
  std::shared_ptr<NativeProgram> program;
};

TEST_CASE("automatic runs use the code if it is faster, and the report says how much", "[native]") {
  for (const bool is_faster : {true, false}) {
    CAPTURE(is_faster);
    Compared made;
    int runs = 0;
    while (made.service().is_timed) {
      const MachineCode* const code = made.service().code;
      made.program->add_time(code, (code != nullptr) == is_faster ? 1e-5 : 3e-5);
      REQUIRE(++runs < 100);
    }
    CHECK((made.service().code != nullptr) == is_faster);
    const NativeProgram::Facts facts = made.program->facts(NativeCode::automatic);
    CHECK(facts.serves == is_faster);
    CHECK(facts.groups == (is_faster ? 1 : 0));
    CHECK(facts.seconds == (is_faster ? 1e-5 : 3e-5));
    CHECK(facts.interpreted_seconds == (is_faster ? 3e-5 : 1e-5));
    CHECK(facts.problem ==
          (is_faster ? "" : "native code is slower: 30 µs a run, interpreted 10 µs"));
    // A run that asks for native code gets it in any case.
    CHECK(made.program->service_for(*made.instructions, made.tape, NativeCode::at_once).code !=
          nullptr);
    CHECK(made.program->facts(NativeCode::at_once).groups == 1);
  }
}

TEST_CASE("other code takes the place of retired code, and is compared anew", "[native]") {
  Compared made;
  while (made.service().is_timed) made.program->add_time(made.service().code, 1e-5);
  const auto at_once = [&] {
    return made.program->service_for(*made.instructions, made.tape, NativeCode::at_once).code;
  };
  const MachineCode* const first = at_once();
  const Bytes bytes = made.program->facts(NativeCode::automatic).code;
  made.program->retire(*first);
  CHECK_FALSE(made.program->facts(NativeCode::automatic).serves);
  CHECK(made.program->facts(NativeCode::automatic).seconds == 0);
  const MachineCode* const second = at_once();
  REQUIRE(second != nullptr);
  CHECK(second != first);
  CHECK(made.program->facts(NativeCode::automatic).code > bytes);
  made.program->retire(*first);
  made.program->add_time(first, 1e-6);  // a run that began before
  CHECK(made.program->facts(NativeCode::automatic).seconds == 0);
  CHECK(at_once() == second);
}

TEST_CASE("the report prints both times", "[native]") {
  Report report;
  report.native.groups = 1;
  report.native.seconds = 1.5e-5;
  report.native.interpreted_seconds = 2.5e-5;
  std::ostringstream text;
  text << report;
  CHECK_THAT(text.str(), Catch::Matchers::Contains("; 15.000 µs a run, interpreted 25.000 µs"));
}

}  // namespace
}  // namespace palimpsest
