// Functions of the user that a run calls to record a step of a loop, and that ask for values.
#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/copying_operation.h"

namespace palimpsest::asking_steps_test {
namespace {

std::vector<double> numbers_in(const Tensor& tensor) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) numbers.push_back(tensor.at(i));
  return numbers;
}

bool are_near(std::span<const double> a, std::span<const double> b, double error) {
  return std::ranges::equal(a, b, [&](double one, double other) {
    return std::abs(one - other) <= error * (1 + std::abs(other));
  });
}

TEST_CASE("a derivative's direction may be a value that the body of a loop captures") {
  constexpr double w0 = 0.9;
  // The derivative of hvp(y, w, w) by w, where both arguments depend on w.
  const auto derivative_of = [](bool is_recorded_again, bool copies_direction, double at,
                                double* value) {
    Tape tape;
    const Var w = tape.parameter(Tensor::scalar(at, DType::f64));
    const Var y = scan(tape.constant(Tensor::scalar(0.7, DType::f64)), 3,
                       [&](const Var& x, const StepNumber& n) {
                         if (is_recorded_again && n < 0) return x;
                         return sin(x * w) + 0.3 * x;
                       });
    const Var product = hvp(y, w, copies_direction ? w * 1.0 : w);
    *value = product.item();
    return gradient(product, w).item();
  };
  double expected = 0;
  const double slope = derivative_of(false, true, w0, &expected);
  for (const bool is_recorded_again : {false, true}) {
    for (const bool copies_direction : {false, true}) {
      double value = 0;
      const double found = derivative_of(is_recorded_again, copies_direction, w0, &value);
      CHECK(std::abs(value - expected) < 1e-12);
      CHECK(std::abs(found - slope) < 1e-11);
      constexpr double step = 1e-5;
      double after = 0;
      double before = 0;
      derivative_of(is_recorded_again, copies_direction, w0 + step, &after);
      derivative_of(is_recorded_again, copies_direction, w0 - step, &before);
      CHECK(std::abs((after - before) / (2 * step) - found) < 1e-6);
    }
  }
}

TEST_CASE("second derivatives of a loop whose later steps are the first to read a captured value") {
  const auto products_of = [](bool is_unrolled) {
    Tape tape;
    const Var w = tape.parameter(Tensor::scalar(0.9, DType::f64));
    const Var c = tape.parameter(Tensor::scalar(-0.4, DType::f64));
    const auto step = [&](const Var& x, std::int64_t n) {
      return n % 2 == 1 ? sin(x * c) : sin(x) + 0.3 * x;
    };
    Var y = w;
    if (is_unrolled) {
      for (std::int64_t n = 0; n < 3; ++n) y = step(y, n);
    } else {
      y = scan(w, 3, [&](const Var& x, const StepNumber& n) { return step(x, n); },
               {.captured = {c}});
    }
    std::vector<double> products;
    for (const Var& direction : {w, c, w * 1.0}) {
      const Var product = hvp(y, w, direction);
      products.push_back(product.item());
      products.push_back(gradient(product, c).item());
    }
    products.push_back(jvp(y, w, w).item());
    products.push_back(hessian(y, w).item());
    return products;
  };
  CHECK(are_near(products_of(false), products_of(true), 1e-12));
}

struct Asked {
  Tape& tape;
  std::shared_ptr<Evaluator> evaluator;
  Var w, h, other;
};

/// Questions of functions. The answer is a number, or a `TapeError` while a run waits for them.
std::vector<std::pair<const char*, std::function<void(const Asked&)>>> questions() {
  return {
      {"computed", [](const Asked& a) { a.h.value(); }},
      {"not computed", [](const Asked& a) { a.other.value(); }},
      {"recorded", [](const Asked& a) { sum(a.other).item(); }},
      {"evaluate", [](const Asked& a) { evaluate(a.other); }},
      {"jacobian", [](const Asked& a) { jacobian(a.other, a.h); }},
      {"backward", [](const Asked& a) { backward(sum(tanh(matmul(a.other, a.w)))); }},
      {"value on another tape of the evaluator",
       [](const Asked& a) {
         Tape tape(a.evaluator);
         sum(exp(tape.parameter(Tensor::ones({2})))).item();
       }},
      {"gradient on another tape of the evaluator",
       [](const Asked& a) {
         Tape tape(a.evaluator);
         backward(sum(exp(tape.parameter(Tensor::ones({2})))));
       }},
  };
}

TEST_CASE("functions that a run calls to record a step get values or a TapeError") {
  const std::vector<std::function<std::shared_ptr<Evaluator>()>> evaluators = {
      [] { return nullptr; },
      [] { return lazy(); },
      [] { return eager(); },
      [] { return hybrid(); },
      [] { return eager({.memory_budget = 64_KiB}); },
      [] { return precise({PrecisionKind::single}); },
      [] { return precise({PrecisionKind::single}, eager()); },
      [] { return precise({}); },
  };
  int refused = 0;
  for (const auto& make : evaluators) {
    for (const auto& [name, ask] : questions()) {
      for (const bool is_recorded_again : {false, true}) {
        for (const bool asks_in_body : {false, true}) {
          for (const int way : {0, 1, 2}) {
            CAPTURE(&make - evaluators.data(), name, is_recorded_again, asks_in_body, way);
            const auto evaluator = make();
            if (evaluator == nullptr && std::string_view(name).ends_with("evaluator")) continue;
            const bool is_mixed = &make == &evaluators.back();
            bool asks = true;
            const auto found = [&, &ask = ask]() -> std::vector<double> {
              Tape tape(evaluator);
              const Var w = tape.parameter(Tensor::from({0.5f, -1.0f, 0.25f, 2.0f}, {2, 2}));
              const Var h = tape.constant(Tensor::from({1.0f, 2.0f}, {1, 2}));
              const Asked asked{tape, evaluator, w, h, exp(h)};
              const auto copy = copying_operation([&](const Pullback& p) {
                if (asks && !asks_in_body) ask(asked);
                return p.adjoint();
              });
              const Var y = scan(h, 3, [&](const Var& x, const StepNumber& n) {
                if (asks && asks_in_body) ask(asked);
                const Var z = copy({matmul(x, w)});
                return is_recorded_again && n % 2 != 0 ? sin(z) : tanh(z);
              });
              const Var loss = sum(square(y));
              if (way == 0) return numbers_in(backward(loss)[w]);
              if (way == 1) return numbers_in(gradient(loss, w).value());
              return numbers_in(hessian(loss, w));
            };
            asks = false;
            const std::vector<double> expected = found();
            asks = true;
            try {
              const std::vector<double> numbers = found();
              // In a mixed precision, steps that are recorded one by one have other casts.
              const double error = is_mixed && asks_in_body ? 0.02 : 0;
              CHECK(are_near(numbers, expected, error));
            } catch (const TapeError&) {
              ++refused;
            } catch (const ArgumentError&) {  // bodies cannot start runs of their tape
              ++refused;
            }
            asks = false;
            CHECK(found() == expected);
          }
        }
      }
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("random numbers of a step's derivative are others than those of the step") {
  for (const bool is_recorded_again : {false, true}) {
    for (const bool is_precise : {false, true}) {
      const auto evaluator = [&]() -> std::shared_ptr<Evaluator> {
        return is_precise ? precise({PrecisionKind::single}) : lazy();
      };
      const auto copy = copying_operation(
          [](const Pullback& p) { return p.adjoint() * normal(p.tape(), Shape{8}); });
      const auto record = [&](Tape& tape, const Var& w) {
        return scan(w, 1, [&](const Var& x, const StepNumber& n) {
          if (is_recorded_again && n > 5) return x;
          return copy({x + normal(tape, Shape{8})});
        });
      };
      Tape tape(evaluator());
      const Var w = tape.parameter(Tensor::zeros({8}));
      const Var end = record(tape, w);
      const Gradients gradients = backward(sum(end));
      const Tensor noise = end.value();
      for (std::int64_t i = 0; i < 8; ++i) CHECK(gradients[w].at(i) != noise.at(i));
    }
  }
}

}  // namespace
}  // namespace palimpsest::asking_steps_test
