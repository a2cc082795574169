#include <string>

#include "autodiff/gradient.h"
#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::anomaly_test {
namespace {

using Catch::Matchers::Contains;

/// The line after `where`, as messages name it.
std::string line_after(const Where& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line() + 1);
}

/// The message of a run that looks for anomalies, of a lazy and of an eager tape, which must name
/// the same operation, line and places.
template <class Record>
void check_named(Record record, std::initializer_list<std::string> words) {
  {
    Tape tape;
    const Var loss = record(tape);
    const std::string message = error_of([&] { backward(loss, {.anomaly = true}); });
    for (const std::string& each : words) CHECK_THAT(message, Contains(each));
  }
  Tape tape(eager({.anomaly = true}));
  const std::string message = error_of([&] { backward(record(tape), {.anomaly = true}); });
  for (const std::string& each : words) CHECK_THAT(message, Contains(each));
}

TEST_CASE("an anomaly in a checkpoint names the operation, its line and the checkpoint") {
  Where inside;
  Where outside;
  const auto record = [&](Tape& tape) {
    const Var x = tape.parameter(Tensor::vector({1, 0, 4}), "x");
    const auto f = [&](const Var& y) {
      inside = Where::current();
      const Var z = log(y);
      return where(y > 0.0, z, 0.0 * y);
    };
    outside = Where::current();
    return sum(checkpoint(f, x));
  };
  {
    Tape tape;
    record(tape);
  }
  check_named(record, {"[log] output 0 f32 (3)", "1 elements that are not finite", "[0, 4]",
                       "(recorded at " + line_after(inside) + ")",
                       "in the checkpoint (recorded at " + line_after(outside) + ")"});
}

TEST_CASE("an anomaly in a loop names the operation, its line, the step and the loop") {
  const bool looks = GENERATE(false, true);  // such steps are recorded one by one
  Where inside;
  Where outside;
  const auto record = [&](Tape& tape) {
    const Var x = tape.parameter(Tensor::vector({1, 2, 4}), "x");
    const auto step = [&](const Var& y, const StepNumber&) {
      if (looks && y.value().at(0) > 1e6) return y;
      inside = Where::current();
      const Var z = log(y - 1.0);
      // The state stays finite.
      return where(y - 1.0 > 0.0, where(z < 9.0, y - 1.0, z), y * 0.0 + 2.0);
    };
    outside = Where::current();
    return sum(scan(x, 4, step));
  };
  {
    Tape tape;
    record(tape);
  }
  check_named(record,
              {"[log] output 0 f32 (3)", "not finite", "(recorded at " + line_after(inside) + ")",
               "in step 0 of the loop [scan] (recorded at " + line_after(outside) + ")"});
}

TEST_CASE("an anomaly in a later step, or in a reversed one, names that step") {
  const Bytes budget = GENERATE(Bytes{unlimited}, Bytes{4_KiB});
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({16}), "x");
  const auto shrink = [](const Var& y, const StepNumber&) { return sqrt(y - 1.0); };
  const Var values = scan(x, 4, shrink);  // 16, 3.87, 1.69, 0.83, NaN
  CHECK_THAT(error_of([&] { backward(sum(values), {.memory_budget = budget, .anomaly = true}); }),
             Contains("[sqrt]") && Contains("in step 3 of the loop [scan]"));

  // The derivative of the root of 0 is infinite.
  const auto root = [](const Var& y, const StepNumber&) { return sqrt(y) * 1.0; };
  const Var zero = tape.parameter(Tensor::vector({0}), "zero");
  CHECK_THAT(error_of([&] {
               backward(sum(scan(zero, 3, root)), {.memory_budget = budget, .anomaly = true});
             }),
             Contains("anomaly_test.cpp:") && Contains("in step 2 of the loop [scan]"));
}

TEST_CASE("an anomaly in the condition of a loop, and in a loop of a loop, names all places") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1}), "x");
  const auto goes_on = [](const Var& y) { return sum(log(2.0 - y)) > -1e9; };
  const auto grow = [](const Var& y, const StepNumber&) { return y + 0.5; };
  const Var last = while_loop(x, goes_on, grow, {.max_steps = 9});
  CHECK_THAT(error_of([&] { backward(sum(last), {.anomaly = true}); }),
             Contains("[log]") && Contains("in step 2 of the loop [while_loop]"));

  const auto inner = [](const Var& y, const StepNumber&) { return log(y); };
  const auto outer = [&](const Var& y, const StepNumber&) {
    return checkpoint([&](const Var& z) { return scan(z, 2, inner); }, y);
  };
  const Var start = tape.parameter(Tensor::vector({16}), "start");
  const Var nested = scan(start, 2, outer);  // 16, 2.77, 1.02, 0.02, and log(0.02) is negative
  const Var third = scan(nested, 1, inner);
  CHECK_THAT(error_of([&] { backward(sum(third), {.anomaly = true}); }),
             Contains("[log]") && Contains("in step 0 of the loop [scan]"));
  const Var deep = scan(start, 3, outer);
  CHECK_THAT(error_of([&] { backward(sum(deep), {.anomaly = true}); }),
             Contains("[log]") && Contains("in the checkpoint (recorded at") &&
                 Contains("in step 2 of the loop [scan]"));
}

TEST_CASE("a run that looks for anomalies and finds none has the bits of one that does not") {
  Tape tape;
  const Var x = tape.parameter(Tensor::uniform({64}, 1, 0.5, 1), "x");
  const auto step = [](const Var& y, const StepNumber&) { return dropout(sin(y) + y * y, 0.1); };
  const Var loss = sum(checkpoint([](const Var& y) { return exp(tanh(y)); }, scan(x, 7, step)));
  const Gradients plain = backward(loss);
  for (const Bytes budget : {unlimited, Bytes{4_KiB}}) {
    const Gradients found = backward(loss, {.memory_budget = budget, .anomaly = true});
    CHECK(same_bits(found.entries()[0].gradient, plain.entries()[0].gradient));
  }
}

}  // namespace
}  // namespace palimpsest::anomaly_test
