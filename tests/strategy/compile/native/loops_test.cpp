// Steps of loops as single functions, forward and backward.
#include <functional>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

/// Records a loss, and lists the parameters.
using Loss = std::function<Var(Tape&, std::vector<Var>& parameters)>;

struct Found {
  std::vector<Tensor> gradients;
  Report report;
};

Found gradients_of(const Loss& record, const RunOptions& options) {
  Tape tape;
  std::vector<Var> parameters;
  const Var loss = record(tape, parameters);
  const Gradients gradients = backward(loss, options);
  Found found{{gradients.loss().clone()}, gradients.report()};
  for (const Var& each : parameters) found.gradients.push_back(gradients[each].clone());
  return found;
}

/// Compares gradients with those of the interpreter, within several budgets and on two threads.
void check_gradients(const Loss& record, std::uint32_t native_steps) {
  for (const Bytes budget : {unlimited, Bytes{400_KiB}}) {
    for (const int threads : {1, 2}) {
      CAPTURE(budget, threads);
      RunOptions options{.memory_budget = budget, .threads = threads, .native = NativeCode::off};
      const Found expected = gradients_of(record, options);
      options.native = NativeCode::at_once;
      const Found found = gradients_of(record, options);
      REQUIRE(found.gradients.size() == expected.gradients.size());
      for (std::size_t i = 0; i < found.gradients.size(); ++i) {
        CHECK(same_bits(found.gradients[i], expected.gradients[i]));
      }
      INFO(found.report.native.problem);
      CHECK(found.report.native.steps >= native_steps);
      CHECK(found.report.measured_live_peak == expected.report.measured_live_peak);
    }
  }
}

TEST_CASE("a step of more elements than are computed at a time", "[native]") {
  check_gradients(
      [](Tape& tape, std::vector<Var>& parameters) {
        const Var start = tape.parameter(numbers({3000}, DType::f64, 1));
        const Var c = tape.parameter(Tensor::scalar(0.2, DType::f64));
        parameters = {start, c};
        const Var end = scan(start, 5, [&](const Var& u, const StepNumber&) {
          return tanh(u + c * sum(u * u) * exp(-u));
        });
        return sum(end * end);
      },
      2);
}

TEST_CASE("a scan of a stencil", "[native]") {
  check_gradients(
      [](Tape& tape, std::vector<Var>& parameters) {
        const Var start = tape.parameter(numbers({400}, DType::f64, 1));
        const Var c = tape.parameter(Tensor::scalar(0.2, DType::f64));
        parameters = {start, c};
        const Var end = scan(start, 60, [&](const Var& u, const StepNumber&) {
          const Var left = roll(u, 1, 0);
          return u - c * (u - left) + 0.1 * (roll(u, -1, 0) - 2.0 * u + left);
        });
        return sum(end * end);
      },
      2);
}

TEST_CASE("a scan with functions, products and step numbers", "[native]") {
  check_gradients(
      [](Tape& tape, std::vector<Var>& parameters) {
        const Var start = tape.parameter(numbers({1, 24}, DType::f32, 1));
        const Var weight = tape.parameter(numbers({24, 24}, DType::f32, 2));
        parameters = {start, weight};
        const Var end = scan(start, 40, [&](const Var& h, const StepNumber& step) {
          return tanh(matmul(h, weight * 0.05) + h * 0.5 + 0.01 * step.as(DType::f32));
        });
        return sum(end * end);
      },
      1);
}

TEST_CASE("a while loop", "[native]") {
  std::vector<Tensor> ends;
  for (const NativeCode native : {NativeCode::off, NativeCode::at_once}) {
    Tape tape;
    const Var start = tape.constant(numbers({300}, DType::f64, 1));
    Var end = while_loop(
        start, [](const Var& u) { return sum(u * u) > 1.0; },
        [](const Var& u, const StepNumber&) { return u * 0.9 - 0.01 * roll(u, 1, 0); });
    evaluate({&end, 1}, {.threads = 1, .native = native});
    ends.push_back(end.value().clone());
  }
  CHECK(same_bits(ends[0], ends[1]));
}

}  // namespace
}  // namespace palimpsest
