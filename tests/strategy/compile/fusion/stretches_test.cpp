#include <algorithm>
#include <numeric>
#include <random>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "strategy/backward.h"
#include "strategy/program.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"
/// Fused groups that read through rolls, slices, pads and concatenations.
namespace palimpsest {
namespace {

/// Rearranges the elements of a row and keeps their number.
Var moved(const Var& x, std::mt19937_64& random) {
  const std::int64_t n = x.shape()[0];
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  // Mostly a neighbour, sometimes a distant element.
  const std::int64_t shift = below(2) == 0 ? 1 + below(2) : below(n);
  switch (below(6)) {
    case 0:
    case 1:
      return roll(x, shift, 0);
    case 2:
      return roll(x, -shift, 0);
    case 3: {
      const std::int64_t cut = below(n + 1);
      return concat({slice(x, 0, {cut, n}), slice(x, 0, {0, cut})}, 0);
    }
    case 4: {
      const std::int64_t cut = std::min(shift, n);
      return pad(slice(x, 0, {cut, n}), {{0, cut}});
    }
    default:
      return concat({slice(x, 0, {0, 1}), slice(x, 0, {0, n - 1})}, 0);
  }
}

/// Some steps of a scheme whose neighbours lie anywhere.
Var scheme(const Var& state, const Var& a, const Var& number, std::uint64_t seed, int steps) {
  std::mt19937_64 random(seed);
  Var u = state;
  for (int step = 0; step < steps; ++step) {
    const Var left = moved(u, random);
    const Var right = moved(u, random);
    switch (random() % 4) {
      case 0:
        u = u - 0.3 * (u - left) + 0.1 * (right - 2.0 * u + left);
        break;
      case 1:
        u = u + number * (left - u) * a;
        break;
      case 2:
        u = tanh(left * right) - moved(a, random) * 0.25 + u * 0.5;
        break;
      default:
        u = (left + right + u) * 0.3 + moved(u * a, random) * 0.125;
        break;
    }
  }
  return u;
}

std::vector<Tensor> results(std::int64_t n, DType dtype, std::uint64_t seed,
                            const RunOptions& options) {
  Tape tape;
  const Var x = tape.parameter(Tensor::uniform({n}, seed, -1, 1, dtype));
  const Var a = tape.parameter(Tensor::uniform({n}, seed + 1, -1, 1, dtype));
  const Var number = tape.parameter(Tensor::full({}, 0.3, dtype));
  const Var y = scheme(x, a, number, seed, 4);
  const Gradients gradients = backward(sum(y * y), options);
  return {y.value(), gradients.loss(), gradients[x], gradients[a], gradients[number]};
}

TEST_CASE("what is put together of stretches has the bits of single operations") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::int64_t sizes[] = {2, 7, 100, 250, 999, 1000, 1031, 5000, 70'001};
    const std::int64_t n = sizes[seed % std::size(sizes)];
    INFO("seed " << seed << ", " << n << " elements");
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      const auto alone = results(n, dtype, seed, {.threads = 1, .fuse = false});
      CHECK(equal(alone, results(n, dtype, seed, {.threads = 1})));
      CHECK(equal(alone, results(n, dtype, seed, {.threads = 3})));
    }
  }
}

TEST_CASE("stretches of several arrays and numbers meet anywhere") {
  for (const std::int64_t cut : {1, 15, 16, 17, 128, 500, 999}) {
    INFO(cut);
    const auto run = [&](bool fuse) {
      Tape tape;
      const Var x = tape.constant(Tensor::uniform({1000}, 1, -1, 1));
      const Var y = tape.constant(Tensor::uniform({1000}, 2, -1, 1));
      const Var both = concat({slice(x, 0, {0, cut}), slice(y, 0, {0, 1000 - cut})}, 0);
      const Var padded = pad(slice(x, 0, {0, 1000 - cut}), {{cut, 0}});
      const std::vector<Var> values{both * x - padded * 0.5 + y, tanh(both) + roll(y, cut, 0)};
      evaluate(values, {.threads = 1, .fuse = fuse});
      return std::vector<Tensor>{values[0].value(), values[1].value()};
    };
    CHECK(equal(run(true), run(false)));
  }
}

TEST_CASE("what a roll alone reads is made where the roll is read") {
  const auto computed = [](Var (*call)(const Var& x, const Var& y)) {
    const auto run = [&](bool fuse) {
      Tape tape;
      const Var x = tape.parameter(Tensor::uniform({1000}, 1, -1, 1));
      const Var y = tape.parameter(Tensor::uniform({1000}, 2, -1, 1));
      const Var value = call(x, y);
      const auto computed = evaluate({&value, 1}, {.threads = 1, .fuse = fuse}).computed;
      return std::pair(computed, value.value());
    };
    const auto [together, bits] = run(true);
    CHECK(same_bits(bits, run(false).second));
    return together;
  };
  CHECK(computed([](const Var& x, const Var& y) { return roll(tanh(x * 2.0), 3, 0) + y; }) == 1);
  CHECK(computed([](const Var& x, const Var& y) { return roll(x * y * mean(y), 3, 0) + y; }) == 2);
  CHECK(computed([](const Var& x, const Var& y) { return roll(0.5 * x + x * x, 3, 0) - y; }) == 1);
  // The source is also read by others, consists of two arrays that are not stored, or has constants
  // in between.
  CHECK(computed([](const Var& x, const Var& y) {
          const Var z = tanh(x);
          return roll(z, 3, 0) + z * y;
        }) == 2);
  CHECK(computed([](const Var& x, const Var& y) {
          return roll(cumsum(x, 0) * cumsum(y, 0), 3, 0) + y;
        }) == 4);
  CHECK(computed([](const Var& x, const Var& y) {
          return pad(slice(tanh(x), 0, {0, 990}), {{10, 0}}) + y;
        }) == 2);
}

TEST_CASE("shifts along any axis are read in place") {
  for (const Shape& shape : {Shape{3, 40}, Shape{5, 700}, Shape{4, 6, 8}, Shape{300, 33}}) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      for (const std::int64_t shift : {-1, 1, 2}) {
        INFO(to_string(shape) << ", axis " << axis << ", shift " << shift);
        const auto run = [&](bool fuse, int threads) {
          Tape tape;
          const Var x = tape.parameter(Tensor::uniform(shape, 1, -1, 1));
          const Var y = tape.parameter(Tensor::uniform(shape, 2, -1, 1));
          const Var value = roll(x * y, shift, axis) + roll(x, -shift, axis) * 0.5 - y;
          const RunOptions options{.threads = threads, .fuse = fuse};
          const auto computed = evaluate({&value, 1}, options).computed;
          const Gradients gradients = backward(sum(value * value), options);
          return std::pair(computed,
                           std::vector<Tensor>{value.value(), gradients[x], gradients[y]});
        };
        const auto alone = run(false, 1).second;
        const auto [computed, together] = run(true, 1);
        CHECK(equal(together, alone));
        CHECK(equal(run(true, 3).second, alone));
        // Rows of fewer than 32 elements are copied.
        const bool is_short = shape.rank() == 3 && axis == 2;
        CHECK((computed == 1) == !is_short);
      }
    }
  }
}

TEST_CASE("the adjoint of a step that reads its neighbours is one pass") {
  Tape tape;
  const Var u = tape.parameter(Tensor::uniform({1000}, 1, -1, 1));
  const Var left = roll(u, 1, 0);
  const Var next = u - 0.3 * (u - left) + 0.1 * (roll(u, -1, 0) - 2.0 * u + left);
  const Var adjoint = tape.constant(Tensor::uniform({1000}, 2, -1, 1));
  const std::vector<Var> gradient = vjp({&next, 1}, {&u, 1}, {&adjoint, 1});
  CHECK(evaluate(gradient, {.threads = 1}).computed == 1);
}

TEST_CASE("runs of a program read their stretches where they lie now") {
  Var state;
  const auto step = [](const Var& u) {
    return u + (roll(u, 1, 0) - 2.0 * u + roll(u, -1, 0)) * 0.25;
  };
  const Program program = Program::values([&](Tape& tape) {
    state = tape.constant(Tensor::zeros({1000}, DType::f64));
    return std::vector<Var>{step(state)};
  });
  Runner there(program);
  Runner back(program);
  Tensor u = Tensor::uniform({1000}, 5, -1, 1, DType::f64);
  Tape tape;
  Var expected = tape.constant(u);
  for (int pair = 0; pair < 5; ++pair) {
    there.bind(state, u);
    there.run();
    back.bind(state, there.value(program.outputs()[0]));
    back.run();
    u = back.value(program.outputs()[0]).clone();
    expected = step(step(expected));
    CHECK(same_bits(u, expected.value()));
  }
}

}  // namespace
}  // namespace palimpsest
