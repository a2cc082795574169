#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "autodiff/custom.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "strategy/backward.h"
#include "strategy/compile/fusion/lowered.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::in_place_test {
namespace {

/// Uses four threads on every machine.
const tbb::global_control four_threads(tbb::global_control::max_allowed_parallelism, 4);

/// Elementwise operations on arrays `a` and `b`, and the number of arrays that they compute in
/// place.
struct InPlace {
  const char* name;
  int count;
  std::vector<Var> (*call)(const Var& a, const Var& b);
};

const InPlace programs[] = {
    {"a chain", 1, [](const Var& a, const Var&) { return std::vector{tanh(a) * 2.0}; }},
    {"of two arrays", 1, [](const Var& a, const Var& b) { return std::vector{a * b}; }},
    {"the same array twice", 1, [](const Var& a, const Var&) { return std::vector{a * a}; }},
    {"an array and a number of it", 1,
     [](const Var& a, const Var&) {
       const Var greatest = max(a);
       return std::vector{exp(a - greatest)};
     }},
    {"in another shape", 1,
     [](const Var& a, const Var&) { return std::vector{tanh(reshape(a, {-1})) * 2.0}; }},
    {"two outputs that want one array", 1,
     [](const Var& a, const Var&) { return std::vector{tanh(a), exp(a) - 1.0}; }},
    {"two outputs, two arrays", 2,
     [](const Var& a, const Var& b) {
       const Var y = tanh(a);
       return std::vector{y, exp(b) + y};
     }},
    {"read before by another", 1,
     [](const Var& a, const Var&) {
       const Var before = cumsum(a, 1);
       return std::vector{before, tanh(a)};
     }},
    {"read later by another", 0,
     [](const Var& a, const Var&) {
       const Var y = tanh(a);
       return std::vector{y, cumsum(a, 1)};
     }},
    {"an array that is asked for", 0,
     [](const Var& a, const Var&) { return std::vector{tanh(a), a}; }},
    {"a view that is asked for", 0,
     [](const Var& a, const Var&) { return std::vector{tanh(a), reshape(a, {-1})}; }},
    {"a neighbour of its own", 0,
     [](const Var& a, const Var&) { return std::vector{a + tanh(roll(a, 1, 0))}; }},
    // The preceding operation computes its own array, which is overwritten.
    {"turned", 1, [](const Var& a, const Var&) { return std::vector{tanh(transpose(a))}; }},
    {"and turned", 1, [](const Var& a, const Var&) { return std::vector{a + tanh(transpose(a))}; }},
    {"a row of it", 1,
     [](const Var& a, const Var&) { return std::vector{a * slice(a, 0, {2, 3})}; }},
    {"spread", 0,
     [](const Var& a, const Var&) {
       const Var row = cumsum(slice(a, 0, {2, 3}), 1);
       return std::vector{tanh(broadcast_to(row, a.shape()))};
     }},
    {"another dtype", 0,
     [](const Var& a, const Var&) { return std::vector{cast(a * 100.0, DType::i32)}; }},
};

/// Runs one program, with the gradients of its differentiable values.
std::vector<Tensor> results_of(const InPlace& program, const RunOptions& options, DType dtype) {
  Tape tape;
  const Var x = tape.parameter(Tensor::uniform({300, 300}, 1, -0.1, 0.1, dtype));
  const Var y = tape.parameter(Tensor::uniform({300, 300}, 2, -0.1, 0.1, dtype));
  std::vector<Var> values = program.call(cumsum(x, 0), cumsum(y, 0));
  Var loss = sum(x);
  for (const Var& value : values) {
    if (is_floating(value.dtype())) loss = loss + sum(value * value);
  }
  const std::vector<Var> gradients = gradient(loss, std::vector{x, y});
  values.insert(values.end(), gradients.begin(), gradients.end());
  const Report report = evaluate(values, options);
  CHECK(report.measured_peak <= report.predicted_peak);
  CHECK(report.measured_live_peak <= report.predicted_peak);
  if (options.threads == 1) CHECK(report.measured_live_peak == report.predicted_live_peak);
  std::vector<Tensor> tensors;
  for (const Var& value : values) tensors.push_back(value.value());
  return tensors;
}

TEST_CASE("elementwise operations write over what nothing reads any more") {
  for (const InPlace& program : programs) {
    INFO(program.name);
    Tape tape;
    const Var x = tape.parameter(Tensor::ones({30, 30}));
    const std::vector<Var> values = program.call(cumsum(x, 0), cumsum(x * 2.0, 0));
    std::vector<ValueId> targets;
    for (const Var& value : values) targets.push_back(value.id());
    const Graph graph = Lowered::fused(tape, targets, 2, tape.node_count(), {}).graph();
    const Layout layout = make_plan(graph, *keep_all()).layout;
    const auto count = std::ranges::count_if(
        layout.intervals, [&](const Interval& interval) { return interval.takes_over != none; });
    CHECK(count == program.count);
  }
}

TEST_CASE("in place, elements have the same bits") {
  for (const InPlace& program : programs) {
    INFO(program.name);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      const auto apart = results_of(program, {.threads = 1, .fuse = false}, dtype);
      for (const int threads : {1, 2, 3, 4}) {
        CHECK(equal(apart, results_of(program, {.threads = threads}, dtype)));
      }
    }
  }
}

TEST_CASE("in place, elements have the same bits within every budget") {
  for (const InPlace& program : programs) {
    INFO(program.name);
    const auto apart = results_of(program, {.threads = 1, .fuse = false}, DType::f32);
    Bytes budget = 20 * 300 * 300 * 4;
    for (bool is_smallest = false; !is_smallest;) {
      try {
        results_of(program, {.memory_budget = budget * 3 / 4}, DType::f32);
        budget = budget * 3 / 4;
      } catch (const BudgetError& error) {
        budget = error.smallest_feasible();
        is_smallest = true;
      }
      for (const int threads : {1, 3}) {
        const RunOptions options{.memory_budget = budget, .threads = threads};
        CHECK(equal(apart, results_of(program, options, DType::f32)));
      }
    }
  }
}

TEST_CASE("what the user holds or supplies is never written over") {
  const Tensor supplied = Tensor::uniform({300, 300}, 1);
  const Tensor copy = supplied.clone();
  Tape tape;
  const Var x = tape.constant(supplied);
  const Var a = cumsum(x, 0);
  const Tensor held = a.value();
  const Tensor expected = held.clone();
  evaluate(std::vector<Var>{tanh(a) * 2.0, tanh(x) * 2.0});
  CHECK(same_bits(held, expected));
  CHECK(same_bits(supplied, copy));
  CHECK(same_bits(a.value(), expected));
}

TEST_CASE("what is present is written over, and made again when it is asked for") {
  for (const auto& evaluator : {lazy(), eager()}) {
    Tape tape(evaluator);
    const Var x = tape.constant(Tensor::uniform({300, 300}, 1));
    const Var a = cumsum(x, 0);
    const Tensor expected = a.value().clone();
    const Var y = tanh(a) * 2.0;
    Tape other;
    CHECK(same_bits(y.value(), (tanh(other.constant(expected)) * 2.0).value()));
    CHECK(same_bits(a.value(), expected));
  }
}

/// An operation that takes some time, although the plan does not know.
CustomOperation slow(int milliseconds) {
  return CustomOperation({
      .name = "slow",
      .forward =
          [milliseconds](const CustomCall& call) {
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
            std::ranges::copy(call.inputs[0].data<float>(), call.outputs[0].data<float>().begin());
          },
      .cost = [](const NodeView&) { return Cost{}; },
  });
}

TEST_CASE("live bytes stay within the prediction while steps take long, on any number of threads") {
  for (const int threads : {1, 2, 3, 4}) {
    for (const bool product : {true, false}) {
      Tape tape;
      const Var x = tape.constant(Tensor::uniform({400, 400}, 1, -0.1, 0.1, DType::f32));
      std::vector<Var> ends;
      for (int branch = 0; branch < 3; ++branch) {
        Var h = slow(1)({cumsum(x, branch % 2)});
        for (int step = 0; step < 4; ++step) {
          h = product ? h + matmul(x, x) : tanh(h) * 0.5;
          h = slow(3)({h});
        }
        ends.push_back(sum(h));
      }
      const Report report = evaluate(ends, {.threads = threads});
      CHECK(report.measured_live_peak <= report.predicted_peak);
      CHECK(report.measured_peak <= report.predicted_peak);
    }
  }
}

TEST_CASE("a chain between large steps takes two arrays") {
  Tape tape;
  const Var x = tape.constant(Tensor::uniform({200, 200}, 1, -0.1, 0.1, DType::f32));
  Var h = x;
  for (int step = 0; step < 6; ++step) h = tanh(cumsum(h, step % 2)) * 0.5;
  const Report report = evaluate(std::vector<Var>{h}, {.threads = 1});
  constexpr Bytes array = 200 * 200 * 4;
  CHECK(report.measured_peak < 2 * array + array / 2);
}

}  // namespace
}  // namespace palimpsest::in_place_test
