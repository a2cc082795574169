// Steps in a row, whose addresses are learned from the first three, against steps one by one.
#include <functional>
#include <random>
#include <stop_token>
#include <vector>

#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::rows_test {
namespace {

/// A loop's body: how many of its values are states, and a step. `n` is the step's number.
struct Body {
  std::vector<Tensor> state;
  std::vector<Tensor> captured;
  Shape input;
  DType dtype;
  std::function<LoopStep(std::span<const Var> state, std::span<const Var> captured,
                         const Var& input, const Var& n)>
      step;
};

LoopStep lorenz(std::span<const Var> s, std::span<const Var> rates, const Var& input,
                const Var& n) {
  const Var x = s[0] + 0.01 * rates[0] * (s[1] - s[0]);
  const Var y = s[1] + 0.01 * (s[0] * (rates[1] - s[2]) - s[1]) + 0.001 * input;
  const Var z = s[2] + 0.01 * (s[0] * s[1] - 2.0 * s[2]) + 0.001 * cos(n);
  return {{x, y, z}, {x * y}};
}

/// The last state is no floating number.
LoopStep oscillate(std::span<const Var> s, std::span<const Var> captured, const Var& force,
                   const Var& n) {
  const Var x = s[0] + 0.1 * s[1];
  const Var v = captured[0] * s[1] - 0.1 * mean(sin(x)) + 0.01 * mean(force) * cos(0.2 * n);
  return {{x, v, s[2] + 1}, {sum(x * x) + v * v, 2.0 * x}};
}

/// Its output is its state, which is copied.
LoopStep scale(std::span<const Var> s, std::span<const Var> weights, const Var& input,
               const Var& n) {
  const Var next = tanh(s[0] * weights[0] + weights[1] * input + 0.01 * n);
  return {{next}, {next}};
}

/// Each step draws random numbers, and has operations that are no native code.
LoopStep drop(std::span<const Var> s, std::span<const Var> weights, const Var& input, const Var&) {
  const Var product = matmul(reshape(s[0], {1, 6}), weights[0]);
  return {{tanh(dropout(reshape(product, {6}), 0.5) + 0.5 * s[0] + input)}, {sum(s[0])}};
}

std::vector<Body> bodies() {
  const DType f32 = DType::f32;
  return {
      {{number(1), number(2), number(20)}, {number(10), number(28)}, {}, DType::f64, lorenz},
      {{wave(5), number(0.5), number(0, DType::i64)}, {number(0.9)}, {5}, DType::f64, oscillate},
      {{wave(6, f32).reshape({2, 3})},
       {wave(6, f32).reshape({2, 3}), number(0.3, f32)},
       {3},
       f32,
       scale},
      {{wave(6, f32)}, {wave(36, f32).reshape({6, 6})}, {6}, f32, drop},
  };
}

Tensor inputs_of(const Body& body, std::int64_t steps) {
  std::vector<std::int64_t> shape{steps};
  for (const std::int64_t extent : body.input) shape.push_back(extent);
  return wave(steps * body.input.elements(), body.dtype).reshape(Shape(shape));
}

/// The gradients of a loop, its loss and its outputs.
struct Results {
  std::vector<Tensor> tensors;
  std::uint32_t states = 0;
};

struct Recorded {
  std::vector<Var> leaves;
  std::vector<Var> state;
  std::vector<Var> captured;
  Var inputs;

  Recorded(Tape& tape, const Body& body, std::int64_t steps) {
    const auto leaf = [&](const Tensor& value) {
      if (!is_floating(value.dtype())) return tape.constant(value);
      leaves.push_back(tape.parameter(value));
      return leaves.back();
    };
    for (const Tensor& each : body.state) state.push_back(leaf(each));
    for (const Tensor& each : body.captured) captured.push_back(leaf(each));
    inputs = leaf(inputs_of(body, steps));
  }

  Results differentiate(const std::vector<Var>& outputs, const RunOptions& options) const {
    Var loss = sum(state[0] * state[0]);
    for (const Var& each : outputs) loss = loss + sum(each * each);
    for (std::size_t i = 1; i < state.size(); ++i) {
      if (is_floating(state[i].dtype())) loss = loss + sum(state[i]);
    }
    const Gradients gradients = backward(loss, options);
    Results found;
    found.tensors.push_back(gradients.loss().clone());
    for (const Var& each : leaves) found.tensors.push_back(gradients[each].clone());
    if (!gradients.report().loops.empty()) found.states = gradients.report().loops[0].states;
    return found;
  }
};

Results results_of(const Body& body, std::int64_t steps, const RunOptions& options,
                   const LoopOptions& loop = {}) {
  Tape tape;
  Recorded made(tape, body, steps);
  const LoopResult result = scan(
      made.state, steps, {&made.inputs, 1},
      [&](std::span<const Var> s, std::span<const Var> inputs, const StepNumber& n) {
        return body.step(s, made.captured, inputs[0], n.as(body.dtype));
      },
      loop);
  made.state = result.state;
  return made.differentiate(result.outputs, options);
}

Results unrolled(const Body& body, std::int64_t steps) {
  Tape tape;
  Recorded made(tape, body, steps);
  std::vector<Var> outputs;
  for (std::int64_t n = 0; n < steps; ++n) {
    const Var input = reshape(slice(made.inputs, 0, {n, n + 1}), body.input);
    const Var time = tape.constant(number(static_cast<double>(n), body.dtype));
    LoopStep step = body.step(made.state, made.captured, input, time);
    made.state = step.state;
    outputs.insert(outputs.end(), step.outputs.begin(), step.outputs.end());
  }
  return made.differentiate(outputs, {.threads = 1, .native = NativeCode::off});
}

void check_same_bits(const Results& found, const Results& expected) {
  REQUIRE(found.tensors.size() == expected.tensors.size());
  for (std::size_t i = 0; i < found.tensors.size(); ++i) {
    CAPTURE(i);
    CHECK(same_bits(found.tensors[i], expected.tensors[i]));
  }
}

void check_nearly_same(const Results& found, const Results& expected, double tolerance) {
  REQUIRE(found.tensors.size() == expected.tensors.size());
  for (std::size_t i = 0; i < found.tensors.size(); ++i) {
    CAPTURE(i);
    const Tensor wanted = expected.tensors[i].to(DType::f64);
    const double size = largest_difference(wanted, Tensor::zeros(wanted.shape(), DType::f64));
    CHECK(largest_difference(found.tensors[i].to(DType::f64), wanted) <= tolerance * (1 + size));
  }
}

TEST_CASE("steps in a row are the steps recorded one by one") {
  const std::vector<Body> all = bodies();
  for (std::size_t kind = 0; kind < 3; ++kind) {
    for (const std::int64_t steps : {1, 2, 5, 6, 7, 8, 9, 40}) {
      CAPTURE(kind, steps);
      const Results found =
          results_of(all[kind], steps, {.threads = 1, .native = NativeCode::at_once});
      const double tolerance = all[kind].dtype == DType::f64 ? 1e-12 : 1e-4;
      check_nearly_same(found, unrolled(all[kind], steps), tolerance);
    }
  }
}

TEST_CASE("steps in a row: the same bits with any number of states") {
  std::mt19937 random(1);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int left = cases(60); left > 0; --left) {
    const std::vector<Body> all = bodies();
    const auto kind = static_cast<std::size_t>(below(std::ssize(all)));
    const Body& body = all[kind];
    const std::int64_t steps = 1 + below(70);
    const RunOptions off{.threads = 1, .native = NativeCode::off};
    const Results expected = results_of(body, steps, off);
    Bytes of_state = 0;
    for (const Tensor& each : body.state) of_state += each.type().bytes();
    const Bytes room = 2'000 + of_state * below(steps + 1);
    for (const NativeCode native : {NativeCode::off, NativeCode::at_once}) {
      for (const int threads : {1, 2}) {
        CAPTURE(kind, steps, room, static_cast<int>(native), threads);
        const RunOptions options{.threads = threads, .native = native};
        const Results found = results_of(body, steps, options, {.memory_budget = room});
        CAPTURE(found.states);
        check_same_bits(found, expected);
      }
    }
  }
}

TEST_CASE("steps in a row: progress sees each step, and a stop ends the run in the next one") {
  const std::vector<Body> all = bodies();
  const auto seen = [&](const Body& body, NativeCode native, std::uint64_t stop_at) {
    std::vector<std::uint64_t> steps;
    std::stop_source source;
    RunOptions options{.threads = 1, .native = native};
    options.stop = source.get_token();
    options.progress = on_progress([&](const RunProgress& progress) {
      if (progress.loop_steps == 0) return;
      steps.push_back(progress.loop_step);
      if (steps.size() == stop_at) source.request_stop();
    });
    if (stop_at == 0) {
      results_of(body, 40, options);
    } else {
      CHECK_THROWS_AS(results_of(body, 40, options), StoppedError);
    }
    return steps;
  };
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    CAPTURE(kind);
    const std::vector<std::uint64_t> steps = seen(all[kind], NativeCode::at_once, 0);
    CHECK(steps == seen(all[kind], NativeCode::off, 0));
    CHECK(steps.size() >= 80);
    for (const std::uint64_t stop_at : {1, 20, 39, 60}) {
      CHECK(seen(all[kind], NativeCode::at_once, stop_at).size() == stop_at);
    }
  }
}

}  // namespace
}  // namespace palimpsest::rows_test
