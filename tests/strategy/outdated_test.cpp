#include "autodiff/outdated.h"

#include <cmath>
#include <functional>

#include "nn/parameters.h"
#include "palimpsest.h"
#include "strategy/training/training.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_file.h"

namespace palimpsest::outdated_test {
namespace {

using Catch::Matchers::Contains;

Tensor of_elements(const std::vector<double>& elements) {
  return Tensor::from(elements, {static_cast<std::int64_t>(elements.size())});
}

/// Two losses of one parameter that share the square of it.
struct Cubes {
  Tensor weight = of_elements({1, 2, 3});
  Tape tape;
  Var x, square, first, second;

  explicit Cubes(std::shared_ptr<EngineEvaluator> evaluator = nullptr) : tape(evaluator) {
    x = tape.parameter(weight, "weight");
    square = x * x;
    first = sum(square);
    second = sum(square * x);
  }
  /// Changes the parameter by the gradient of the first loss, which another tape computes.
  void step() const {
    Tape other;
    const Var own = other.parameter(weight);
    sgd({.learning_rate = 0.25})->step(backward(sum(own * own)));
  }
  double sum_of_cubes() const {
    double sum = 0;
    for (std::int64_t i = 0; i < 3; ++i) sum += std::pow(weight.at(i), 3);
    return sum;
  }
};

void check_one_version(Cubes& cubes, const Gradients& gradients) {
  CHECK(gradients.loss().item() == cubes.sum_of_cubes());
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(gradients[cubes.x].at(i) == 3 * std::pow(cubes.weight.at(i), 2));
  }
}

TEST_CASE("a tape that is not eager computes a loss and its gradient from one version") {
  const std::shared_ptr<EngineEvaluator> evaluators[] = {nullptr, lazy(), hybrid({}, {.nodes = 1})};
  for (const auto& evaluator : evaluators) {
    for (const bool is_computed : {false, true}) {
      for (const Bytes budget : {unlimited, Bytes{1} << 20}) {
        Cubes cubes(evaluator);
        if (is_computed) evaluate(std::vector<Var>{cubes.square, cubes.first, cubes.second});
        cubes.step();
        check_one_version(cubes, backward(cubes.second, {.memory_budget = budget}));
        CHECK(cubes.second.item() == cubes.sum_of_cubes());
      }
    }
  }
}

TEST_CASE("an eager tape refuses values of an older version") {
  for (const Bytes budget : {unlimited, Bytes{1} << 20}) {
    Cubes cubes(eager({.memory_budget = budget}));
    const std::uint32_t nodes = cubes.tape.node_count();
    cubes.step();
    const auto check = [&](const auto& f) {
      check_error(f, {"made from weight", "before Optimizer::step", "clear the tape", "lazy tape",
                      "outdated_test.cpp:"});
      CHECK_THROWS_AS(f(), TapeError);
      CHECK(cubes.tape.node_count() == nodes);
    };
    check([&] { backward(cubes.second); });
    check([&] { backward(cubes.second, {.memory_budget = Bytes{1} << 20}); });
    check([&] { plan_backward(cubes.second); });
    check([&] { evaluate(cubes.second); });
    check([&] { cubes.square + 1.0; });
    check_error([&] { backward(cubes.second); }, {"[sum]"});
    check_error([&] { sum(cubes.square); }, {"[multiply]"});
    // What is recorded now reads the new version only.
    const Var again = sum(cubes.x * cubes.x * cubes.x);
    check_one_version(cubes, backward(again));
  }
}

TEST_CASE("a computed value stays readable after a step") {
  const std::shared_ptr<EngineEvaluator> evaluators[] = {
      lazy(), lazy({.memory_budget = Bytes{1} << 20}), hybrid(), eager(),
      eager({.memory_budget = Bytes{1} << 20})};
  for (const auto& evaluator : evaluators) {
    Cubes cubes(evaluator);
    CHECK(backward(cubes.first).loss().item() == 14);
    cubes.step();
    CHECK(cubes.first.item() == 14);
    const Var other = sum(cubes.x * 2.0);
    CHECK(backward(other).loss().item() == 2 * (0.5 + 1 + 1.5));
    CHECK(cubes.first.item() == 14);
    CHECK(cubes.first.value().at(0) == 14);
  }
}

TEST_CASE("with a budget, old values that take memory are let go") {
  Tape tape(lazy());
  const Tensor weight = Tensor::ones({1000});
  const Var x = tape.parameter(weight);
  const Var y = exp(x);
  const Var total = sum(y);
  evaluate(std::vector<Var>{y, total});
  const double before = total.item();
  note_write(weight, "test");
  weight.data<float>()[0] = 0;
  evaluate(x * 2.0);
  CHECK(y.value().at(0) == std::exp(1.0F));
  evaluate(x * 3.0, {.memory_budget = Bytes{1} << 20});
  CHECK(tape.outdated().at(y.id()).buffer == nullptr);
  CHECK(y.value().at(0) == 1);
  CHECK(total.item() == before);
}

TEST_CASE("training on a tape that is never cleared has the bits of one that is") {
  const Tensor a = of_elements({0.5, -1, 2});
  const Tensor b = a.clone();
  Tape kept;
  const Var x = kept.parameter(a, "x");
  const Var loss = sum(sin(x * x) * exp(x));
  const Var unrelated = sum(exp(x));
  const auto first = adam();
  const auto second = adam();
  Tape cleared;
  for (int step = 0; step < 4; ++step) {
    if (step % 2 == 1) unrelated.item();
    const Gradients gradients = backward(loss);
    cleared.clear();
    const Var y = cleared.parameter(b, "x");
    const Gradients expected = backward(sum(sin(y * y) * exp(y)));
    CHECK(same_bits(gradients.loss(), expected.loss()));
    CHECK(same_bits(gradients[x], expected[y]));
    first->step(gradients);
    second->step(expected);
  }
}

TEST_CASE("programs in another precision notice changes too") {
  for (const bool is_eager : {false, true}) {
    Cubes cubes(precise(Precision{PrecisionKind::mixed}, is_eager ? eager() : lazy()));
    CHECK(cubes.second.item() == 36);
    CHECK(cubes.first.item() == 14);
    cubes.step();
    CHECK(cubes.first.item() == 14);
    if (is_eager) {
      check_error([&] { backward(cubes.second); }, {"weight", "Optimizer::step"});
    } else {
      const double sum = cubes.sum_of_cubes();
      CHECK(cubes.second.item() == 36);  // as it was computed
      CHECK(std::abs(backward(cubes.second).loss().item() - sum) < 0.1);
      CHECK(std::abs(cubes.second.item() - sum) < 0.1);
      evaluate(cubes.first);
      CHECK(std::abs(cubes.first.item() - 3.5) < 0.1);
    }
  }
}

TEST_CASE("a value that does not depend on a changed leaf stays") {
  Tape tape(eager());
  const Tensor weight = Tensor::ones({2});
  const Tensor other = Tensor::ones({2});
  const Var x = tape.parameter(weight);
  const Var y = tape.parameter(other);
  const Var of_y = exp(y);
  note_write(weight, "test");
  CHECK(backward(sum(of_y * x))[x].at(0) == std::exp(1.0F));
  CHECK(tape.outdated().empty());
}

TEST_CASE("every call that writes into a user's tensor is noticed") {
  const Tensor weight = of_elements({1, 2});
  const NamedTensors named{{"weight", weight}};
  nn::Parameters parameters;
  parameters.add("weight", weight);
  WeightAverage average = WeightAverage::equal();
  average.update({{"weight", of_elements({3, 4})}});
  const TemporaryFile file;
  save_training(file.path(), {{"weights", named}});
  LossScaler scaler(LossScalerOptions{});
  scaler.scale(Tape().constant(Tensor::scalar(1)));
  const auto gradients_of = [](const Tensor& tensor) {
    Tape own;
    const Var leaf = own.parameter(tensor);
    return backward(sum(leaf * leaf));
  };
  struct Call {
    std::string name;
    std::function<void()> run;
  };
  const Call calls[] = {
      {"Optimizer::step", [&] { sgd({.learning_rate = 0.5})->step(gradients_of(weight)); }},
      {"Parameters::load", [&] { parameters.load({{"weight", of_elements({5, 6})}}); }},
      {"load_training", [&] { load_training(file.path(), {{"weights", named}}); }},
      {"load_training", [&] { load_training(file.path(), {{"weights", parameters}}); }},
      {"WeightAverage::copy_to", [&] { average.copy_to(named); }},
      {"AveragedWeights", [&] { const AveragedWeights guard(average, named); }},
      {"minimize_lbfgs",
       [&] {
         const auto line = [](std::span<const Tensor> at) {
           return ValueAndGradients{at[0].at(0) * at[0].at(0), {at[0] * 2.0}};
         };
         minimize_lbfgs(std::vector<Tensor>{weight}, line);
       }},
      {"update_after_run",
       [&] {
         Tape own;
         const Var leaf = own.parameter(of_elements({7, 8}));
         own.update_after_run(weight, leaf * 2.0);
         backward(sum(leaf));
       }},
      {"LossScaler::unscale",
       [&] {
         Tape own;
         const Var leaf = own.parameter(of_elements({1, 2}));
         scaler.unscale(Gradients(Tensor::scalar(1), {{leaf, weight}}, {}));
       }},
      {"clip_by_norm", [&] { clip_by_norm(std::vector<Tensor>{weight}, 1e-3); }},
  };
  for (const auto& [name, run] : calls) {
    CAPTURE(name);
    weight.data<double>()[0] = 1;
    Tape tape(eager());
    const Var x = tape.parameter(weight, "weight");
    const Var y = exp(x);
    run();
    check_error([&] { evaluate(y); }, {"[exp]", "made from weight", "before " + name});
    // Recorded again, it is current.
    CHECK(same_bits(exp(x).value(), exp(weight)));
  }
}

TEST_CASE("a running statistic that is a leaf of its tape is noticed") {
  for (const bool is_eager : {false, true}) {
    Tape tape(is_eager ? eager() : lazy());
    const Tensor mean = Tensor::zeros({1}, DType::f64);
    const Var statistic = tape.constant(mean, "mean");
    const Var x = tape.parameter(Tensor::full({1}, 3, DType::f64), "x");
    const Var centred = sum(square(x - statistic));
    tape.update_after_run(mean, x, 0.5);
    CHECK(backward(centred)[x].at(0) == 6);
    if (is_eager) {
      check_error([&] { backward(centred); }, {"made from mean", "before update_after_run"});
    } else {
      CHECK(backward(centred)[x].at(0) == 3);
    }
  }
}

}  // namespace
}  // namespace palimpsest::outdated_test
