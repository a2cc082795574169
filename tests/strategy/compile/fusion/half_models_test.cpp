#include <algorithm>

#include <oneapi/tbb/global_control.h>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::half_models_test {
namespace {

/// Uses four threads on every machine.
const tbb::global_control four_threads(tbb::global_control::max_allowed_parallelism, 4);

/// A loss of f32 parameters, computed in a 16-bit type where that suffices.
struct Model {
  const char* name;
  std::vector<Shape> parameters;
  Var (*loss)(const std::vector<Var>& parameters, DType half);
};

const Model models[] = {
    {"a perceptron",
     {{96, 48}, {48, 64}, {64}, {64, 64}, {64}, {64, 10}},
     [](const std::vector<Var>& p, DType half) {
       const auto narrow = [&](const Var& x) { return cast(x, half); };
       Var h = gelu(matmul(narrow(p[0]), narrow(p[1])) + narrow(p[2]));
       h = h + gelu(matmul(h, narrow(p[3])) + narrow(p[4])) * 0.5;
       h = narrow(layer_norm(cast(h, DType::f32)));
       const Var logits = cast(matmul(h, narrow(p[5])), DType::f32);
       return mean(-log_softmax(logits) * softmax(logits * 0.5));
     }},
    {"attention",
     {{2, 40, 32}, {32, 32}, {32, 32}, {32, 32}, {32}},
     [](const std::vector<Var>& p, DType half) {
       const Var x = cast(p[0], half);
       const Var queries = matmul(x, cast(p[1], half)) * 0.176;
       const Var keys = silu(matmul(x, cast(p[2], half)));
       const Var values = matmul(x, cast(p[3], half)) * sigmoid(cast(p[4], half));
       const Var scores = cast(matmul(queries, keys, {.transpose_b = true}), DType::f32);
       const Var weights = cast(softmax(scores * 0.5 - 0.1), half);
       const Var y = x + matmul(weights, values);
       return mean(square(cast(y, DType::f32)));
     }},
    {"neighbours",
     {{40'000}, {}},
     [](const std::vector<Var>& p, DType half) {
       Var u = cast(p[0], half);
       const Var speed = cast(p[1], half);
       for (int step = 0; step < 6; ++step) {
         u = u + (roll(u, 1, 0) - 2.0 * u + roll(u, -1, 0)) * (tanh(speed) * 0.1);
       }
       return mean(square(cast(u, DType::f32)));
     }},
};

struct Run {
  std::vector<Tensor> tensors;
  Report report;
};

Run run(const Model& model, DType half, const RunOptions& options) {
  Tape tape;
  std::vector<Var> parameters;
  for (const Shape& shape : model.parameters) {
    parameters.push_back(
        tape.parameter(Tensor::normal(shape, parameters.size(), 0, 0.3, DType::f32)));
  }
  const Gradients gradients = backward(model.loss(parameters, half), options);
  const Report& report = gradients.report();
  CHECK(report.measured_peak <= report.predicted_peak);
  CHECK(report.measured_live_peak <= report.predicted_peak);
  CHECK(report.predicted_peak <= options.memory_budget);
  if (options.threads == 1) CHECK(report.measured_live_peak == report.predicted_live_peak);
  Run made{{gradients.loss()}, report};
  for (const Var& parameter : parameters) made.tensors.push_back(gradients[parameter]);
  return made;
}

TEST_CASE("models of mixed precision have the bits of single operations on any threads") {
  for (const Model& model : models) {
    for (const DType half : {DType::bf16, DType::f16}) {
      INFO(model.name << ", " << name_of(half));
      const Run alone = run(model, half, {.threads = 1, .fuse = false});
      for (const int threads : {1, 2, 3, 4}) {
        const Run together = run(model, half, {.threads = threads});
        CHECK(equal(alone.tensors, together.tensors));
        // With several threads the peak may be a tenth higher, so that branches do not wait for
        // memory.
        const Bytes most = alone.report.measured_peak;
        CHECK(together.report.measured_peak <= (threads == 1 ? most : most + most / 10));
      }
    }
  }
}

/// It differs between numbers of threads, as do the plans that are found.
Bytes smallest_budget(const Model& model, DType half, int threads) {
  try {
    run(model, half, {.memory_budget = 1, .threads = threads});
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
  FAIL("one byte is enough");
  return 0;
}

TEST_CASE("models of mixed precision have the same bits within every budget") {
  for (const Model& model : models) {
    for (const DType half : {DType::bf16, DType::f16}) {
      INFO(model.name << ", " << name_of(half));
      const Run alone = run(model, half, {.threads = 1, .fuse = false});
      Bytes budget = alone.report.measured_peak;
      for (bool is_smallest = false; !is_smallest;) {
        try {
          budget = budget * 3 / 4;
          const Run within = run(model, half, {.memory_budget = budget});
          CHECK(equal(alone.tensors, within.tensors));
        } catch (const BudgetError& error) {
          budget = error.smallest_feasible();
          is_smallest = true;
        }
      }
      for (const int threads : {1, 3}) {
        const Bytes smallest = smallest_budget(model, half, threads);
        const RunOptions options{.memory_budget = std::max(budget, smallest), .threads = threads};
        CHECK(equal(alone.tensors, run(model, half, options).tensors));
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::half_models_test
