#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::scan_test {
namespace {

TEST_CASE("a scan makes the state and the gradients of the steps recorded one by one") {
  for (const std::int64_t steps : {0, 1, 2, 3, 7, 20}) {
    CAPTURE(steps);
    Tape unrolled;
    const Var u = unrolled.parameter(wave(50));
    const Var speed = unrolled.parameter(number(0.2));
    Var state = u;
    for (std::int64_t n = 0; n < steps; ++n) state = ring_step(state, speed);
    const Gradients expected = backward(sum(state * state));

    Tape tape;
    const Var v = tape.parameter(wave(50));
    const Var c = tape.parameter(number(0.2));
    const Var end =
        scan(v, steps, [&](const Var& x, const StepNumber&) { return ring_step(x, c); });
    CHECK(tape.node_count() == 3);
    CHECK(same_bits(end.value(), state.value()));
    const Gradients found = backward(sum(end * end));
    CHECK(same_bits(found.loss(), expected.loss()));
    CHECK(same_bits(found[v], expected[u]));
    CHECK(same_bits(found[c], expected[speed]));
  }
}

TEST_CASE("a scan takes a list of states without inputs") {
  Tape tape;
  const Var x = tape.parameter(wave(5));
  const Var v = tape.parameter(number(0.5));
  const auto step = [](std::span<const Var> s, const StepNumber&) {
    return std::vector<Var>{s[0] + 0.1 * s[1], 0.9 * s[1]};
  };
  const std::vector<Var> listed = scan({x, v}, 20, step);
  const std::vector<Var> states{x, v};
  const std::vector<Var> spanned = scan(std::span<const Var>(states), 20, step);
  REQUIRE(listed.size() == 2);
  CHECK(same_bits(listed[0].value(), spanned[0].value()));
  CHECK(same_bits(listed[1].value(), spanned[1].value()));
  CHECK_THROWS_WITH(scan({x, v}, -1, step), Catch::Matchers::Contains("scan_test.cpp"));
}

/// A recorded loop: its leaves, final state and outputs.
struct Recorded {
  std::vector<Var> leaves;
  std::vector<Var> state;
  std::vector<Var> outputs;
};

/// A forced oscillator. The state is two floating values and a counter; the outputs are energy and
/// position of each step.
LoopStep oscillate(std::span<const Var> s, const Var& force, const Var& damping, const Var& n) {
  const Var x = s[0] + 0.1 * s[1];
  const Var v = damping * s[1] - 0.1 * mean(sin(x)) + 0.01 * mean(force) * cos(0.2 * n);
  return {{x, v, s[2] + 1}, {sum(x * x) + v * v, x}};
}

Recorded oscillator(Tape& tape, std::int64_t steps, bool as_one) {
  Recorded made;
  made.leaves = {tape.parameter(wave(5)), tape.parameter(number(0.5)), tape.parameter(number(0.9)),
                 tape.parameter(wave(steps * 5).reshape(Shape{steps, 5}))};
  made.state = {made.leaves[0], made.leaves[1], tape.constant(number(0, DType::i64))};
  const Var damping = made.leaves[2];
  const Var forcing = made.leaves[3];
  if (as_one) {
    LoopResult loop =
        scan(made.state, steps, {&forcing, 1},
             [&](std::span<const Var> s, std::span<const Var> inputs, const StepNumber& n) {
               return oscillate(s, inputs[0], damping, n.as(DType::f64));
             });
    made.state = loop.state;
    made.outputs = loop.outputs;
    return made;
  }
  std::vector<Var> energies;
  std::vector<Var> places;
  for (std::int64_t n = 0; n < steps; ++n) {
    const Var force = reshape(slice(forcing, 0, {n, n + 1}), Shape{5});
    const Var time = tape.constant(number(static_cast<double>(n)));
    LoopStep step = oscillate(made.state, force, damping, time);
    made.state = step.state;
    energies.push_back(reshape(step.outputs[0], Shape{1}));
    places.push_back(reshape(step.outputs[1], Shape{1, 5}));
  }
  made.outputs = {concat(energies, 0), concat(places, 0)};
  return made;
}

Var loss_of(const Recorded& r) {
  const Var& places = r.outputs[1];
  return sum(r.state[0]) * r.state[1] + mean(r.outputs[0]) + sum(places * places * places);
}

TEST_CASE("a scan takes parts of inputs and gives what every step makes") {
  const std::int64_t steps = 9;
  Tape unrolled;
  const Recorded a = oscillator(unrolled, steps, false);
  Tape tape;
  const Recorded b = oscillator(tape, steps, true);
  for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(a.state[i].value(), b.state[i].value()));
  CHECK(b.state[2].item<std::int64_t>() == steps);
  for (std::size_t i = 0; i < 2; ++i) CHECK(same_bits(a.outputs[i].value(), b.outputs[i].value()));
  const Gradients expected = backward(loss_of(a));
  const Gradients found = backward(loss_of(b));
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(largest_difference(found[b.leaves[i]], expected[a.leaves[i]]) < 1e-13);
  }
}

TEST_CASE("first and second derivatives of a scan agree with central differences") {
  const auto f = [](std::span<const Var> xs) {
    const LoopResult loop =
        scan({xs[0]}, 5, {xs[2]},
             [&](std::span<const Var> s, std::span<const Var> inputs, const StepNumber& n) {
               const Var next = tanh(s[0] * xs[1] + inputs[0] * cos(n.as(DType::f64)));
               return LoopStep{{next}, {sum(next * next)}};
             });
    return sum(loop.state[0]) + sum(exp(loop.outputs[0]));
  };
  const Tensor inputs[] = {wave(3), wave(3), wave(15).reshape(Shape{5, 3})};
  const GradcheckResult result = gradcheck(f, inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("loops in loops and checkpoints in loops have derivatives of both orders") {
  const auto f = [](std::span<const Var> xs) {
    const Var rate = xs[1];
    return scan(xs[0], 3, [&](const Var& x, const StepNumber&) {
      const Var inner = scan(
          x, 4, [&](const Var& y, const StepNumber&) { return y + 0.1 * sin(rate * y) * mean(x); });
      return checkpoint([&](const Var& z) { return z - 0.2 * tanh(z * rate); }, inner);
    });
  };
  const Tensor inputs[] = {wave(4), wave(4)};
  const GradcheckResult result = gradcheck(f, inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("a body that returns what it was given, or a value from outside, is copied") {
  Tape tape;
  const Var u = tape.parameter(wave(4));
  const Var w = tape.parameter(wave(4));
  const Var both[] = {u, w};
  const std::vector<Var> end = scan(both, 3, [&](std::span<const Var> s, const StepNumber&) {
    return std::vector<Var>{s[1], w};
  });
  CHECK(same_bits(end[0].value(), w.value()));
  CHECK(same_bits(end[1].value(), w.value()));
  const Gradients g = backward(sum(end[0] * end[1]));
  CHECK(same_bits(g[u], Tensor::zeros(Shape{4}, DType::f64)));
  CHECK(same_bits(g[w], (2.0 * w).value()));
}

}  // namespace
}  // namespace palimpsest::scan_test
