#include <array>
#include <limits>

#include "strategy/backward.h"
#include "strategy/evaluators/engine.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::step_cache_test {
namespace {

/// A tape whose engine can tell whether it knows a step.
struct Loop {
  std::shared_ptr<EngineEvaluator> evaluator = lazy();
  Tape tape{evaluator};

  Engine& engine() { return evaluator->engine(); }
  bool knows(const Var& loss, const RunOptions& options = {}) {
    const bool known = engine().repeat(tape, std::vector{loss.id()}, options).has_value();
    tape.drop(loss.id());
    return known;
  }
};

bool same(const Gradients& a, const Gradients& b) {
  return same_bits(a.loss(), b.loss()) &&
         std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same_bits(x.gradient, y.gradient); });
}

/// A loss of leaves for step `step`, with `factor` as an attribute of a node.
Var record_step(Tape& tape, std::uint64_t step, double factor = 0.5) {
  const Var w = tape.parameter(Tensor::normal({6, 6}, 2 * step, 0, 1, DType::f64));
  const Var x = tape.constant(Tensor::normal({3, 6}, 2 * step + 1, 0, 1, DType::f64));
  return mean(square(tanh(matmul(x, w)) * factor));
}

Gradients on_its_own(std::uint64_t step, double factor = 0.5) {
  Tape tape;
  return backward(record_step(tape, step, factor));
}

TEST_CASE("a step is known when it was recorded twice, whatever its leaves hold") {
  Loop loop;
  for (std::uint64_t step = 0; step < 6; ++step) {
    loop.tape.clear();
    const Var loss = record_step(loop.tape, step);
    CHECK(loop.knows(loss) == (step >= 2));
    CHECK(same(backward(loss), on_its_own(step)));
    CHECK(loop.tape.has_value(loss.id()));
  }
}

TEST_CASE("backward again on an unchanged tape plans no second time") {
  Loop loop;
  const Var loss = record_step(loop.tape, 1);
  const Gradients expected = on_its_own(1);
  std::vector<Gradients> held;  // these hold the losses, which the tape also has
  for (int call = 0; call < 4; ++call) {
    CAPTURE(call);
    held.push_back(backward(loss));
    CHECK(same(held.back(), expected));
    CHECK(held.back().report().plan_reused == (call > 0));
    CHECK(loop.tape.has_value(loss.id()));
    CHECK(plan_backward(loss).predicted_peak() == held[0].report().predicted_peak);
    CHECK(loop.tape.has_value(loss.id()));
  }
  CHECK(loop.engine().plans_made() == 1);
  CHECK(loop.engine().repeat(loop.tape, std::vector{loss.id()}, {}).has_value());
  // A requested value stays on the tape; a program that contains it is a different one.
  Var other;
  Tape tape;
  const Var w = tape.parameter(Tensor::ones({3}));
  other = exp(w);
  const Var sum_of = sum(other);
  other.value();
  backward(sum_of);
  CHECK(tape.has_value(other.id()));
}

TEST_CASE("known steps of random programs have the bits of others, at any budget") {
  const auto programs = static_cast<std::uint64_t>(cases(30));
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    Tape once;
    const Gradients expected = backward(record_random(once, seed, 40).loss);
    const auto least = [&](int threads) {
      Tape tape;
      try {
        return plan_backward(record_random(tape, seed, 40).loss,
                             {.memory_budget = 1, .threads = threads})
            .predicted_peak();
      } catch (const BudgetError& error) {
        return error.smallest_feasible();
      }
    };
    const std::array leasts{least(1), least(2)};
    Loop loop;
    bool known = false;
    for (const bool is_limited : {false, false, false, true, true, false}) {
      for (const int threads : {1, 2}) {
        const Bytes budget =
            is_limited ? leasts.at(static_cast<std::size_t>(threads - 1)) : unlimited;
        loop.tape.clear();
        const RandomProgram program = record_random(loop.tape, seed, 40);
        known = loop.knows(program.loss);
        const Gradients gradients =
            backward(program.loss, {.memory_budget = budget, .threads = threads});
        CHECK(same(gradients, expected));
        CHECK(gradients.report().measured_peak <= gradients.report().predicted_peak);
        CHECK(gradients.report().predicted_peak <= budget);
      }
    }
    CHECK(known);
  }
}

TEST_CASE("a step with another number, name, line, loss or stopped derivative is not known") {
  Loop loop;
  for (std::uint64_t step = 0; step < 4; ++step) {
    loop.tape.clear();
    backward(record_step(loop.tape, step));
  }
  const auto known = [&](auto record) {
    loop.tape.clear();
    return loop.knows(record());
  };
  CHECK(known([&] { return record_step(loop.tape, 5); }));
  CHECK_FALSE(known([&] { return record_step(loop.tape, 5, 0.7); }));
  CHECK_FALSE(known([&] { return record_step(loop.tape, 5).named("loss"); }));
  CHECK_FALSE(known([&] {
    const auto scope = loop.tape.scope("layer");
    return record_step(loop.tape, 5);
  }));
  CHECK_FALSE(known([&] { return record_step(loop.tape, 5) * 1.0; }));
  CHECK_FALSE(known([&] {
    const auto stopped = loop.tape.no_gradient();
    return record_step(loop.tape, 5);
  }));
  CHECK_FALSE(known([&] {
    const Var w = loop.tape.parameter(Tensor::normal({6, 6}, 1, 0, 1, DType::f64));
    const Var x = loop.tape.constant(Tensor::normal({3, 6}, 2, 0, 1, DType::f64));
    return mean(square(tanh(matmul(x, w)) * 0.5));
  }));
  CHECK(known([&] { return record_step(loop.tape, 5); }));

  loop.tape.clear();
  CHECK(same(backward(record_step(loop.tape, 6, 0.7)), on_its_own(6, 0.7)));
}

TEST_CASE("a known step draws other random numbers each time, as its tape does") {
  const auto record = [](Tape& tape) {
    const Var x = tape.parameter(Tensor::ones({64}));
    return sum(square(dropout(x, 0.5)) + dropout(x * 2.0, 0.25));
  };
  Loop loop;
  Tape other;
  for (int step = 0; step < 6; ++step) {
    loop.tape.clear();
    other.clear();
    const Var loss = record(loop.tape);
    CHECK(loop.knows(loss) == (step >= 2));
    other.set_evaluator(nullptr);  // starts with an engine that knows no step
    CHECK(same(backward(loss), backward(record(other))));
  }
  loop.tape.clear();
  loop.tape.set_seed(5);
  CHECK_FALSE(loop.knows(record(loop.tape)));
}

TEST_CASE("derivatives that users define are recorded at every step") {
  int calls = 0;
  const CustomOperation twice({.name = "twice",
                               .forward =
                                   [](const CustomCall& call) {
                                     for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
                                       call.outputs[0].data<float>()[i] =
                                           2 * call.inputs[0].data<float>()[i];
                                     }
                                   },
                               .vjp =
                                   [&](const Pullback& p) {
                                     ++calls;
                                     p.set(0, p.adjoint() * 2.0);
                                   }});
  Loop loop;
  for (int step = 1; step <= 5; ++step) {
    loop.tape.clear();
    backward(sum(twice({loop.tape.parameter(Tensor::ones({3}))})));
    CHECK(calls == step);
  }
}

TEST_CASE("a loss of fewer operands is another step") {
  Loop loop;
  const auto record = [&](bool biased) {
    loop.tape.clear();
    const Var x = loop.tape.constant(Tensor::ones({1, 1, 4}));
    const Var w = loop.tape.parameter(Tensor::ones({1, 1, 4}));
    const Var b = loop.tape.parameter(Tensor::ones({1}));
    const Var operands[] = {x, w, b};
    return conv1d(operands[0], operands[1], biased ? b : Var(), {});
  };
  for (int step = 0; step < 4; ++step) backward(record(true));
  CHECK(loop.knows(record(true)));
  CHECK_FALSE(loop.knows(record(false)));
  CHECK(backward(record(false)).loss().item() == 4);
}

TEST_CASE("streams that are no tape's own are what they were named, at every step") {
  Loop loop;
  const RandomStream stream{7, 0, 3};
  const Tensor expected = [&] {
    Tape tape;
    const Var x = tape.parameter(Tensor::ones({64}));
    return backward(sum(dropout(x, 0.5, stream))).entries()[0].gradient;
  }();
  for (int step = 0; step < 6; ++step) {
    loop.tape.clear();
    const Var x = loop.tape.parameter(Tensor::ones({64}));
    CHECK(same_bits(backward(sum(dropout(x, 0.5, stream))).entries()[0].gradient, expected));
  }
}

TEST_CASE("a known step keeps neither leaves nor results") {
  Loop loop;
  const Tensor weight = Tensor::ones({1000});
  for (int step = 0; step < 4; ++step) {
    loop.tape.clear();
    {
      const Var loss = sum(square(loop.tape.parameter(weight)));
      const Gradients gradients = backward(loss);
    }
    loop.tape.clear();
    CHECK(weight.buffer().use_count() == 1);
  }
  loop.engine().release_arena();
  CHECK(loop.engine().meter().live() == 0);
}

TEST_CASE("what is present beside leaves and the loss is used, and a known step is not") {
  Loop loop;
  for (std::uint64_t step = 0; step < 4; ++step) {
    loop.tape.clear();
    backward(record_step(loop.tape, step));
  }
  loop.tape.clear();
  const Var loss = record_step(loop.tape, 7);
  loss.value();  // computed by itself, it is recomputed later
  CHECK(loop.knows(loss));
  const Var squared = loop.tape.var(loop.tape.inputs(loss.node())[0]);
  squared.value();
  CHECK_FALSE(loop.engine().repeat(loop.tape, std::vector{loss.id()}, {}).has_value());
  CHECK(same(backward(loss), on_its_own(7)));
}

TEST_CASE("known steps refuse what cannot be done, and go on") {
  Loop loop;
  const auto record = [&](float value) {
    loop.tape.clear();
    return sum(log(loop.tape.parameter(Tensor::vector({value, 2}))));
  };
  for (int step = 0; step < 4; ++step) backward(record(1));
  CHECK_THROWS_AS(backward(record(1), {.memory_budget = 1}), BudgetError);
  CHECK_THROWS_AS(backward(record(1), {.memory_budget = -1}), ArgumentError);
  CHECK_THROWS_AS(backward(record(0), {.anomaly = true}), AnomalyError);
  const Var loss = record(4);
  CHECK(backward(loss).entries()[0].gradient.at(0) == 0.25);
}

TEST_CASE("steps that never come again are copied ever more seldom") {
  Loop loop;
  for (std::uint64_t step = 0; step < 12; ++step) {
    loop.tape.clear();
    backward(record_step(loop.tape, step, 0.1 + static_cast<double>(step)));
  }
  const auto known = [&](double factor) {
    loop.tape.clear();
    return loop.knows(record_step(loop.tape, 1, factor));
  };
  CHECK(known(0.1 + 1));
  CHECK(known(0.1 + 3));
  CHECK(known(0.1 + 7));
  CHECK_FALSE(known(0.1 + 2));
  CHECK_FALSE(known(0.1 + 11));
}

}  // namespace
}  // namespace palimpsest::step_cache_test
