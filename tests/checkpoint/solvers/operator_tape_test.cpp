#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "autodiff/bytes.h"
#include "checkpoint/reverse/reverse.h"
#include "tests/catch.h"
#include "tests/checkpoint/solvers/sweep.h"

namespace reverse_operator_tape_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

/// A tape of scalars by overloaded operators, as in CoDiPack: each statement has up to two
/// arguments and the derivatives with respect to them.
class ScalarTape {
 public:
  using Index = std::uint32_t;
  struct Statement {
    std::array<Index, 2> arguments;
    std::array<double, 2> derivatives;
  };

  Index record(Index a, double da, Index b = 0, double db = 0) {
    statements_.push_back({{a, b}, {da, db}});
    return static_cast<Index>(statements_.size() - 1);
  }
  Index input() { return record(0, 0); }
  void clear() {
    statements_.resize(1);
    adjoints_.clear();
  }
  std::size_t bytes() const { return statements_.size() * (sizeof(Statement) + sizeof(double)); }

  double& adjoint(Index index) {
    adjoints_.resize(statements_.size());
    return adjoints_[index];
  }
  void evaluate() {
    for (std::size_t i = statements_.size(); i-- > 1;) {
      const auto& [arguments, derivatives] = statements_[i];
      const double adjoint = adjoints_[i];
      for (std::size_t k = 0; k < 2; ++k) adjoints_[arguments[k]] += derivatives[k] * adjoint;
    }
  }

 private:
  std::vector<Statement> statements_ = std::vector<Statement>(1);  // number 0 stands for none
  std::vector<double> adjoints_;
};

ScalarTape tape;

/// A number whose arithmetic is recorded.
struct Active {
  double value = 0;
  ScalarTape::Index index = 0;

  Active() = default;
  Active(double number) : value(number) {}
  Active(double number, ScalarTape::Index at) : value(number), index(at) {}
  friend Active operator+(const Active& a, const Active& b) {
    return {a.value + b.value, tape.record(a.index, 1, b.index, 1)};
  }
  friend Active operator-(const Active& a, const Active& b) {
    return {a.value - b.value, tape.record(a.index, 1, b.index, -1)};
  }
  friend Active operator*(const Active& a, const Active& b) {
    return {a.value * b.value, tape.record(a.index, b.value, b.index, a.value)};
  }
};

using std::sin;
Active sin(const Active& a) { return {std::sin(a.value), tape.record(a.index, std::cos(a.value))}; }

/// A pendulum with friction that is driven gently, by Heun's method. Written once for numbers and
/// active numbers.
template <class T>
struct Pendulum {
  T stiffness, friction;

  std::array<T, 2> slope(const std::array<T, 2>& y, double t) const {
    return {y[1], T(0.3 * std::cos(0.7 * t)) - friction * y[1] - stiffness * sin(y[0])};
  }
  std::array<T, 2> step(const std::array<T, 2>& y, std::uint64_t n) const {
    constexpr double h = 0.02;
    const double t = h * static_cast<double>(n);
    const auto a = slope(y, t);
    const auto b = slope({y[0] + h * a[0], y[1] + h * a[1]}, t + h);
    return {y[0] + 0.5 * h * (a[0] + b[0]), y[1] + 0.5 * h * (a[1] + b[1])};
  }
};

/// The loss of a state.
template <class T>
T square(const std::array<T, 2>& y) {
  return 0.02 * (y[0] * y[0]);
}

using State = std::array<double, 2>;

/// The sum of the losses of all states but the last one, and of its angle, with its gradient.
struct Problem {
  Pendulum<double> pendulum{1.3, 0.4};
  double loss = 0;
  State gradient{};  // of stiffness and friction
  std::size_t most_bytes = 0;

  static State start() { return {0.8, -0.3}; }

  void reverse_segment(State& y, State& adjoint, std::uint64_t first, std::uint64_t last) {
    tape.clear();
    const auto input = [](double value) { return Active{value, tape.input()}; };
    const Pendulum<Active> active{input(pendulum.stiffness), input(pendulum.friction)};
    const std::array<Active, 2> begin{input(y[0]), input(y[1])};
    std::array<Active, 2> end = begin;
    Active sum = 0;
    for (std::uint64_t n = first; n < last; ++n) {
      sum = sum + square(end);
      end = active.step(end, n);
    }
    most_bytes = std::max(most_bytes, tape.bytes());
    for (std::size_t k = 0; k < 2; ++k) tape.adjoint(end[k].index) = adjoint[k];
    tape.adjoint(sum.index) = 1;
    tape.evaluate();
    for (std::size_t k = 0; k < 2; ++k) adjoint[k] = tape.adjoint(begin[k].index);
    gradient[0] += tape.adjoint(active.stiffness.index);
    gradient[1] += tape.adjoint(active.friction.index);
    loss += sum.value;
  }

  ReverseFunctions<State> functions() {
    return {
        .advance = [this](State& y, std::uint64_t n) { y = pendulum.step(y, n); },
        .reverse_segment = [this](State& y, State& adjoint, std::uint64_t first,
                                  std::uint64_t last) { reverse_segment(y, adjoint, first, last); },
        .seed =
            [this](State& y) {
              loss += y[0];
              return State{1, 0};
            },
        .accumulated = {named("loss", loss), named("gradient", gradient)},
        .inputs = {named("stiffness", pendulum.stiffness), named("friction", pendulum.friction)}};
  }

  double forward(State y, std::uint64_t steps) const {
    double sum = 0;
    for (std::uint64_t n = 0; n < steps; ++n) {
      sum += square(y);
      y = pendulum.step(y, n);
    }
    return sum + y[0];
  }
};

bool is_near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::abs(b);
}

}  // namespace

TEST_CASE("reverse, operator tape: adjoint of 100,000 steps, taped in segments") {
  constexpr std::uint64_t steps = 100'000;
  Problem single;
  State y = Problem::start();
  const State by_step = sweep(single.functions(), y, steps);
  tape.clear();

  // Measured with one step; each of more steps takes less.
  const auto step_bytes = static_cast<Bytes>(single.most_bytes);
  Problem problem;
  const ReverseOptions options{
      .steps = steps, .memory_budget = 256_KiB, .tape_bytes_per_step = step_bytes};
  ReverseDriver driver(problem.functions(), options);
  const std::uint64_t segment = driver.forecast(y).segment_steps;
  const State adjoint = *driver.run(y);
  CHECK(segment > 10);
  CHECK(problem.most_bytes <= segment * static_cast<std::size_t>(step_bytes));
  CHECK(driver.report().peak_bytes <= options.memory_budget);
  CHECK(is_near(problem.loss, single.loss, 1e-12));
  for (std::size_t k = 0; k < 2; ++k) {
    CHECK(is_near(adjoint[k], by_step[k], 1e-12));
    CHECK(is_near(problem.gradient[k], single.gradient[k], 1e-12));
  }

  const double difference = central_difference(
      [&](double by) {
        Problem other;
        other.pendulum = {1.3 + by, 0.4 - by};
        return other.forward({0.8 + by, -0.3 + 2 * by}, steps);
      },
      1e-6);
  const double derivative = problem.gradient[0] - problem.gradient[1] + adjoint[0] + 2 * adjoint[1];
  CAPTURE(derivative, difference);
  CHECK(std::abs(difference) > 1e-2);
  CHECK(is_near(derivative, difference, 1e-6));
}

}  // namespace reverse_operator_tape_test
