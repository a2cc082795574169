// Whole programs as one function.
#include <memory>
#include <stdexcept>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

/// Doubles its input, unless `*fails`.
CustomOperation doubled(const bool* fails) {
  return CustomOperation({.name = "doubled",
                          .forward =
                              [fails](const CustomCall& call) {
                                if (*fails) throw std::runtime_error("it fails");
                                const auto x = call.inputs[0].data<double>();
                                const auto y = call.outputs[0].data<double>();
                                for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
                              },
                          .vjp = [](const Pullback& p) { p.set(0, 2.0 * p.adjoint()); }});
}

struct RunOfAll {
  std::vector<Tensor> tensors;
  Report report;
};

/// Results of few and of many elements, of groups, products, sums, scans and a custom operation,
/// and gradients.
RunOfAll run_all(Tape& tape, const bool* fails, const RunOptions& options) {
  const Var x = tape.parameter(numbers({12, 40}, DType::f64, 1));
  const Var w = tape.parameter(numbers({40, 3}, DType::f64, 2));
  const Var few = matmul(tanh(x), w * 0.1);
  const Var sums = sum(few, {0});
  const Var states =
      scan(sums * 0.01, 5, [](const Var& u, const StepNumber&) { return u - 0.1 * sin(u); });
  const Var y = doubled(fails)(std::vector<Var>{cumsum(x, 1)});
  const Var loss = sum(y * y) + sum(states) + sum(exp(few * 0.01));
  const Gradients gradients = backward({loss, {sums, states, y}}, options);
  return {{gradients.loss().clone(), sums.value().clone(), states.value().clone(),
           y.value().clone(), gradients[x].clone(), gradients[w].clone()},
          gradients.report()};
}

bool same(const RunOfAll& a, const RunOfAll& b) {
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    if (!same_bits(a.tensors[i], b.tensors[i])) return false;
  }
  return a.report.measured_peak == b.report.measured_peak &&
         a.report.measured_live_peak == b.report.measured_live_peak &&
         a.report.computed == b.report.computed && a.report.recomputed == b.report.recomputed;
}

TEST_CASE("a whole native program has the results and the report of its steps", "[native]") {
  const bool fails = false;
  for (const Bytes budget : {unlimited, Bytes{24_KiB}}) {
    CAPTURE(budget);
    const RunOptions options{.memory_budget = budget, .threads = 1, .native = NativeCode::at_once};
    const auto run = [&](RunOptions changed) {
      Tape tape;
      return run_all(tape, &fails, changed);
    };
    const RunOfAll made = run(options);
    CHECK(made.report.native.groups > 0);
    RunOptions interpreted = options;
    interpreted.native = NativeCode::off;
    CHECK(same(run(interpreted), made));
    RunOptions watched = options;
    watched.progress = on_progress([](const RunProgress&) {});
    CHECK(same(run(watched), made));
    RunOptions profiled = options;
    profiled.profile = true;
    CHECK(same(run(profiled), made));
  }
}

TEST_CASE("an operation that fails ends a native program", "[native]") {
  bool fails = true;
  const RunOptions options{.threads = 1, .native = NativeCode::at_once};
  Tape tape;
  CHECK_THROWS_WITH(run_all(tape, &fails, options), Catch::Matchers::Contains("it fails"));
  fails = false;
  tape.clear();
  const RunOfAll after = run_all(tape, &fails, options);
  Tape other;
  CHECK(same(run_all(other, &fails, {.threads = 1, .native = NativeCode::off}), after));
}

}  // namespace
}  // namespace palimpsest
