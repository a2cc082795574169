#include <algorithm>
#include <cmath>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::hybrid_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

bool is_present(const Var& x) { return x.tape().has_value(x.id()); }

TEST_CASE("hybrid: a stage ends with its scope") {
  Tape tape(hybrid());
  const Var x = tape.parameter(Tensor::full({100}, 0.5, DType::f64));
  Var inside;
  Var end;
  {
    const auto scope = tape.scope("first");
    const auto inner = tape.scope("inner");
    inside = sin(x);
    end = exp(inside);
  }
  CHECK_FALSE(is_present(end));
  const Var after = end * 2.0;
  CHECK(is_present(end));
  CHECK_FALSE(is_present(inside));
  CHECK_FALSE(is_present(after));
  CHECK(inside.value().at(7) == std::sin(0.5));
  const auto scope = tape.scope("second");
  const Var other = cos(after);
  CHECK(is_present(after));
  CHECK_FALSE(is_present(other));
}

TEST_CASE("hybrid: a stage ends at its limits") {
  const StageLimits limits = GENERATE(StageLimits{.nodes = 3}, StageLimits{.bytes = 2'400});
  Tape tape(hybrid({}, limits));
  Var y = tape.parameter(Tensor::full({100}, 0.5, DType::f64));
  std::vector<Var> values;
  for (int i = 0; i < 10; ++i) values.push_back(y = sin(y));
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(is_present(values[i]) == (i % 3 == 2));
  }
}

TEST_CASE("hybrid: views are no stage's bytes, and all ends of a stage are made") {
  Tape tape(hybrid({}, {.bytes = 2'400}));
  const Var x = tape.parameter(Tensor::full({100}, 0.5, DType::f64));
  std::vector<Var> ends{exp(x), reshape(sin(x), {10, 10}), reshape(x, {4, 25})};
  CHECK_FALSE(is_present(ends[0]));
  ends.push_back(cos(x));
  const Var later = tanh(x);
  for (const Var& end : ends) CHECK(is_present(end));
  CHECK_FALSE(is_present(later));
}

TEST_CASE("hybrid: the bits of a lazy tape, whatever the stages") {
  for (const Bytes budget : {unlimited, Bytes{40'000}}) {
    const auto run = [&](int threads, std::shared_ptr<Evaluator> evaluator) {
      Tape tape(std::move(evaluator));
      const Var x = tape.parameter(Tensor::full({500}, 0.3, DType::f64));
      const Var w = tape.parameter(Tensor::full({500}, 0.9, DType::f64));
      Var y = x;
      for (int i = 0; i < 8; ++i) {
        const auto scope = tape.scope(i % 3 == 0 ? "a" : "b");
        y = dropout(sin(y * w), 0.2) + cumsum(y, 0) * 0.01;
        if (i == 5 && y.value().at(3) > 1e9) y = y * 0.0;
      }
      const Gradients g = backward(mean(y * y), {.memory_budget = budget, .threads = threads});
      CHECK(g.report().measured_peak <= g.report().predicted_peak);
      CHECK(g.report().predicted_peak <= budget);
      return std::pair(g[x].clone(), g[w].clone());
    };
    const auto expected = run(1, lazy());
    using Setting = std::pair<std::uint32_t, int>;
    for (const auto& [nodes, threads] : {Setting{1, 1}, {2, 2}, {5, 1}, {5, 2}, {1000, 2}}) {
      CAPTURE(nodes, budget, threads);
      const auto found =
          run(threads, hybrid({.memory_budget = budget, .threads = threads}, {.nodes = nodes}));
      CHECK(same_bits(found.first, expected.first));
      CHECK(same_bits(found.second, expected.second));
    }
  }
}

TEST_CASE("hybrid: an error in a stage takes the node after it off, and the tape goes on") {
  Tape tape(hybrid({.memory_budget = 2'000}, {.nodes = 2}));
  const Var x = tape.parameter(Tensor::full({100}, 0.5, DType::f64));
  const Var a = reshape(x, {100, 1}) * reshape(x, {1, 100});
  const Var b = cumsum(a, 0);
  const std::uint32_t nodes = tape.node_count();
  CHECK_THROWS_AS(sin(b), BudgetError);
  CHECK(tape.node_count() == nodes);
  const Var other = sin(x);
  CHECK(other.value().at(7) == std::sin(0.5));
}

TEST_CASE("hybrid: loops, cleared tapes, and a tape that nodes are taken off") {
  const auto evaluator = hybrid({}, {.nodes = 2});
  Tape tape(evaluator);
  for (int round = 0; round < 2; ++round) {
    tape.clear();
    const Var x = tape.parameter(Tensor::full({10}, 0.5, DType::f64));
    const Var end = scan(x, 5, [](const Var& u, const StepNumber&) { return sin(u); });
    const Var y = end * 2.0;
    const Var loss = sum(y);
    CHECK(is_present(y));
    const Gradients first = backward(loss);
    CHECK(is_present(y));
    const Var more = loss * loss;
    const Gradients second = backward(more);
    CHECK_THAT(second[x].data<double>()[0],
               WithinRel(2 * loss.item() * first[x].data<double>()[0], 1e-5));
  }
  Tape other(evaluator);
  const Var x = other.parameter(Tensor::full({10}, 0.5, DType::f64));
  CHECK_THAT(sum(sin(x)).item(), WithinRel(10 * std::sin(0.5), 1e-5));
}

TEST_CASE("hybrid: what a stage reads of earlier ones is computed once") {
  int calls = 0;
  const CustomOperation counted{{.name = "counted", .forward = [&](const CustomCall& call) {
                                   ++calls;
                                   const auto x = call.inputs[0].data<double>();
                                   std::ranges::copy(x, call.outputs[0].data<double>().begin());
                                 }}};
  for (const Bytes budget : {unlimited, Bytes{60'000}}) {
    calls = 0;
    Tape tape(hybrid({.memory_budget = budget}));
    const Var x = tape.parameter(Tensor::full({10}, 0.5, DType::f64));
    Var carried = x;
    Var state = x;
    const Var early = [&] {
      const auto scope = tape.scope("early");
      return counted({x});
    }();
    constexpr int stages = 40;
    for (int k = 0; k < stages; ++k) {
      const auto scope = tape.scope(k % 2 == 0 ? "even" : "odd");
      carried = counted({carried}) * 0.9;  // read in this stage and in the next one
      state = tanh(carried + state);
    }
    const Var last = state + early;
    CHECK(calls <= 2 * stages + 1);
    CHECK(std::isfinite(sum(last).item()));
    CHECK(calls <= 2 * stages + 1);
  }
}

TEST_CASE("hybrid: limits below one") {
  CHECK_THROWS_WITH(hybrid({}, {.nodes = 0}), Contains("[hybrid]") && Contains("1 or more"));
  CHECK_THROWS_AS(hybrid({}, {.bytes = 0}), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::hybrid_test
