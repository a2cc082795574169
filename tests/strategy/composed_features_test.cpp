#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <cmath>
#include <stop_token>

#include "palimpsest.h"
#include "strategy/training/training.h"
#include "tests/catch.h"
#include "tests/error_of.h"

// Features that each work alone, composed as users compose them.

namespace palimpsest::composed_features_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

TEST_CASE("a value that shares the storage of one output of a node may be held during a run") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({512}, 1));
  const Var a = sort(x).values;
  const Var b = a * 1.0;  // simplified: the storage of `a`
  const Gradients held = backward(sum(a * a), Outputs{a, b});
  const Var y = sin(b);
  evaluate(y, {.memory_budget = 400_KiB});
  CHECK_THAT(y.value().at(7), WithinRel(std::sin(held.outputs()[1].at(7)), 1e-5));
}

TEST_CASE("a budget that was chosen for caches refuses no run of other forms") {
  constexpr int n = 1 << 14;
  constexpr Bytes bytes = n * 4;
  Machine machine;
  machine.bytes_per_second = 1e9;
  machine.caches[0] = {4_KiB, 1e13};
  machine.caches[1] = {16 * bytes, 1e13};
  Tape tape(lazy());
  const Var w = tape.parameter(Tensor::normal({n}, 1, 0, 0.1));
  const Var column = tape.constant(Tensor::ones({64, 1}));
  Var x = w;
  for (int i = 0; i < 40; ++i) x = roll(sin(x) * 1.1, 1, 0);
  const Var wide = exp(stop_gradient(reshape(w, {1, n})) * column);
  const Var loss = sum(x * x) + sum(sum(wide));
  backward(loss, {.machine = machine});
  CHECK_NOTHROW(backward(loss, {.anomaly = true, .machine = machine}));
}

TEST_CASE("kernels compute everything in a task whose group is cancelled") {
  const Tensor w = Tensor::ones({1 << 20});
  Tensor doubled;
  double total = 0;
  oneapi::tbb::task_group group;
  group.run_and_wait([&] {
    group.cancel();
    doubled = w * 2.0;
    Tape tape;
    total = sum(tape.constant(w) * 2.0).value().item();
    const Var p = tape.parameter(w, "w");
    sgd({.learning_rate = 0.5})->step(backward(sum(p * 1.0)));
  });
  REQUIRE(doubled.defined());
  CHECK(doubled.at(5) == 2);
  CHECK(total == 2 << 20);
  CHECK(w.at(7) == 0.5);
}

TEST_CASE("an update by a value from outside is done once, also if a checkpoint registers it") {
  for (const bool nested : {false, true}) {
    const Tensor mean_of_all = Tensor::zeros({1});
    Tape tape;
    const Var x = tape.parameter(Tensor::ones({4}));
    const Var m = reshape(mean(x), {1});
    const auto f = [&](const Var& v) {
      tape.update_after_run(mean_of_all, m, 0.5);
      return sin(v);
    };
    const auto g = [&](const Var& v) { return nested ? checkpoint(f, v) : f(v); };
    backward(sum(checkpoint(g, x)));
    CHECK(mean_of_all.at(0) == 0.5);
  }
}

TEST_CASE("a progress function cannot start a run of the evaluator that it watches") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({1000}, 1));
  Var y = x;
  for (int i = 0; i < 20; ++i) y = sin(y);
  const Var other = sum(x);
  std::vector<std::string> errors;
  backward(sum(y * y), {.progress = on_progress([&](const RunProgress&) {
                          if (!errors.empty()) return;
                          errors.push_back(error_of([&] { other.value(); }));
                          errors.push_back(error_of([&] { plan_backward(other); }));
                          errors.push_back(error_of([&] { forecast_backward(other); }));
                        })});
  CHECK(errors.size() == 3);
  for (const std::string& error : errors) {
    CHECK_THAT(error, Contains("the tape is in use: a run computes its values"));
  }
  CHECK_THAT(other.value().item(), WithinRel(sum(x).value().item(), 1e-5));
}

TEST_CASE("a progress function cannot use the Runner that it watches") {
  Var x;
  Runner* watched = nullptr;
  std::vector<std::string> errors;
  const Tensor other = Tensor::full({100}, 2);
  const auto on_step = [&](const RunProgress&) {
    if (watched == nullptr || !errors.empty()) return;
    errors.push_back(error_of([&] { watched->bind(x, other); }));
    errors.push_back(error_of([&] { watched->run(); }));
    errors.push_back(error_of([&] { static_cast<void>(watched->gradients()); }));
  };
  const Program program = Program::gradients(
      [&](Tape& tape) {
        x = tape.parameter(Tensor::normal({100}, 1));
        Var y = x;
        for (int i = 0; i < 20; ++i) y = sin(y);
        return sum(y * y);
      },
      {.progress = on_progress(on_step)});
  Runner runner(program);
  runner.run();
  const double expected = runner.gradients().loss().item();
  watched = &runner;
  runner.run();
  CHECK(runner.gradients().loss().item() == expected);
  CHECK(errors.size() == 3);
  for (const std::string& error : errors) {
    CHECK_THAT(error, Contains("the Runner is in use: a call of it is in progress"));
  }
}

TEST_CASE("a run that computed nothing can be explained") {
  Tape tape(eager());
  const Var x = tape.parameter(Tensor::ones({3}));
  const Var y = scan(x, 3, [](const Var& u, const StepNumber&) { return sin(u); });
  CHECK_THAT(evaluate(y).explain(), Contains("nothing is computed"));
}

TEST_CASE("scaling gradients in place leaves the loss, outputs, values and leaves alone") {
  const Tensor given = Tensor::full({3}, 5);
  {
    Tape tape;
    const Var x = tape.parameter(Tensor::scalar(1));
    const Var loss = exp(x);
    const Gradients gradients = backward(loss);
    const double before = gradients.loss().item();
    clip_by_norm(gradients, 0.1);
    CHECK(gradients.loss().item() == before);
    CHECK(loss.value().item() == before);
    CHECK_THAT(gradients[x].item(), WithinRel(0.1, 1e-5));
  }
  {
    Tape tape;
    const Var z = tape.parameter(Tensor::ones({4}));
    const Var y = exp(z);
    const Gradients gradients = backward(LossAndOutputs(sum(y), {y}));
    clip_by_norm(gradients, 0.1);
    CHECK_THAT(gradients.outputs()[0].at(0), WithinRel(std::exp(1.0), 1e-5));
    CHECK_THAT(y.value().at(0), WithinRel(std::exp(1.0), 1e-5));
  }
  // The adjoint of `w` is the other operand itself.
  const CustomOperation operation({
      .name = "zeros",
      .forward =
          [](const CustomCall& call) { std::ranges::fill(call.outputs[0].data<float>(), 0); },
      .vjp = [](const Pullback& pull) { pull.set(0, pull.input(1)); },
  });
  {
    Tape tape;
    const Var w = tape.parameter(Tensor::ones({3}));
    const Gradients gradients = backward(sum(operation({w, tape.constant(given)})));
    clip_by_norm(gradients, 1);
    CHECK(given.at(0) == 5);
    CHECK_THAT(gradients[w].at(0), WithinRel(1 / std::sqrt(3.0), 1e-5));
  }
  Var c;
  Runner runner(Program::gradients([&](Tape& tape) {
    const Var w = tape.parameter(Tensor::ones({3}));
    c = tape.constant(Tensor::ones({3}));
    return sum(operation({w, c}));
  }));
  runner.bind(c, given);
  runner.run();
  clip_by_norm(runner.gradients(), 1);
  CHECK(given.at(0) == 5);
}

TEST_CASE("custom operations can be stopped, whatever their dtype") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    bool has_control = false;
    Tape tape;
    const CustomOperation operation({
        .name = "ones",
        .forward =
            [&](const CustomCall& call) {
              has_control = call.control != nullptr;
              std::ranges::fill(call.outputs[0].data<float>(), 1.0f);
            },
    });
    const std::stop_source stop;
    evaluate(operation({tape.constant(Tensor::ones({4}, dtype))}), {.stop = stop.get_token()});
    CHECK(has_control);
  }
}

TEST_CASE("a planner that proposes nothing is named") {
  struct Silent : Planner {
    std::string name() const override { return "silent"; }
    std::vector<Proposal> propose(const Graph&, Bytes) const override { return {}; }
  };
  Tape tape;
  const Var loss = sum(sin(tape.parameter(Tensor::ones({64}))));
  CHECK_THAT(error_of([&] { backward(loss, {.planner = std::make_shared<Silent>()}); }),
             Contains("[planner] the planner 'silent' proposed no schedule"));
}

TEST_CASE("leaves of several shapes on one storage are each found") {
  Tape tape;
  const Tensor row = Tensor::normal({4}, 1);
  const Tensor square = row.reshape({2, 2});
  const Var a = tape.find_or_record(row, true, "row");
  const Var b = tape.find_or_record(square, true, "square");
  CHECK(tape.find_or_record(row, true, "row") == a);
  CHECK(tape.find_or_record(square, true, "square") == b);
  CHECK(tape.find_leaf(square) == b);
}

}  // namespace
}  // namespace palimpsest::composed_features_test
