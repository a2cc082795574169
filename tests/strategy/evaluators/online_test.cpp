#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "autodiff/trace.h"
#include "palimpsest.h"
#include "strategy/evaluators/engine.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::online_test {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t elements = 1024;
constexpr Bytes size = 4096;  // of a value with `elements` elements

const Meter& meter_of(const std::shared_ptr<EngineEvaluator>& evaluator) {
  return evaluator->meter();
}

/// Doubles its input, counts its calls, and can fail.
struct Doubling {
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  std::shared_ptr<bool> fails = std::make_shared<bool>(false);
  CustomOperation operation{{.name = "doubling",
                             .forward =
                                 [calls = calls, fails = fails](const CustomCall& call) {
                                   ++*calls;
                                   const auto x = call.inputs[0].data<float>();
                                   const auto y = call.outputs[0].data<float>();
                                   for (std::size_t i = 0; i < y.size(); ++i)
                                     y[i] = *fails ? -777 : 2 * x[i];
                                   if (*fails) throw std::runtime_error("broken kernel");
                                 },
                             .vjp = [](const Pullback& p) { p.set(0, p.adjoint() * 2.0); }}};
  Var operator()(const Var& x) const { return operation({x}); }
};

TEST_CASE("eager within a budget: an operation that does not fit is named before it runs") {
  const auto evaluator = eager({.memory_budget = 3 * size});
  Tape tape(evaluator);
  const Doubling twice;
  const Var x = tape.parameter(Tensor::ones({elements}), "x");
  const Var a = twice(x);
  const Var b = twice(a);
  const std::uint32_t nodes = tape.node_count();
  try {
    concat({a, b}, 0);
    FAIL("4 of 3 values fit");
  } catch (const BudgetError& error) {
    CHECK(error.budget() == 3 * size);
    CHECK(error.smallest_feasible() == 4 * size);
    CHECK_THAT(error.what(), Contains("[concat]") && Contains("16384 bytes") &&
                                 Contains("12288 bytes") && Contains("eager()") &&
                                 Contains("online_test.cpp:"));
  }
  CHECK(tape.node_count() == nodes);
  CHECK(tape.has_value(a.id()));
  const Var loss = sum(a + b);
  CHECK(loss.item() == 6 * elements);
  CHECK(meter_of(evaluator).peak_reserved() <= 3 * size);
  CHECK(*twice.calls == 2);

  Tape larger(eager({.memory_budget = 4 * size}));
  const Var y = twice(larger.parameter(Tensor::ones({elements})));
  CHECK(concat({y, twice(y)}, 0).value().at(elements) == 4);
}

TEST_CASE("eager within a budget: the one that is named holds for all that is recorded so far") {
  int refusals = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    Bytes budget = 1;
    for (std::uint32_t reached = 0; budget > 0;) {
      Tape tape(eager({.memory_budget = budget}));
      try {
        record_random(tape, seed, 40);
        budget = 0;
      } catch (const BudgetError& error) {
        ++refusals;
        CHECK(tape.node_count() >= reached);
        REQUIRE(error.smallest_feasible() > budget);
        reached = tape.node_count() + 1;
        budget = error.smallest_feasible();
      }
    }
  }
  CHECK(refusals > 60);
}

TEST_CASE("eager within a budget: what is dropped is computed again, within the budget") {
  const auto evaluator = eager({.memory_budget = 4 * size});
  Tape tape(evaluator);
  const Doubling twice;
  std::vector<Var> chain{tape.parameter(Tensor::ones({elements}))};
  for (int k = 0; k < 20; ++k) chain.push_back(twice(chain.back()));
  CHECK(*twice.calls == 20);
  int present = 0;
  for (const Var& value : chain) present += tape.has_value(value.id());
  CHECK(present == 1 + 4);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    CHECK(chain[k].value().at(7) == std::ldexp(1.0, static_cast<int>(k)));
  }
  CHECK(*twice.calls > 20);
  CHECK(*twice.calls < 20 + 10 * 20);
  const Var across = chain[2] + chain[19];
  CHECK(across.value().at(0) == 4 + std::ldexp(1.0, 19));
  CHECK(meter_of(evaluator).peak_reserved() == 4 * size);
}

TEST_CASE("eager within a budget: a Tensor in the user's hands is outside of it") {
  const auto evaluator = eager({.memory_budget = 3 * size});
  Tape tape(evaluator);
  const Doubling twice;
  const Var x = tape.parameter(Tensor::ones({elements}));
  const Var a = twice(x);
  const Var b = twice(a);
  std::vector<Tensor> held{a.value(), b.value()};
  Var last = b;
  for (int k = 0; k < 10; ++k) last = twice(last);
  CHECK_FALSE(tape.has_value(a.id()));
  CHECK(*twice.calls == 12);
  CHECK(meter_of(evaluator).peak_reserved() <= (3 + 2) * size);
  // A reader that would not fit next to them, a request and a backward pass all use the same
  // storage, without recomputation.
  const Var both = concat({a, b}, 0);
  CHECK(both.value().at(elements) == 4);
  CHECK(a.value().raw() == held[0].raw());
  CHECK(backward(sum(a * b), {.memory_budget = 4 * size}).loss().item() == 8 * elements);
  CHECK(*twice.calls == 12);

  held.clear();
  for (int k = 0; k < 10; ++k) last = twice(last);
  const int before = *twice.calls;
  CHECK(a.value().at(0) == 2);
  CHECK(*twice.calls > before);
  CHECK(meter_of(evaluator).live() <= 3 * size);
}

TEST_CASE("eager within a budget: a Tensor held is not taken for a value of the next program") {
  Tape tape(eager({.memory_budget = 3 * size}));
  const Var a = tape.parameter(Tensor::ones({elements})) * 2.0;
  const Tensor held = a.value();
  Var last = a;
  for (int k = 0; k < 8; ++k) last = last * 2.0;
  CHECK_FALSE(tape.has_value(a.id()));
  tape.clear();
  const Var b = tape.parameter(Tensor::ones({elements})) * 5.0;
  REQUIRE(b.id() == a.id());
  backward(sum(b * b), {.memory_budget = 8 * size});
  CHECK_FALSE(tape.has_value(b.id()));
  CHECK(b.value().at(0) == 5);
  CHECK(held.at(0) == 2);
}

TEST_CASE("eager within a budget: training steps stay inside and are planned once") {
  std::vector<Tensor> weights[2];
  for (const bool online : {false, true}) {
    const Bytes budget = 24_KiB;
    const auto evaluator = online ? eager({.memory_budget = budget}) : lazy();
    Tape tape(evaluator);
    Tensor weight = Tensor::normal({16, 16}, 1);
    for (int step = 0; step < 4; ++step) {
      tape.clear();
      const Var w = tape.parameter(weight, "weight");
      Var x = tape.constant(Tensor::normal({32, 16}, 2));
      for (int layer = 0; layer < 12; ++layer) x = dropout(tanh(matmul(x, w)), 0.25);
      const Var loss = sum(x * x);
      if (online) CHECK(loss.item() > 0);
      const Gradients gradients = backward(loss);
      if (online) CHECK(gradients.report().budget == budget);
      if (online) CHECK(gradients.report().plan_reused == (step > 0));
      sgd({.learning_rate = 0.01})->step(gradients);
      weights[online].push_back(weight.clone());
      if (online) CHECK(meter_of(evaluator).peak_reserved() <= budget + weight.bytes() + 64);
    }
    if (online) CHECK(evaluator->plans_made() == 1);
  }
  for (std::size_t step = 0; step < 4; ++step) CHECK(same_bits(weights[0][step], weights[1][step]));
}

TEST_CASE("eager within a budget: goes on after runs with other budgets") {
  const Bytes budget = 6 * size;
  const auto evaluator = eager({.memory_budget = budget});
  Tape tape(evaluator);
  const Var x = tape.parameter(Tensor::full({elements}, 0.5));
  std::vector<Var> values{x};
  const auto extend = [&] {
    for (int k = 0; k < 10; ++k) values.push_back(tanh(values.back()) + values[values.size() / 2]);
  };
  extend();
  const Var loss = sum(values.back());
  const Tensor gradient = backward(loss, {.memory_budget = 64 * size})[x];
  evaluate(values, {.memory_budget = 64 * size});
  CHECK(tape.has_value(values[5].id()));
  meter_of(evaluator).reset_peaks();
  const Bytes before = meter_of(evaluator).peak_reserved();
  extend();
  CHECK(meter_of(evaluator).peak_reserved() <= before);
  CHECK(meter_of(evaluator).live() <= budget + gradient.bytes());
  CHECK(same_bits(backward(loss, {.memory_budget = 64 * size})[x], gradient));
  CHECK_FALSE(values[3].value().at(0) == 0);
  plan_backward(sum(values.back()), {.memory_budget = 64 * size});
}

TEST_CASE("eager within a budget: kernels that throw leave everything usable") {
  Tape tape(eager({.memory_budget = 4 * size}));
  const Doubling twice;
  std::vector<Var> chain{tape.parameter(Tensor::ones({elements}))};
  for (int k = 0; k < 10; ++k) chain.push_back(twice(chain.back()));
  const std::uint32_t nodes = tape.node_count();
  *twice.fails = true;
  CHECK_THROWS_WITH(twice(chain.back()), "broken kernel");
  CHECK_THROWS_WITH(chain[3].value(), "broken kernel");
  *twice.fails = false;
  CHECK(tape.node_count() == nodes);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    CHECK(chain[k].value().at(7) == std::ldexp(1.0, static_cast<int>(k)));
  }
  Tape strict(eager({.memory_budget = 4 * size, .anomaly = true}));
  const Var zero = strict.parameter(Tensor::zeros({elements}));
  CHECK_THROWS_AS(log(zero), AnomalyError);
  CHECK(exp(zero).value().at(0) == 1);
}

TEST_CASE("eager within a budget: values may be asked for while a function is traced") {
  Tape tape(eager({.memory_budget = 4 * size}));
  const Var x = tape.parameter(Tensor::full({elements}, 3));
  std::vector<Tensor> seen;
  const auto look = [&](const Var& a) {
    Var y = a;
    for (int k = 0; k < 6; ++k) y = y * 2.0;
    seen.push_back(y.value());
    return y;
  };
  const Var y = checkpoint(look, x);
  const Var z = y + 1.0;  // reuses the ids of the traced nodes
  const Var again = checkpoint(look, z);
  CHECK(seen.front().at(0) == 3 * 64);
  CHECK(seen.back().at(0) == 193 * 64);
  CHECK(y.value().at(1) == 3 * 64);
  CHECK(z.value().at(1) == 193);
  CHECK(again.value().at(1) == 193 * 64);
}

TEST_CASE(
    "eager within a budget: nodes taken off are forgotten even when nothing of them is left") {
  Tape tape(eager({.memory_budget = 4 * size}));
  const Var x = tape.parameter(Tensor::ones({elements}));
  std::vector<Var> chain{x};
  for (int k = 0; k < 10; ++k) chain.push_back(chain.back() * 2.0);
  const auto first = [&](std::span<const Var> a) {
    const Var y = a[0] * 3.0 * 3.0;
    CHECK(y.value().at(0) == 18);
    for (int k = 0; k < 60; ++k) chain[static_cast<std::size_t>(1 + k % 10)].value();
    CHECK_FALSE(tape.has_value(y.id()));
    return std::vector<Var>{a[0] + 1.0};
  };
  const Trace one(first, {&chain[1], 1});
  const auto second = [&](std::span<const Var> a) {
    const Var y = chain[1] + chain[10] + a[0];
    CHECK(y.value().at(0) == 2 + 1024 + 1);
    return std::vector<Var>{y};
  };
  const Trace two(second, {&x, 1});
}

TEST_CASE("eager within a budget: part of a node's outputs in the user's hands hinders no run") {
  const CustomOperation pair(
      {.name = "pair",
       .types =
           [](std::span<const ValueType> inputs) { return std::vector<ValueType>(2, inputs[0]); },
       .forward =
           [](const CustomCall& call) {
             for (const Tensor& output : call.outputs) {
               std::ranges::copy(call.inputs[0].data<float>(), output.data<float>().begin());
             }
           },
       .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }});
  Tape tape(eager({.memory_budget = 4 * size}));
  Var x = tape.parameter(Tensor::ones({elements}));
  std::vector<Tensor> held;
  for (int k = 0; k < 8; ++k) {
    x = pair({x});
    held.push_back(x.output(1).value());
  }
  CHECK(backward(sum(x), {.memory_budget = 5 * size}).loss().item() == elements);
}

TEST_CASE("eager within a budget: takes over tapes that others recorded") {
  for (const auto& first : {eager(), lazy(), std::shared_ptr<EngineEvaluator>()}) {
    Tape tape(first);
    const Var x = tape.parameter(Tensor::ones({elements}));
    std::vector<Var> values{x};
    for (int k = 0; k < 12; ++k) values.push_back(values.back() * 2.0);
    const Var flat = reshape(values[6], {elements / 2, 2});
    flat.value();
    const auto evaluator = eager({.memory_budget = 4 * size});
    tape.set_evaluator(evaluator);
    CHECK((values.back() + values[1]).value().at(0) == 4096 + 2);
    for (std::size_t k = 0; k < values.size(); ++k) {
      CHECK(values[k].value().at(3) == std::ldexp(1.0, static_cast<int>(k)));
    }
    CHECK(flat.value().at(1) == 64);
    CHECK(meter_of(evaluator).peak_reserved() <= 4 * size);
    // The values of another tape do not matter here.
    Tape other(evaluator);
    const Var y = other.parameter(Tensor::ones({elements})) * 3.0;
    CHECK(values[2].value().at(0) == 4);
    CHECK((y * 2.0).value().at(0) == 6);
    tape.drop(values[2].id());
    CHECK(values[2].value().at(0) == 4);
  }
}

TEST_CASE("eager within a budget: a value and its view come into one storage") {
  Tape tape;
  const Var a = tape.parameter(Tensor::ones({elements})) * 2.0;
  const Var flat = reshape(a, {elements / 2, 2});
  flat.value();
  a.value();
  REQUIRE(tape.buffer(a.id()) != tape.buffer(flat.id()));
  const auto evaluator = eager({.memory_budget = 3 * size});
  tape.set_evaluator(evaluator);
  CHECK((flat * 2.0).value().at(0) == 4);
  CHECK(tape.buffer(a.id()) == tape.buffer(flat.id()));
  CHECK(meter_of(evaluator).live() == 2 * size);
}

TEST_CASE("eager within a budget: a view held brings its storage back, which is no second one") {
  const auto evaluator = eager({.memory_budget = 3 * size});
  Tape tape(evaluator);
  const Doubling twice;
  const Var x = tape.parameter(Tensor::ones({elements}));
  const Var a = twice(x);
  const Var flat = reshape(reshape(a, {elements / 4, 4}), {elements / 2, 2});
  Tensor held = flat.value();
  Var last = a;
  for (int k = 0; k < 8; ++k) last = twice(last);
  REQUIRE_FALSE(tape.has_value(flat.id()));
  CHECK(flat.value().raw() == held.raw());
  CHECK((a * 2.0).value().at(0) == 4);
  CHECK(tape.buffer(a.id()) == tape.buffer(flat.id()));
  CHECK(*twice.calls == 9);
  held = {};
  CHECK(meter_of(evaluator).live() <= 3 * size);
}

TEST_CASE("eager within a budget: a tape where another one was is not taken for it") {
  const auto evaluator = eager({.memory_budget = 4 * size});
  std::optional<Tape> tape(std::in_place, evaluator);
  CHECK((tape->parameter(Tensor::ones({elements})) * 2.0).value().at(0) == 2);
  REQUIRE(tape->changes() == 1);
  tape.emplace();
  const Var x = tape->parameter(Tensor::ones({elements}));
  const Var a = x * 3.0;
  const Var b = x * 5.0;
  CHECK(b.value().at(0) == 5);
  REQUIRE(tape->changes() == 1);  // as before, but for another value
  tape->set_evaluator(evaluator);
  CHECK((a + b).value().at(0) == 8);
}

TEST_CASE("eager within a budget: two tapes of one evaluator, step by step") {
  const auto evaluator = eager({.memory_budget = 3 * size});
  Tape tapes[2]{Tape(evaluator), Tape(evaluator)};
  Var values[2];
  for (int t : {0, 1}) values[t] = tapes[t].parameter(Tensor::full({elements}, 1 + t));
  for (int k = 0; k < 6; ++k) {
    for (int t : {0, 1}) values[t] = values[t] * 2.0;
  }
  for (int t : {0, 1}) CHECK(values[t].value().at(0) == 64 * (1 + t));
}

TEST_CASE("eager within a budget: a value that does not fit, asked for while nodes are temporary") {
  for (const bool asks : {false, true}) {
    Tape tape(eager({.memory_budget = 3 * size}));
    const Var w = tape.parameter(Tensor::uniform({elements}, 1));
    const Var column = reshape(w, {elements, 1});
    const Var row = reshape(w, {1, elements});
    const Var h = exp(w);
    const auto body = [&](const Var& x) {
      const Var large = matmul(column, row);
      if (asks) large.value();
      throw std::runtime_error("the body gives up");
      return tanh(x) + sum(large);
    };
    if (asks) {
      CHECK_THROWS_AS(checkpoint(body, h), BudgetError);
    } else {
      CHECK_THROWS_AS(checkpoint(body, h), std::runtime_error);
    }
    const Var c = tape.constant(Tensor::uniform({elements}, 5));
    const Var small = tape.constant(Tensor::uniform({4}, 5));
    CHECK((h * w).value().at(0) == static_cast<float>(h.value().at(0) * w.value().at(0)));
    CHECK((c * w).value().at(0) == static_cast<float>(c.value().at(0) * w.value().at(0)));
    CHECK((small * 2.0).value().at(0) == 2 * small.value().at(0));
  }
}

TEST_CASE("eager within a budget: a long program, without recursion") {
  const auto evaluator = eager({.memory_budget = 64_KiB});
  Tape tape(evaluator);
  const Var x = tape.parameter(Tensor::ones({16}));
  Var y = x;
  Var middle;
  for (int k = 0; k < 20'000; ++k) {
    y = y * 1.0;
    if (k == 10'000) middle = y;
  }
  CHECK((middle + y).value().at(0) == 2);
  CHECK(meter_of(evaluator).peak_reserved() <= 64_KiB);
}

}  // namespace
}  // namespace palimpsest::online_test
