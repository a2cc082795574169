#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <array>

#include "autodiff/execute.h"
#include "autodiff/gradcheck.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "checkpoint/planners.h"
#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"

namespace palimpsest::checkpoint_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;
using Vars = std::vector<Var>;

Tensor some(Shape shape, std::uint64_t seed, DType dtype = DType::f64) {
  return Tensor::normal(shape, seed, 0, 1, dtype);
}

TEST_CASE("a checkpoint calls its function once and gives the same bits") {
  Tape tape;
  const Var x = tape.parameter(some({4, 4}, 1, DType::f32));
  const Var w = tape.parameter(some({4, 4}, 2, DType::f32));
  int calls = 0;
  const auto f = [&](const Var& a, const Var& b) {
    ++calls;
    return tanh(matmul(tanh(matmul(a, b)), b)) * a;
  };
  const Var direct = f(x, w);
  calls = 0;
  const Var kept = checkpoint(f, x, w);
  CHECK(tape.operation(kept.node()).name == "checkpoint");
  CHECK(same_bits(kept.value(), direct.value()));
  for (const Var& leaf : {x, w}) {
    CHECK(same_bits(gradient(kept, leaf).value(), gradient(direct, leaf).value()));
  }
  CHECK(calls == 1);
}

TEST_CASE("values a checkpoint captures get their gradients, to the second order") {
  const Tensor inputs[] = {some({3}, 1), some({3}, 2)};
  const auto captured = gradcheck(
      [](std::span<const Var> xs) {
        const Var inner = exp(xs[1]);
        return checkpoint([&](const Var& x) { return tanh(x * inner) * xs[1]; }, xs[0]);
      },
      inputs);
  INFO(captured.message);
  CHECK(captured.passed);

  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(3, DType::f64));
  const Var w = tape.parameter(Tensor::scalar(5, DType::f64));
  const Var y = checkpoint([&](const Var& a) { return a * w * w; }, x);
  CHECK(gradient(y, w).item() == 30);
}

TEST_CASE("checkpoints nest, take and give several values") {
  const Tensor inputs[] = {some({2, 3}, 1), some({3, 2}, 2), some({2, 2}, 3)};
  const auto result = gradcheck(
      [](std::span<const Var> xs) {
        const Vars outer = checkpoint(
            [&](std::span<const Var> ys) {
              const Var product = matmul(ys[0], ys[1]);
              const Var inner = checkpoint(
                  [&](const Var& z) {
                    return tanh(checkpoint([](const Var& u) { return u * u; }, z) + product);
                  },
                  xs[2]);
              return Vars{inner * product, tanh(product), inner};
            },
            xs.first(2));
        return outer[0] * outer[1] + outer[2];
      },
      inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("a checkpoint may return arguments, constants, views and one value twice") {
  Tape tape;
  const Var x = tape.parameter(some({2, 3}, 1));
  const Var w = tape.parameter(some({2, 3}, 2));
  const auto f = [&](std::span<const Var> xs) {
    const Var y = tanh(xs[0]);
    const Var flat = reshape(y, {6});
    return Vars{xs[0], w, flat, y, y, tape.constant(Tensor::scalar(7)), reshape(xs[0], {6})};
  };
  const Vars direct = f(Vars{x});
  const Vars kept = checkpoint(f, Vars{x});
  REQUIRE(kept.size() == direct.size());
  for (std::size_t i = 0; i < direct.size(); ++i) {
    INFO("output " << i);
    CHECK(same_bits(kept[i].value(), direct[i].value()));
  }
  const auto total = [](const Vars& ys) {
    Var result = sum(ys[0] * ys[1]);
    for (const Var& y : ys) result = result + sum(y * y);
    return result;
  };
  // The loss of the checkpoint sums its contributions in another order.
  for (const Var& leaf : {x, w}) {
    const Tensor a = gradient(total(kept), leaf).value();
    const Tensor b = gradient(total(direct), leaf).value();
    for (std::int64_t i = 0; i < a.elements(); ++i) {
      CHECK_THAT(a.at(i), Catch::Matchers::WithinAbs(b.at(i), 1e-12));
    }
  }
}

TEST_CASE("a checkpoint of the gradient of a checkpoint") {
  const Tensor inputs[] = {some({3}, 1)};
  const auto result = gradcheck(
      [](std::span<const Var> xs) {
        return checkpoint(
            [](const Var& x) {
              const Var y = checkpoint([](const Var& a) { return tanh(a) * a; }, x);
              return gradient(y, x) * y;
            },
            xs[0]);
      },
      inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("no derivative flows where the function of a checkpoint lets none") {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(3, DType::f64));
  const auto f = [&](const Var& a) {
    const auto scope = tape.no_gradient();
    return a * a;
  };
  CHECK(gradient(checkpoint(f, x), x).item() == 0);
  const auto scope = tape.no_gradient();
  CHECK(gradient(checkpoint([](const Var& a) { return a * a; }, x) + x, x).item() == 0);
}

TEST_CASE("a checkpoint runs in its workspace and outputs alone") {
  Tape tape;
  const Var x = tape.parameter(some({64, 64}, 1, DType::f32));
  const auto f = [](const Var& a) {
    Var y = a;
    for (int i = 0; i < 10; ++i) y = tanh(y * a);
    return sum(y);
  };
  const Var y = checkpoint(f, x);
  const NodeView node(tape.nodes(), y.node());
  // One product and its hyperbolic tangent at a time.
  CHECK(workspace_of(node, 1) == 2 * 64 * 64 * 4);
  CHECK(cost_of(node).flops > 10 * 64 * 64);
  Tape tiny;
  const Var empty =
      checkpoint([](const Var& a) { return tanh(exp(a)); }, tiny.constant(Tensor::zeros({0, 3})));
  CHECK(empty.value().shape() == Shape{0, 3});
  CHECK(checkpoint([](const Var& a) { return a; }, x).value().at(5) == x.value().at(5));
}

/// Blocks of three layers; with `checkpointed`, each block is a checkpoint.
Var network(Tape& tape, bool checkpointed, DType dtype = DType::f32) {
  Var x = tape.constant(some({32, 16}, 1, dtype));
  for (std::uint64_t block = 0; block < 8; ++block) {
    const Var w = tape.parameter(some({16, 16}, 10 + block, dtype));
    const auto f = [&](const Var& a) {
      Var y = a;
      for (int layer = 0; layer < 3; ++layer) y = tanh(matmul(y, w) * 0.3);
      return y + a;
    };
    x = checkpointed ? checkpoint(f, x) : f(x);
  }
  return sum(x * x);
}

TEST_CASE("checkpointed gradients have the same bits in every mode and take less memory") {
  Tape plain(lazy());
  const Gradients expected = backward(network(plain, false), {.planner = keep_all()});
  const auto run = [&](std::shared_ptr<Evaluator> evaluator, const RunOptions& options) {
    Tape tape(std::move(evaluator));
    const Gradients found = backward(network(tape, true), options);
    REQUIRE(found.entries().size() == expected.entries().size());
    for (std::size_t i = 0; i < found.entries().size(); ++i) {
      CHECK(same_bits(found.entries()[i].gradient, expected.entries()[i].gradient));
    }
    CHECK(found.report().measured_peak <= found.report().predicted_peak);
    return found.report().predicted_peak;
  };
  CHECK(run(lazy(), {.planner = keep_all()}) < expected.report().predicted_peak * 6 / 10);
  for (const int threads : {1, 2, 4}) run(lazy(), {.threads = threads});
  run(eager(), {});
  run(lazy(), {.memory_budget = expected.report().predicted_peak / 3});
  run(lazy(), {.planner = square_root()});
}

TEST_CASE("a checkpoint at half width is exact forward, and differentiated where it is kept") {
  const auto f = [](const Var& x, const Var& w) { return tanh(matmul(x, w)) * x; };
  const Tensor weight = some({4, 4}, 2, DType::f32);
  for (const auto& [codec, stored] :
       {std::pair(Codec::half, DType::bf16), {Codec::half_f16, DType::f16}}) {
    CAPTURE(name_of(codec));
    Tape tape;
    const Var a = tape.parameter(some({4, 4}, 1, DType::f32));
    const Var w = tape.parameter(weight);
    const Var x = sin(a);
    const Var y = checkpoint({.codec = codec}, f, x, w);
    CHECK(same_bits(y.value(), f(x, w).value()));
    // Expected by hand: the adjoint of f at the rounded input, and the exact remainder.
    const Var rounded = tape.constant(cast(cast(x, stored), DType::f32).value().clone());
    const Var there = f(rounded, w);
    CHECK(same_bits(gradient(y, w).value(), gradient(there, w).value()));
    const Var expected = cos(a) * gradient(there, rounded);
    const Var found = gradient(y, a);
    CHECK_FALSE(same_bits(found.value(), gradient(f(x, w), a).value()));
    for (std::int64_t k = 0; k < 16; ++k) {
      CHECK_THAT(found.value().at(k), WithinRel(expected.value().at(k), 1e-5));
    }
  }
}

TEST_CASE("a checkpoint at half width has derivatives of any order, and keeps leaves as they are") {
  const Tensor inputs[] = {some({3}, 1), some({3}, 2)};
  const auto result = gradcheck(
      [](std::span<const Var> xs) {
        const Var inner = exp(xs[1]);
        const auto f = [&](const Var& a, const Var& b) { return tanh(a * b) * inner; };
        return sum(checkpoint({.codec = Codec::half}, f, xs[0] * xs[1], xs[0]));
      },
      inputs, {.tolerance = 1e-4});
  INFO(result.message);
  CHECK(result.passed);

  Tape tape;
  const Var x = tape.parameter(some({8}, 1));
  const auto cube = [](const Var& a) { return a * a * a; };
  const Var of_leaf = checkpoint({.codec = Codec::half}, cube, x);
  CHECK(same_bits(gradient(of_leaf, x).value(), gradient(cube(x), x).value()));
  const Var y = checkpoint({.codec = Codec::half}, cube, x * 1.5);
  const Var second = gradient(gradient(y, x), x);
  for (std::int64_t k = 0; k < 8; ++k) {
    CHECK_THAT(second.value().at(k), WithinRel(6 * 1.5 * 1.5 * 1.5 * x.value().at(k), 1e-6));
  }
}

TEST_CASE("checkpoints at half width keep half the bytes, with the same bits at any budget") {
  const auto loss_of = [](Tape& tape, Codec codec) {
    const Var w = tape.parameter(some({64, 64}, 1, DType::f32));
    Var x = tanh(tape.constant(some({256, 64}, 2, DType::f32)));
    for (int k = 0; k < 12; ++k) {
      x = checkpoint(
          {.codec = codec},
          [](const Var& a, const Var& b) { return tanh(matmul(tanh(matmul(a, b)), b)); }, x,
          w * 0.1);
    }
    return sum(x * x);
  };
  const auto run = [&](Codec codec, const RunOptions& options) {
    Tape tape;
    const Gradients found = backward(loss_of(tape, codec), options);
    CHECK(found.report().measured_peak <= found.report().predicted_peak);
    return std::pair(found.entries()[0].gradient.clone(), found.report().measured_peak);
  };
  const auto exact = run(Codec::exact, {.planner = keep_all()});
  const auto half = run(Codec::half, {.planner = keep_all()});
  CHECK(half.second < exact.second);
  const auto within = run(Codec::half, {.memory_budget = half.second * 3 / 4});
  CHECK(within.second <= half.second * 3 / 4);
  CHECK(same_bits(within.first, half.first));
  CHECK_FALSE(same_bits(half.first, exact.first));
  double largest = 0;
  double apart = 0;
  for (std::int64_t k = 0; k < exact.first.elements(); ++k) {
    largest = std::max(largest, std::abs(exact.first.at(k)));
    apart = std::max(apart, std::abs(exact.first.at(k) - half.first.at(k)));
  }
  CHECK(apart < 0.02 * largest);
}

TEST_CASE("a codec does not raise the smallest budget of checkpoints") {
  const auto smallest = [](Codec codec) {
    Tape tape;
    const Var w = tape.parameter(some({32, 32}, 1, DType::f32));
    Var x = tanh(tape.constant(some({512, 32}, 2, DType::f32)));
    for (int k = 0; k < 12; ++k) {
      x = checkpoint({.codec = codec}, [&](const Var& a) { return tanh(matmul(a, w)); }, x);
    }
    const Var loss = sum(x * x);
    try {
      backward(loss, {.memory_budget = 0});
    } catch (const BudgetError& error) {
      const Gradients found = backward(loss, {.memory_budget = error.smallest_feasible()});
      CHECK(found.report().measured_peak <= error.smallest_feasible());
      return error.smallest_feasible();
    }
    return Bytes{-1};
  };
  const Bytes exact = smallest(Codec::exact);
  CHECK(exact > 0);
  CHECK(smallest(Codec::half) <= exact);
  CHECK(smallest(Codec::half_f16) <= exact);
}

TEST_CASE("a number that an input's copy cannot hold is an error that names the checkpoint") {
  for (const auto& evaluator : {lazy(), eager()}) {
    Tape tape(evaluator);
    const Var x = tape.parameter(Tensor::vector({1, 7e4}));
    const auto record = [&](Codec codec) {
      return sum(checkpoint({.codec = codec}, [](const Var& a) { return tanh(a); }, x * 1.0));
    };
    CHECK(std::isfinite(backward(record(Codec::half)).loss().item()));
    CHECK_THROWS_AS(backward(record(Codec::half_f16)), ArgumentError);
    CHECK_THROWS_WITH(backward(record(Codec::half_f16)),
                      Catch::Matchers::Contains("[checkpoint] an input cannot be kept") &&
                          Catch::Matchers::Contains("70000 is too large for f16") &&
                          Catch::Matchers::Contains("checkpoint_test.cpp:"));
  }
}

TEST_CASE("16-bit values inside a checkpoint are widened as outside") {
  Tape plain;
  Tape kept;
  CHECK(same_bits(network(plain, false, DType::bf16).value(),
                  network(kept, true, DType::bf16).value()));
}

TEST_CASE("a Var leaked from a checkpoint is an error when it is used") {
  for (const auto& evaluator : {lazy(), eager()}) {
    Tape tape(evaluator);
    const Var x = tape.parameter(some({3}, 1));
    Var leaked;
    const auto f = [&](const Var& a) {
      leaked = tanh(a);
      return leaked * leaked;
    };
    const Var y = checkpoint(f, x);
    const Var z = exp(y) + 1;  // may have the same id as the leaked value
    CHECK_THROWS_WITH(leaked.value(), Contains("a function given to checkpoint()"));
    CHECK_THROWS_AS(leaked + x, TapeError);
    CHECK_THROWS_AS(leaked.shape(), TapeError);
    CHECK_FALSE(leaked == z);
    CHECK_NOTHROW(backward(sum(z * x)));
    CHECK_THROWS_AS(sum(leaked), TapeError);
  }
}

TEST_CASE("errors of a checkpoint name its line and leave the tape usable") {
  Tape tape;
  const Var x = tape.parameter(some({3}, 1));
  CHECK_THROWS_WITH(checkpoint([](std::span<const Var>) { return Vars{}; }, Vars{x}),
                    Contains("returned no value") && Contains("checkpoint_test.cpp"));
  CHECK_THROWS_AS(checkpoint([&](const Var& a) { return a * tape.parameter(some({3}, 2)); }, x),
                  ArgumentError);
  CHECK_THROWS_AS(checkpoint([&](const Var& a) { return matmul(a, reshape(a, {1, 3})); }, x),
                  ShapeError);
  CHECK(tape.node_count() == 1);
  CHECK(checkpoint([](const Var& a) { return a + a; }, x).value().at(0) == 2 * x.value().at(0));
}

}  // namespace
}  // namespace palimpsest::checkpoint_test
