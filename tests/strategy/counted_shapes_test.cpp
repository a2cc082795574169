// Operations whose shapes depend on values evaluate them when they are recorded.
#include <vector>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "checkpoint/checkpoint.h"
#include "palimpsest.h"
#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/loops/scan.h"
#include "strategy/program.h"
#include "tests/catch.h"

namespace counted_shapes_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

const Tensor start = Tensor::normal({40, 7}, 3, 0, 1, DType::f64);

/// A loss that selects elements by value, twice.
Var select_twice(const Var& x) {
  const Var above = masked_select(x, x > 0.25);
  const Var values = unique(tanh(above)).values;
  return sum(square(index(values, {values < 0.75})));
}

TEST_CASE("selected elements have the same gradient in every mode and budget") {
  Tape tape;
  const Var x = tape.parameter(start);
  const Gradients expected = backward(select_twice(x));
  const auto check = [&](const std::shared_ptr<Evaluator>& evaluator, Bytes budget) {
    Tape other(evaluator);
    const Var y = other.parameter(start);
    const Gradients found = backward(select_twice(y), {.memory_budget = budget});
    CHECK(same_bits(found.loss(), expected.loss()));
    CHECK(same_bits(found[y], expected[x]));
    CHECK(found.report().measured_peak <= found.report().predicted_peak);
  };
  check(lazy(), unlimited);
  check(lazy(), expected.report().keep_all_peak);
  check(eager(), unlimited);
  check(hybrid({}, {.nodes = 5}), unlimited);
  Tape kept;
  const Var z = kept.parameter(start);
  const Var loss = checkpoint([](const Var& v) { return select_twice(v * 1.0); }, z);
  CHECK(same_bits(backward(loss)[z], expected[x]));
}

TEST_CASE("a loop that selects by value counts in every step") {
  Tape tape;
  const Var x = tape.parameter(start);
  const auto step = [](const Var& state) {
    return state * 0.5 + 0.01 * sum(masked_select(state, state > 0.25));
  };
  const Var looped =
      sum(scan(x, 4, [&](const Var& state, const StepNumber&) { return step(state); }));
  const Var unrolled = sum(step(step(step(step(x)))));
  CHECK(same_bits(looped.value(), unrolled.value()));
  CHECK(same_bits(backward(looped)[x], backward(unrolled)[x]));
}

TEST_CASE("a program that meets another count than it recorded refuses it") {
  Var leaf;
  const Program program = Program::values([&](Tape& tape) {
    leaf = tape.constant(Tensor::from<double>({1, -2, 3}, {3}));
    return std::vector<Var>{masked_select(leaf, leaf > 0), bincount(cast(leaf * leaf, DType::i64))};
  });
  Runner runner(program);
  runner.run();
  CHECK(runner.value(program.outputs()[0]).at(1) == 3);
  runner.bind(leaf, Tensor::from<double>({-1, 2, 3}, {3}));
  runner.run();
  CHECK(runner.value(program.outputs()[0]).at(0) == 2);
  runner.bind(leaf, Tensor::from<double>({-1, -2, 3}, {3}));
  CHECK_THROWS_WITH(runner.run(), Contains("[nonzero] 1 elements") && Contains("2 were recorded"));
  runner.bind(leaf, Tensor::from<double>({1, 2, -1}, {3}));
  CHECK_THROWS_WITH(runner.run(), Contains("[bincount] the largest element is 4") &&
                                      Contains("length 10 was recorded"));
}

}  // namespace counted_shapes_test
