#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/copying_operation.h"

namespace palimpsest::outputs_test {
namespace {

using Catch::Matchers::Contains;

/// Two layers, a loss, and values that a user may ask for.
struct Model {
  Tensor first = Tensor::normal({8, 16}, 1);
  Tensor second = Tensor::normal({16, 4}, 2);
  Tensor batch = Tensor::normal({12, 8}, 3);

  struct Recorded {
    Var loss, hidden, logits, input;
  };
  Recorded record(Tape& tape) const {
    const Var w = tape.parameter(first, "first");
    const Var v = tape.parameter(second, "second");
    const Var x = tape.constant(batch, "batch");
    const Var hidden = tanh(matmul(x, w));
    const Var logits = matmul(hidden, v);
    return {mean(square(logits)), hidden, logits, x};
  }
};

std::vector<std::shared_ptr<Evaluator>> evaluators() {
  return {lazy(), eager(), hybrid({}, {.nodes = 3}), precise({PrecisionKind::mixed})};
}

}  // namespace

TEST_CASE("auxiliary outputs come from the run that computes gradients") {
  const Model model;
  const auto list = evaluators();
  for (const auto& evaluator : list) {
    Tape tape(evaluator), other(evaluator);
    const auto plain = model.record(other);
    const Gradients without = backward(plain.loss);
    const auto made = model.record(tape);
    const Gradients with = backward(made.loss, {made.logits, made.hidden, made.input, made.loss});
    REQUIRE(with.outputs().size() == 4);
    CHECK(same_bits(with.outputs()[0], plain.logits.value()));
    CHECK(same_bits(with.outputs()[1], plain.hidden.value()));
    CHECK(same_bits(with.outputs()[2], model.batch));
    CHECK(same_bits(with.outputs()[3], with.loss()));
    CHECK(without.outputs().empty());
    // A hybrid tape has already dropped the logits when they are requested.
    const bool has_dropped = evaluator == list[2];
    CHECK(with.report().computed == without.report().computed + (has_dropped ? 1 : 0));
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(same_bits(with.entries()[i].gradient, without.entries()[i].gradient));
    }
  }
}

TEST_CASE("asking for an output or the loss after backward computes nothing") {
  const Model model;
  Tape tape;
  const auto made = model.record(tape);
  backward(made.loss, {made.logits});
  CHECK(tape.has_value(made.loss.id()));
  CHECK(tape.has_value(made.logits.id()));
  CHECK_FALSE(tape.has_value(made.hidden.id()));
}

TEST_CASE("outputs count towards the budget, and their gradients have the same bits") {
  const Model model;
  Tape unlimited_tape;
  const auto whole = model.record(unlimited_tape);
  const Gradients expected = backward(whole.loss, {whole.logits, whole.hidden});
  Bytes named = 0;
  {
    Tape tape;
    const auto made = model.record(tape);
    try {
      backward(made.loss, {made.logits, made.hidden}, {.memory_budget = 1});
      FAIL("one byte is enough");
    } catch (const BudgetError& error) {
      named = error.smallest_feasible();
    }
  }
  CHECK(named >= expected.outputs()[0].bytes() + expected.outputs()[1].bytes());
  Tape tape;
  const auto made = model.record(tape);
  const Gradients within =
      backward(made.loss, {made.logits, made.hidden}, {.memory_budget = named});
  CHECK(within.report().measured_peak <= named);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(same_bits(within.entries()[i].gradient, expected.entries()[i].gradient));
    CHECK(same_bits(within.outputs()[i], expected.outputs()[i]));
  }
  const Plan plan =
      plan_backward({made.loss, {made.logits, made.hidden}}, {.memory_budget = named});
  CHECK(plan.predicted_peak() <= named);
}

TEST_CASE("steps with outputs are known again") {
  const Model model;
  Tape tape;
  Tensor logits;
  for (int step = 0; step < 6; ++step) {
    tape.clear();
    const auto made = model.record(tape);
    // Every third step asks for other outputs.
    const Gradients gradients =
        step % 3 == 2 ? backward(made.loss, {made.hidden}) : backward(made.loss, {made.logits});
    if (step == 0) logits = gradients.outputs()[0].clone();
    if (step % 3 != 2) CHECK(same_bits(gradients.outputs()[0], logits));
    if (step > 2) CHECK(gradients.report().plan_reused);
  }
}

TEST_CASE("an output of another tape is an error") {
  const Model model;
  Tape tape, other;
  const auto made = model.record(tape);
  const auto foreign = model.record(other);
  CHECK_THROWS_AS(backward(made.loss, {foreign.logits}), TapeError);
  CHECK_THROWS_AS(backward(made.loss, {Var()}), TapeError);
}

TEST_CASE("a program computes auxiliary outputs") {
  const Model model;
  Tape tape;
  const auto expected = model.record(tape);
  const Gradients whole = backward(expected.loss, {expected.logits});
  for (const bool is_precise : {false, true}) {
    const auto record = [&](Tape& own) {
      const auto made = model.record(own);
      return LossAndOutputs(made.loss, {made.logits, made.input});
    };
    Runner runner(is_precise ? Program::gradients(record, Precision{PrecisionKind::mixed})
                             : Program::gradients(record));
    for (int run = 0; run < 2; ++run) {
      runner.run();
      const Gradients gradients = runner.gradients();
      REQUIRE(gradients.outputs().size() == 2);
      CHECK(gradients.outputs()[0].type() == whole.outputs()[0].type());
      CHECK(same_bits(gradients.outputs()[1], model.batch));
      if (!is_precise) {
        CHECK(same_bits(gradients.outputs()[0], whole.outputs()[0]));
        CHECK(same_bits(gradients.entries()[1].gradient, whole.entries()[1].gradient));
      }
    }
  }
}

namespace {

const ModelFunction with_outputs = [](Tape&, std::span<const Var> p,
                                      std::span<const Var> b) -> LossAndOutputs {
  const Var logits = matmul(tanh(matmul(b[0], p[0])), p[1]);
  return {mean(square(logits)), {logits, mean(logits)}};
};

}  // namespace

TEST_CASE("an execution joins the outputs of all parts") {
  const Model model;
  const std::vector<Tensor> parameters{model.first, model.second};
  Execution alone;
  const Gradients whole = alone.gradients(with_outputs, parameters, {&model.batch, 1});
  CHECK(whole.outputs()[1].shape() == Shape{});
  const std::vector<ExecutionStrategy> strategies{
      {.accumulation = 3},
      {.parallelism = ParallelMode::data_parallel, .workers = 3, .run = {.threads = 3}},
      {.mode = ExecutionMode::eager, .accumulation = 3},
      {.precision = Precision{PrecisionKind::mixed, DType::f16}, .accumulation = 3}};
  for (const ExecutionStrategy& strategy : strategies) {
    Execution execution(strategy);
    for (int step = 0; step < 2; ++step) {
      const Gradients gradients = execution.gradients(with_outputs, parameters, {&model.batch, 1});
      REQUIRE(gradients.outputs().size() == 2);
      CHECK(gradients.outputs()[0].shape() == Shape{12, 4});
      CHECK(gradients.outputs()[1].shape() == Shape{3});
      if (!strategy.precision) CHECK(same_bits(gradients.outputs()[0], whole.outputs()[0]));
    }
    if (strategy.parallelism == ParallelMode::data_parallel) continue;
    CHECK(execution.value(with_outputs, parameters, {&model.batch, 1}).shape() == Shape{});
  }
}

// Updates -----------------------------------------------------------------------------------------

namespace {

/// A running mean of the logits, as the next value of `running`.
Var record_update(Tape& tape, const Model& model, const Tensor& running) {
  const auto made = model.record(tape);
  tape.constant(running, "running");  // so that another tensor can be bound
  tape.update_after_run(running, mean(made.logits, {0}), 0.1);
  return made.loss;
}

}  // namespace

TEST_CASE("a tensor is updated once by the run that computes gradients") {
  const Model model;
  Tensor expected;
  const auto list = evaluators();
  for (const auto& evaluator : list) {
    const Tensor running = Tensor::ones({4});
    Tape tape(evaluator);
    for (int step = 0; step < 4; ++step) {
      tape.clear();
      const Var loss = record_update(tape, model, running);
      plan_backward(loss);
      CHECK(tape.updates().size() == 1);
      CHECK(backward(loss).outputs().empty());
      CHECK(tape.updates().empty());
      const Tensor once = running.clone();
      backward(loss);
      CHECK(same_bits(running, once));
    }
    const bool is_first = !expected.defined();
    if (is_first) expected = running;
    if (evaluator != list.back()) CHECK(same_bits(running, expected));
    for (int i = 0; i < 4; ++i) CHECK(std::abs(running.at(i) - expected.at(i)) < 1e-2);
  }
  CHECK(expected.at(0) != 1);
}

TEST_CASE("a run that fails updates nothing, and can be repeated") {
  const Model model;
  const Tensor running = Tensor::ones({4});
  Tape tape;
  const Var loss = record_update(tape, model, running);
  CHECK_THROWS_AS(backward(loss, {.memory_budget = 1}), BudgetError);
  CHECK(same_bits(running, Tensor::ones({4})));
  backward(loss);
  CHECK(running.at(0) != 1);
}

TEST_CASE("updates in a checkpoint are done once") {
  const Model model;
  const Tensor plain = Tensor::ones({4}), recomputed = Tensor::ones({4});
  const auto record = [&](const Var& x, const Tensor& running) {
    Tape& tape = x.tape();
    tape.update_after_run(running, mean(x, {0}), 0.1);
    return square(x);
  };
  {
    Tape tape;
    backward(mean(record(model.record(tape).logits, plain)));
  }
  Tape tape;
  const Var logits = model.record(tape).logits;
  const Var made = checkpoint([&](const Var& x) { return record(x, recomputed); }, logits);
  backward(mean(made));
  CHECK(same_bits(plain, recomputed));
}

TEST_CASE("a program updates after every run, where the tensor is bound") {
  const Model model;
  const Tensor running = Tensor::ones({4}), other = Tensor::ones({4});
  Var leaf;
  Runner runner(Program::gradients([&](Tape& tape) {
    const Var loss = record_update(tape, model, running);
    leaf = tape.find_leaf(running);
    return loss;
  }));
  runner.run();
  const Tensor once = running.clone();
  CHECK(once.at(0) != 1);
  CHECK(runner.gradients().outputs().empty());
  runner.bind(leaf, other);
  runner.run();
  CHECK(same_bits(other, once));
  CHECK(same_bits(running, once));
}

TEST_CASE("updates of one target are done in order, from values before any of them") {
  const Tensor a = Tensor::full({2}, 1), b = Tensor::full({2}, 2);
  Tape tape;
  const Var x = tape.parameter(Tensor::full({2}, 3));
  const Var of_a = tape.constant(a), of_b = tape.constant(b);
  tape.update_after_run(a, of_b);
  tape.update_after_run(b, of_a);
  tape.update_after_run(a, x * 2.0, 0.5);
  tape.update_after_run(a, x * 4.0, 0.5);
  const Gradients gradients = backward(sum(x), {of_a});
  CHECK(gradients.outputs()[0].at(0) == 1);
  CHECK(b.at(0) == 1);
  CHECK(a.at(0) == 8);  // 2, then 4, then 8
}

TEST_CASE("outputs that do not fit together leave the targets as they were") {
  const Model model;
  const Tensor running = Tensor::zeros({4});
  Execution execution({.accumulation = 5});
  const ModelFunction loss = [&](Tape& tape, std::span<const Var> p,
                                 std::span<const Var> b) -> LossAndOutputs {
    const Var logits = matmul(tanh(matmul(b[0], p[0])), p[1]);
    tape.update_after_run(running, mean(logits, {0}));
    return {mean(square(logits)), {transpose(logits)}};  // (4, 3), then (4, 2)
  };
  CHECK_THROWS_AS(
      execution.gradients(loss, std::vector{model.first, model.second}, {&model.batch, 1}),
      ShapeError);
  CHECK(running.at(0) == 0);
}

TEST_CASE("parts that return different numbers of outputs are an error") {
  const Model model;
  Execution execution({.accumulation = 5});  // parts of 3, 3, 2, 2 and 2 examples
  const ModelFunction loss = [](Tape&, std::span<const Var> p,
                                std::span<const Var> b) -> LossAndOutputs {
    const Var logits = matmul(tanh(matmul(b[0], p[0])), p[1]);
    if (b[0].shape()[0] == 2) return mean(square(logits));
    return {mean(square(logits)), {logits}};
  };
  CHECK_THROWS_WITH(
      execution.gradients(loss, std::vector{model.first, model.second}, {&model.batch, 1}),
      Contains("1 and 0 outputs"));
}

TEST_CASE("the parts of a batch update by their mean") {
  const Model model;
  const std::vector<Tensor> parameters{model.first, model.second};
  const auto run = [&](const ExecutionStrategy& strategy) {
    const Tensor running = Tensor::ones({4});
    Execution execution(strategy);
    const ModelFunction loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
      const Var logits = matmul(tanh(matmul(b[0], p[0])), p[1]);
      tape.update_after_run(running, mean(logits, {0}), 0.5);
      return mean(square(logits));
    };
    const Gradients gradients = execution.gradients(loss, parameters, {&model.batch, 1});
    CHECK(gradients.outputs().empty());
    return running;
  };
  const Tensor whole = run({});
  const Tensor cut = run({.accumulation = 5});  // parts of 3, 3, 2, 2 and 2 examples
  const Tensor parallel =
      run({.parallelism = ParallelMode::data_parallel, .workers = 5, .run = {.threads = 2}});
  CHECK(same_bits(cut, parallel));
  for (int i = 0; i < 4; ++i) CHECK(std::abs(whole.at(i) - cut.at(i)) < 1e-6);
}

TEST_CASE("updates in a loop, and of another type, are errors") {
  Tape tape;
  const Tensor running = Tensor::zeros({3});
  const Var x = tape.parameter(Tensor::ones({3}));
  CHECK_THROWS_AS(tape.update_after_run(running, sum(x)), ShapeError);
  CHECK_THROWS_AS(tape.update_after_run(running, cast(x, DType::i32)), DTypeError);
  CHECK_THROWS_WITH(tape.update_after_run(Tensor(), x), Contains("empty"));
  CHECK_THROWS_WITH(tape.update_after_run(running, x, 1.5), Contains("from 0 to 1"));
  const auto body = [&](const Var& state, const StepNumber&) {
    state.tape().update_after_run(running, state);
    return state * 2.0;
  };
  CHECK_THROWS_WITH(scan(x, 3, body), Contains("part of the state"));
}

TEST_CASE("parts of temporary gradients are values of their own") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from<double>({1, 2}, {2}), "x");
  const auto made = [&] { return backward(sum(x * x), Outputs{exp(x)}); };
  double sum = 0;
  for (const Gradients::Entry& entry : made().entries()) sum += entry.gradient.at(1);
  for (const Tensor& output : made().outputs()) sum += output.at(0);
  CHECK(std::abs(sum - 4 - std::exp(1.0)) < 1e-12);
  const Tensor& loss = made().loss();
  const Tensor& by_var = made()[x];
  const Tensor& by_name = made()["x"];
  const Report& report = made().report();
  const ValueType& type = made()[x].type();
  CHECK(loss.item() == 5);
  CHECK(by_var.at(1) == 4);
  CHECK(same_bits(by_var, by_name));
  CHECK(report.computed > 0);
  CHECK(type.dtype == DType::f64);
  std::size_t outputs = 0;
  for (const Var& output : Program::values([](Tape& own) {
                             return std::vector<Var>{own.constant(Tensor::ones({2})) * 2.0};
                           }).outputs()) {
    outputs += output.defined() ? 1U : 0U;
  }
  CHECK(outputs == 1);
}

TEST_CASE("an update is done once where a derivative's function asks for gradients") {
  for (const bool is_precise : {false, true}) {
    Tape tape(is_precise ? precise({PrecisionKind::single}) : lazy());
    const Var w = tape.parameter(Tensor::from({0.5f, -1.0f, 0.25f, 2.0f}, {2, 2}), "w");
    const Var h = matmul(tape.constant(Tensor::from({1.0f, 2.0f}, {1, 2})), w);
    const Tensor running = Tensor::zeros({});
    bool fails = true;
    const CustomOperation copy = copying_operation([&](const Pullback& p) {
      if (fails) throw std::runtime_error("not yet");
      backward(sum(exp(h)));
      return p.adjoint();
    });
    const Var loss = sum(square(copy({tanh(h)})));
    tape.update_after_run(running, sum(h), 0.5);
    CHECK_THROWS(backward(loss));
    CHECK(running.at(0) == 0);
    fails = false;
    backward(loss);
    CHECK(running.at(0) == 2);  // half the sum, which is 4
    backward(loss);
    CHECK(running.at(0) == 2);
  }
}

}  // namespace palimpsest::outputs_test
