#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::reductions_test {
namespace {

/// Reductions at the end of a fused group.
struct Reduction {
  const char* name;
  Shape shape;
  std::vector<Var> (*call)(const Var&);
  std::size_t units;  ///< units that run, including operations that cannot join a group
};

const Reduction reductions[] = {
    {"a sum", {10'000}, [](const Var& x) { return std::vector{sum(x * x)}; }, 1},
    {"a short one", {64}, [](const Var& x) { return std::vector{sum(exp(x))}; }, 1},
    {"one too short", {63}, [](const Var& x) { return std::vector{sum(exp(x))}; }, 2},
    {"a sum of segments", {200'001}, [](const Var& x) { return std::vector{sum(x * x - 1.0)}; }, 1},
    {"several, and what they are of",
     {5'003},
     [](const Var& x) {
       const Var y = tanh(x) * x;
       return std::vector{sum(y), mean(y * y), y, prod(y * 0.001 + 1.0)};
     },
     1},
    {"rows shorter than a tile",
     {50, 200},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {1}), mean(y * y, {-1}, true)};
     },
     1},
    {"rows of odd length", {70, 101}, [](const Var& x) { return std::vector{sum(x * x, {1})}; }, 1},
    {"rows longer than a tile",
     {5, 9'999},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {1}), y * 2.0};
     },
     1},
    {"rows of segments",
     {3, 40'000},
     [](const Var& x) { return std::vector{mean(x * x, {1})}; },
     1},
    {"several axes", {4, 30, 40}, [](const Var& x) { return std::vector{sum(x * x, {1, 2})}; }, 1},
    {"columns", {300, 40}, [](const Var& x) { return std::vector{sum(x * x, {0})}; }, 1},
    {"rows too few for columns",
     {15, 40},
     [](const Var& x) { return std::vector{sum(x * x, {0})}; },
     2},
    {"too many columns", {20, 2'049}, [](const Var& x) { return std::vector{sum(x * x, {0})}; }, 2},
    {"two columns, and what they are of",
     {2'501, 2},
     [](const Var& x) {
       const Var y = tanh(x) * x;
       return std::vector{sum(y, {0}), y, prod(y * 0.001 + 1.0, {0}), mean(y * y, {0})};
     },
     1},
    {"columns in segments",
     {3'001, 37},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{mean(y, {0}, true), sum(y * y, {0})};
     },
     1},
    {"columns in several tiles and segments",
     {203, 1'600},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {0}), y * 2.0};
     },
     1},
    {"groups of columns",
     {6, 90, 5},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {1}), mean(y * y, {1})};
     },
     1},
    {"groups of long columns",
     {3, 70, 400},
     [](const Var& x) { return std::vector{sum(x * x - 1.0, {1})}; },
     1},
    {"columns and rows",
     {64, 100},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {0}), sum(y, {1}), sum(y)};
     },
     3},
    {"rows of two lengths",
     {10, 100, 100},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {1, 2}), sum(y, {2}), sum(y)};
     },
     3},
    {"a sum that its own elements are divided by",
     {30'000},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{y / sum(y)};
     },
     2},
};

TEST_CASE("groups end in reductions, with their bits") {
  for (const Reduction& reduction : reductions) {
    INFO(reduction.name);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      const Tensor values = Tensor::uniform(reduction.shape, 3, -1, 1, dtype);
      const auto run = [&](const RunOptions& options) {
        Tape tape;
        const std::vector<Var> results = reduction.call(tape.parameter(values));
        const Report report = evaluate(results, options);
        if (options.fuse) CHECK(report.computed == reduction.units);
        std::vector<Tensor> tensors;
        for (const Var& result : results) tensors.push_back(result.value());
        return tensors;
      };
      const auto alone = run({.threads = 1, .fuse = false});
      CHECK(equal(alone, run({.threads = 1})));
      CHECK(equal(alone, run({.threads = 3})));
    }
  }
}

TEST_CASE("integers are summed in groups, in segments too") {
  for (const DType dtype : {DType::i32, DType::i64}) {
    const auto run = [&](bool fuse) {
      Tape tape;
      const Var x = tape.constant(Tensor::arange(40'000, dtype));
      const Var square = reshape(x, {200, 200});
      const std::vector<Var> results{sum(x + x), sum(square * 3, {1}), sum(square + square, {0})};
      evaluate(results, {.fuse = fuse});
      return std::vector<Tensor>{results[0].value(), results[1].value(), results[2].value()};
    };
    CHECK(equal(run(true), run(false)));
  }
}

TEST_CASE("reductions of what no group makes run by themselves") {
  Tape tape;
  const Var b = tape.parameter(Tensor::ones({8, 1}));
  const Var y = tape.constant(Tensor::ones({8, 100})) + b;
  const Var empty = tape.constant(Tensor::ones({0, 64}));
  const std::vector<Var> results{sum(full(tape, {100}, 2.0, DType::f32)), gradient(y, b),
                                 sum(empty, {1}), sum(empty * 2.0, {1}), mean(empty + empty, {1})};
  evaluate(results);
  CHECK(results[0].item() == 200);
  CHECK(same_bits(results[1].value(), Tensor::full({8, 1}, 100)));
  for (const std::size_t i : {2, 3, 4}) CHECK(results[i].value().elements() == 0);
}

TEST_CASE("what is only summed takes no memory") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({100'000}, 0.5, DType::f32));
  const Gradients gradients = backward(mean(square(x * 3.0 - 1.0)), {.threads = 1});
  CHECK(gradients.report().measured_peak < 100'000 * 4 + 100'000);
}

}  // namespace
}  // namespace palimpsest::reductions_test
