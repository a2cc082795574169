// Steps that keep the values that their derivative reads.
#include <atomic>

#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"
#include "tests/temporary_directory.h"

namespace palimpsest::kept_values_test {
namespace {

constexpr std::int64_t width = 16;
constexpr std::int64_t rows = 4;

Tensor numbers(const Shape& shape, std::uint64_t seed) {
  return Tensor::normal(shape, seed, 0, 0.4, DType::f64);
}

/// x², with a count of its calls. Its derivative reads x.
CustomOperation counted_square(std::atomic<std::uint64_t>& calls) {
  CustomDefinition definition;
  definition.name = "counted_square";
  definition.forward = [&calls](const CustomCall& call) {
    ++calls;
    const auto x = call.inputs[0].data<double>();
    for (std::size_t i = 0; i < x.size(); ++i) call.outputs[0].data<double>()[i] = x[i] * x[i];
  };
  definition.cost = [](const NodeView&) { return Cost{1e6, 0}; };
  definition.vjp = [](const Pullback& p) { p.set(0, 2.0 * p.input(0) * p.adjoint(0)); };
  return CustomOperation(definition);
}

/// A gated recurrent cell with inputs, outputs, captured weights and dropout.
struct Cell {
  Tape tape;
  Var weight = tape.parameter(numbers({width, 2 * width}, 1));
  Var inputs = tape.parameter(numbers({12, rows, width}, 2));
  Var start = tape.parameter(numbers({rows, width}, 3));
  std::atomic<std::uint64_t> calls = 0;
  CustomOperation square = counted_square(calls);
  LoopResult made;
  Var loss;

  explicit Cell(const LoopOptions& options = {}) {
    made = scan(
        {start}, 12, {inputs},
        [this](std::span<const Var> state, std::span<const Var> xs, const StepNumber&) {
          const Var both = matmul(state[0] + xs[0], weight);
          const Var gate = sigmoid(slice(both, 1, {.stop = width}));
          const Var next = dropout(tanh(slice(both, 1, {.start = width})), 0.1);
          const Var squared = square({gate});
          // The derivative reads the output too.
          const Var output = exp(mean(gate * next));
          return LoopStep{{squared * next + (1.0 - squared) * state[0]}, {output}};
        },
        options);
    loss = sum(made.state[0] * made.state[0]) + sum(made.outputs[0] * made.outputs[0]);
  }
};

struct Found {
  Report report;
  std::vector<Tensor> gradients;
  std::uint64_t calls;
};

Found run(Bytes budget, const LoopOptions& options = {}) {
  Cell cell(options);
  const Gradients found = backward(cell.loss, {.memory_budget = budget});
  return {found.report(), {found[cell.weight], found[cell.inputs], found[cell.start]}, cell.calls};
}

bool same(const Found& a, const Found& b) {
  return std::ranges::equal(a.gradients, b.gradients,
                            [](const Tensor& x, const Tensor& y) { return same_bits(x, y); });
}

TEST_CASE("without a budget no step runs again") {
  const Found all = run(unlimited);
  const Report::Loop& loop = all.report.loops.at(0);
  CHECK(loop.steps == 12);
  CHECK(loop.states == 12);
  CHECK(loop.kept_steps == 12);
  CHECK(loop.forward_steps == 12);
  CHECK(all.calls == 12);
  CHECK(all.report.measured_peak == all.report.predicted_peak);
}

TEST_CASE("what a budget leaves beside the states keeps values of the last steps") {
  const Found all = run(unlimited);
  const Bytes most = all.report.measured_peak;
  CHECK(all.report.keep_all_peak == most);
  const Found none = run(unlimited, {.check = true});
  CHECK(none.report.loops.at(0).kept_steps == 0);
  CHECK(same(none, all));
  std::uint32_t before = 0;
  bool has_part = false;
  for (Bytes budget = most * 2 / 5; budget <= most; budget += most / 40) {
    const Found found = run(budget);
    const Report::Loop& loop = found.report.loops.at(0);
    CAPTURE(budget, most, loop.states, loop.kept_steps);
    CHECK(found.report.measured_peak <= found.report.predicted_peak);
    CHECK(found.report.predicted_peak <= budget);
    CHECK(same(found, all));
    CHECK(loop.kept_steps >= before);
    CHECK(found.calls == loop.forward_steps);
    if (loop.kept_steps > 0) CHECK(loop.forward_steps == 2 * 12 - loop.kept_steps);
    has_part = has_part || (loop.kept_steps > 0 && loop.kept_steps < 12);
    before = loop.kept_steps;
  }
  CHECK(has_part);
  CHECK(run(most).report.loops.at(0).kept_steps == 12);
}

TEST_CASE("what a loop's own budget leaves beside its states keeps values") {
  const Found all = run(unlimited);
  std::uint32_t before = 0;
  for (const Bytes budget : {20'000, 30'000, 40'000, 60'000, 100'000}) {
    const Found found = run(unlimited, {.memory_budget = budget});
    CAPTURE(budget);
    CHECK(same(found, all));
    CHECK(found.report.loops.at(0).kept_steps >= before);
    CHECK(found.calls == found.report.loops.at(0).forward_steps);
    before = found.report.loops.at(0).kept_steps;
  }
  CHECK(before == 12);
}

/// A loop whose derivative reads both results of an operation.
Var angles_loop(Tape& tape, const LoopOptions& options) {
  const Var x = tape.parameter(numbers({6, 6}, 4), "x");
  const Var w = tape.parameter(numbers({6, 6}, 5), "w");
  const Var end = scan(
      x, 20,
      [&](const Var& u, const StepNumber&) {
        const Var a = matmul(transpose(u), u) + w * w;
        const auto [values, vectors] = eigh(a);
        const auto [sorted, places] = sort(sin(u), 1);
        return 0.5 * tanh(matmul(vectors, sorted)) + 0.1 * unsqueeze(values, 1);
      },
      options);
  return sum(end * end);
}

/// A loop in a loop, whose step passes a part of its state on.
Var nested_loop(Tape& tape, const LoopOptions& options) {
  const Var x = tape.parameter(wave(40), "x");
  const Var w = tape.parameter(wave(40), "w");
  const std::vector<Var> end = scan(
      {x, w}, 9,
      [&](std::span<const Var> u, const StepNumber& n) -> std::vector<Var> {
        const Var inner = scan(cumsum(sin(u[0]), 0), 3, [&](const Var& v, const StepNumber&) {
          return tanh(v) * cumsum(v * w, 0);
        });
        return {inner + exp(-u[1] * u[1]) * n.as(DType::f64), u[1]};
      },
      options);
  return sum(end[0] * end[0]) + sum(end[1]);
}

TEST_CASE("a loop that keeps values has the same gradients in every kind of run") {
  const auto record = GENERATE(angles_loop, nested_loop);
  const auto gradients = [&](const LoopOptions& options, const RunOptions& how) {
    Runner runner(Program::gradients([&](Tape& tape) { return record(tape, options); }, how));
    runner.run();
    return runner.gradients();
  };
  const Gradients expected = gradients({.check = true}, {.native = NativeCode::off});
  CHECK(expected.report().loops.at(0).kept_steps == 0);
  for (const NativeCode native : {NativeCode::off, NativeCode::at_once}) {
    for (const int threads : {1, 2}) {
      CAPTURE(threads);
      const Gradients found = gradients({}, {.threads = threads, .native = native});
      const Report::Loop& loop = found.report().loops.at(0);
      CHECK(loop.kept_steps == loop.steps);
      CHECK(same_bits(found["x"], expected["x"]));
      CHECK(same_bits(found["w"], expected["w"]));
    }
  }
}

TEST_CASE("several derivatives of a loop read the same kept values") {
  const auto run = [](const LoopOptions& options) {
    Cell cell(options);
    const Var of_state = gradient(sum(cell.made.state[0]), cell.start);
    const Var of_outputs = gradient(sum(cell.made.outputs[0]), cell.weight);
    const Var both = sum(of_state * of_state) + sum(of_outputs * of_outputs);
    const Gradients found = backward(both);
    std::vector<Tensor> all{found[cell.weight], found[cell.inputs], found[cell.start]};
    return std::pair(found.report(), all);
  };
  const auto [report, found] = run({});
  const auto [other_report, expected] = run({.check = true});
  for (const Report::Loop& loop : report.loops) CHECK(loop.kept_steps == loop.steps);
  for (const Report::Loop& loop : other_report.loops) CHECK(loop.kept_steps == 0);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_bits(found[i], expected[i]));
}

TEST_CASE("a loop that is recorded again with another body keeps its own values") {
  const auto run = [](Tape& tape, bool is_swapped, const LoopOptions& options) {
    const Var x = tape.parameter(numbers({8, 8}, 1));
    const Var w = tape.parameter(numbers({8, 8}, 2));
    const Var end = scan(
        x, 6,
        [&](const Var& u, const StepNumber&) {
          const Var first = is_swapped ? exp(u) : tanh(matmul(u, w));
          const Var second = is_swapped ? tanh(matmul(u, w)) : exp(u);
          return 0.1 * (first * second);
        },
        options);
    const Gradients found = backward(sum(end * end));
    return std::tuple(found[x], found[w], found.report().loops.at(0).kept_steps);
  };
  Tape tape;
  for (const bool is_swapped : {false, true, false}) {
    const auto [x, w, kept] = run(tape, is_swapped, {});
    CHECK(kept == 6);
    Tape other;
    const auto [expected_x, expected_w, none] = run(other, is_swapped, {.check = true});
    CHECK(none == 0);
    CHECK(same_bits(x, expected_x));
    CHECK(same_bits(w, expected_w));
    tape.clear();
  }
}

TEST_CASE("what a derivative reads may be the next state or an output in another shape") {
  const auto run = [](const LoopOptions& options) {
    Tape tape;
    const Var x = tape.parameter(numbers({2, 32}, 1));
    const Var w = tape.parameter(numbers({8, 8}, 2));
    const LoopResult made = scan(
        {x}, 10, {},
        [&](std::span<const Var> state, std::span<const Var>, const StepNumber&) {
          const Var square = reshape(state[0], {8, 8});
          const Var next = tanh(matmul(square, w));
          const Var other = exp(0.1 * matmul(w, square));
          return LoopStep{{reshape(next * sigmoid(other), {2, 32}) + reshape(next, {2, 32})},
                          {reshape(other, {64}), unsqueeze(next, 0)}};
        },
        options);
    const Gradients found = backward(sum(made.state[0]) + sum(made.outputs[0] * made.outputs[0]) +
                                     sum(exp(made.outputs[1])));
    return std::tuple(found[x], found[w], found.report().loops.at(0).kept_steps);
  };
  const auto [x, w, kept] = run({});
  const auto [expected_x, expected_w, none] = run({.check = true});
  CHECK(kept == 10);
  CHECK(same_bits(x, expected_x));
  CHECK(same_bits(w, expected_w));
}

TEST_CASE("loops keep no values where these would cost more than they save, or cannot be kept") {
  const auto kept = [](std::int64_t cells, std::int64_t steps, const LoopOptions& options) {
    Tape tape;
    const Var u = tape.parameter(wave(cells));
    const Var speed = tape.parameter(number(0.2));
    const Var end = scan(
        u, steps,
        [&](const Var& x, const StepNumber&) { return ring_step(x, speed) * tanh(cumsum(x, 0)); },
        options);
    return backward(sum(end * end)).report().loops.at(0).kept_steps;
  };
  CHECK(kept(100, 30, {}) == 30);
  CHECK(kept(100, 1, {}) == 1);
  CHECK(kept(100, 0, {}) == 0);
  const TemporaryDirectory directory;
  CHECK(kept(100, 30, {.spill = directory.path(), .disk_costs = DiskCosts{3, 2}}) == 0);
  CHECK(kept(100, 30, {.codec = Codec::half}) == 0);
  CHECK(kept(100, 30, {.check = true}) == 0);
  CHECK(kept(100, 30, {.resume = directory.path()}) == 0);

  // Sums of shifted elements are made faster than they are read from main memory.
  Tape tape;
  const Var u = tape.parameter(wave(200'000));
  const Var end = scan(u, 12, [](const Var& x, const StepNumber&) { return x * roll(x, 1, 0); });
  CHECK(backward(sum(end)).report().loops.at(0).kept_steps == 0);
}

}  // namespace
}  // namespace palimpsest::kept_values_test
