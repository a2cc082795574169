#include <cmath>
#include <stdexcept>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::body_gradient_test {
namespace {

bool is_near(double found, double expected) {
  return std::abs(found - expected) <= 1e-10 * (1 + std::abs(expected));
}

TEST_CASE("a derivative in the body of a loop names a path that is outside") {
  Tape tape;
  const Var x = tape.parameter(number(3));
  const Var w = tape.parameter(number(2));
  const Var z = x * x;
  const Var start = tape.constant(number(0));
  const auto run = [&](const auto& f) {
    return scan(start, 1, [&](const Var& u, const StepNumber&) { return u + f(u); }).value();
  };
  const std::initializer_list<std::string> words{"[gradient]", "the body of a loop", "parameter",
                                                 "depends on it outside of the body",
                                                 "compute the gradient before the loop"};
  check_error([&] { run([&](const Var&) { return gradient(z, x); }); }, words);
  check_error([&] { run([&](const Var&) { return gradient(w * sin(z) + x, x); }); }, words);
  check_error([&] { run([&](const Var& u) { return hvp(z, x, u + 1.0); }); }, words);
  check_error([&] { run([&](const Var& u) { return u + jacobian(z, x).item<double>(); }); }, words);
  check_error(
      [&] {
        run([&](const Var& u) {
          return scan(u, 2, [&](const Var& v, const StepNumber&) { return v + gradient(z, x); });
        });
      },
      words);
  check_error(
      [&] {
        const auto goes_on = [](const Var& u) { return u < 1.0; };
        while_loop(start, goes_on,
                   [&](const Var& u, const StepNumber&) { return u + gradient(z, x); });
      },
      words);
  check_error(
      [&] {
        scan(start, 3, [&](const Var& u, const StepNumber& n) {
          return n == 2 ? gradient(z, x) : u + z + x;
        }).value();
      },
      words);

  // These have no path outside.
  const auto value = [&](const auto& f) { return run(f).template item<double>(); };
  CHECK(value([&](const Var&) { return gradient(x * x, x); }) == 6);
  CHECK(value([&](const Var&) { return gradient(z * w, w); }) == 9);
  CHECK(value([&](const Var&) { return gradient(z * w, z); }) == 2);
  CHECK(value([&](const Var&) { return gradient(x * stop_gradient(z), x); }) == 9);
  const Var apart = stop_gradient(z);
  CHECK(value([&](const Var&) { return gradient(x * apart, x); }) == 9);
}

TEST_CASE("a body that catches everything captures late values") {
  Tape tape;
  const Var x = tape.parameter(wave(4));
  const Var w = tape.parameter(number(2));
  int caught = 0;
  const auto step = [&](const Var& u) {
    return u + checkpoint([&](const Var& q) { return q * w; }, u);
  };
  const Var y = scan(x, 2, [&](const Var& u, const StepNumber&) {
    try {
      return step(u);
    } catch (...) {
      ++caught;
      return u * 100.0;
    }
  });
  const Var other = scan(x, 2, [&](const Var& u, const StepNumber&) {
    try {
      return step(u);
    } catch (...) {
      ++caught;
      throw std::runtime_error("in place of the other one");
    }
  });
  CHECK(caught == 2);
  CHECK(same_bits(y.value(), (3.0 * (3.0 * x)).value()));
  CHECK(same_bits(other.value(), y.value()));
  CHECK(is_near(backward(sum(y))[w].item<double>(), 6 * sum(x).value().item<double>()));
  // Errors of the body itself pass.
  CHECK_THROWS_AS(scan(x, 2,
                       [&](const Var& u, const StepNumber&) -> Var {
                         step(u);
                         throw std::runtime_error("of the body");
                       }),
                  std::runtime_error);
}

/// A loop whose steps are recorded one by one and capture a value.
Var turning(const Var& x, const Var& w) {
  return scan(x, 5, [w](const Var& u, const StepNumber& n) {
    return (std::int64_t(n) % 3 == 1 ? sin(u) * w : cos(u) * w) + u;
  });
}

Var turning_until(const Var& x, const Var& w) {
  const auto goes_on = [](const Var& u) { return sum(u * u) < 7.0; };
  return while_loop(x, goes_on, [w](const Var& u, const StepNumber& n) {
    return (std::int64_t(n) % 3 == 1 ? sin(u) * w : cos(u) * w) + u;
  });
}

TEST_CASE("second derivatives in one run of steps recorded one by one that capture a value") {
  for (const bool has_evaluator : {false, true}) {
    for (const auto loop : {turning, turning_until}) {
      const std::shared_ptr<Evaluator> evaluator = has_evaluator ? lazy() : nullptr;
      Tape tape(evaluator);
      const Var x = tape.parameter(wave(3));
      const Var w = tape.parameter(number(0.7));
      const Var end = loop(x, w);
      const Var energy = sum(end * end);
      const Tensor found = hessian(energy, x);
      for (std::int64_t i = 0; i < 3; ++i) {
        Tensor unit = Tensor::zeros(Shape{3}, DType::f64);
        unit.data<double>()[static_cast<std::size_t>(i)] = 1;
        const Tensor row = hvp(energy, x, tape.constant(unit)).value();
        for (std::int64_t k = 0; k < 3; ++k) {
          const double expected = row.data<double>()[static_cast<std::size_t>(k)];
          CHECK(is_near(found.data<double>()[static_cast<std::size_t>(3 * i + k)], expected));
        }
      }
      const Var slope = gradient(energy, w);
      const double bent = gradient(slope, w).value().item<double>();
      CHECK(is_near(jacobian(slope, w).item<double>(), bent));
      CHECK(is_near(backward(slope)[w].item<double>(), bent));
    }
  }
}

TEST_CASE("a checkpoint still rejects steps recorded one by one that capture a value") {
  Tape tape;
  const Var x = tape.parameter(wave(3));
  const Var w = tape.parameter(number(0.7));
  const auto refused = [&](const Composition& f) {
    check_error([&] { checkpoint(f, {&x, 1}); }, {"[scan]", "a loop in a checkpoint"});
  };
  refused([&](std::span<const Var> xs) { return std::vector<Var>{turning(xs[0], w)}; });
  const Var slope = gradient(sum(turning(x, w)), x);
  refused([&](std::span<const Var>) { return std::vector<Var>{gradient(sum(slope), w)}; });
}

}  // namespace
}  // namespace palimpsest::body_gradient_test
