#include <algorithm>
#include <cmath>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/strategy/reported/budgets.h"

// Reports of other libraries about checkpointed loops (docs/reported-elsewhere.md).

namespace palimpsest::reported_loops_test {
namespace {

using Catch::Matchers::WithinRel;

constexpr std::int64_t cells = 512;

Tensor start_of(std::int64_t size = cells) {
  return Tensor::uniform({size}, 3, 0.5, 1.5, DType::f64);
}

using Step = std::function<Var(const Var& state, const Var& captured, const StepNumber& n)>;
enum class Kind { scan, while_loop };

/// The gradients of a loss of the last state by the first state and by a captured value.
Gradients run_loop(Kind kind, int steps, const Step& step, const Tensor& captured,
                   Bytes budget = unlimited) {
  Tape tape;
  const Var u = tape.parameter(start_of(), "start"), c = tape.parameter(captured, "captured");
  Var end;
  if (kind == Kind::scan) {
    end = scan(u, steps, [&](const Var& x, const StepNumber& n) { return step(x, c, n); });
  } else {
    end =
        while_loop(
            std::vector<Var>{u},
            [steps](std::span<const Var>, const StepNumber& n) { return n.as(DType::i64) < steps; },
            [&](std::span<const Var> x, std::span<const Var>, const StepNumber& n) {
              return LoopStep{{step(x[0], c, n)}};
            })
            .state[0];
  }
  return backward(sum(square(end)), {.memory_budget = budget, .threads = 1});
}

/// Likewise, with each step recorded by itself: `step(state, captured, n)`.
template <class PlainStep>
Gradients run_steps(int steps, const PlainStep& step, const Tensor& captured) {
  Tape tape;
  const Var u = tape.parameter(start_of(), "start"), c = tape.parameter(captured, "captured");
  Var x = u;
  for (int n = 0; n < steps; ++n) x = step(x, c, n);
  return backward(sum(square(x)), {.threads = 1});
}

bool same_gradients(const Gradients& a, const Gradients& b) {
  bool same = a.entries().size() == b.entries().size() && same_bits(a.loss(), b.loss());
  for (std::size_t k = 0; same && k < a.entries().size(); ++k) {
    same = same_bits(a.entries()[k].gradient, b.entries()[k].gradient);
  }
  return same;
}

double distance(const Gradients& a, const Gradients& b) {
  double most = 0;
  for (std::size_t k = 0; k < a.entries().size(); ++k) {
    const Tensor &x = a.entries()[k].gradient, &y = b.entries()[k].gradient;
    double scale = 0;
    for (std::int64_t i = 0; i < x.elements(); ++i) scale = std::max(scale, std::abs(y.at(i)));
    for (std::int64_t i = 0; i < x.elements(); ++i)
      most = std::max(most, std::abs(x.at(i) - y.at(i)) / scale);
  }
  return most;
}

TEST_CASE("firedrake 5082, pyadjoint 260: a new control reaches the snapshots, at each budget") {
  // u starts with m, and u·u/u = u exactly, so J = 4·u² = 4·m² for the last u.
  std::vector<Bytes> budgets{unlimited};
  const auto gradient = [](Bytes budget) {
    Var control;
    Runner runner(Program::gradients(
        [&](Tape& tape) -> LossAndOutputs {
          control = tape.parameter(Tensor::full({cells}, 1.0, DType::f64), "m");
          const Var end =
              scan(control, 40, [](const Var& u, const StepNumber&) { return u * u / u; });
          return mean(4.0 * square(end));
        },
        {.memory_budget = budget, .threads = 1}));
    runner.run();
    CHECK(runner.gradients().loss().item() == 4);
    runner.bind(control, Tensor::full({cells}, 2.0, DType::f64));
    runner.run();
    return runner.gradients();
  };
  for (const Bytes budget : feasible_budgets(gradient, 6)) {
    CAPTURE(budget);
    const Gradients gradients = gradient(budget);
    CHECK(gradients.loss().item() == 16);
    CHECK_THAT(gradients.entries()[0].gradient.at(5) * cells, WithinRel(16.0, 1e-14));  // 8·m
  }
}

TEST_CASE("pyadjoint 211: a value that every third step reads is the right one, at each budget") {
  const Tensor captured = Tensor::uniform({cells}, 4, 0.1, 0.2, DType::f64);
  const auto plain = [](const Var& x, const Var& c, int n) {
    return n % 3 == 0 ? sin(x) + c * x : sin(x);
  };
  const Gradients expected = run_steps(20, plain, captured);
  // As a value, the step is recorded once; as a number, for every step.
  const std::vector<Step> steps{[](const Var& x, const Var& c, const StepNumber& n) {
                                  return sin(x) + where(equal(remainder(n.as(DType::i64), 3), 0),
                                                        c * x, 0.0);
                                },
                                [&](const Var& x, const Var& c, const StepNumber& n) {
                                  return plain(x, c, static_cast<int>(n));
                                }};
  for (const Step& step : steps) {
    const auto within = [&](Bytes budget) {
      return run_loop(Kind::scan, 20, step, captured, budget);
    };
    const Gradients whole = within(unlimited);
    CHECK(distance(whole, expected) < 1e-13);
    for (const Bytes budget : feasible_budgets(within, 8)) {
      CAPTURE(budget);
      CHECK(same_gradients(within(budget), whole));
    }
  }
}

TEST_CASE("Reactant.jl 3119: steps that index an array by their number read their own element") {
  constexpr int steps = 30;
  const Tensor table = Tensor::uniform({steps, cells}, 5, 0.5, 0.9, DType::f64);
  const Gradients expected = run_steps(
      steps, [](const Var& x, const Var& c, int n) { return sin(x * select(c, 0, n)); }, table);
  const Step step = [](const Var& x, const Var& c, const StepNumber& n) {
    return sin(x * reshape(index_select(c, 0, reshape(n.as(DType::i64), {1})), {cells}));
  };
  for (const Kind kind : {Kind::scan, Kind::while_loop}) {
    const auto within = [&](Bytes budget) { return run_loop(kind, steps, step, table, budget); };
    for (const Bytes budget : feasible_budgets(within, 3)) {
      CAPTURE(static_cast<int>(kind), budget);
      CHECK(distance(within(budget), expected) < 1e-13);
    }
  }

  using Numbers = std::vector<double>;
  const auto at = [&](std::uint64_t n, std::size_t i) {
    return table.at(static_cast<std::int64_t>(n) * cells + static_cast<std::int64_t>(i));
  };
  const ReverseFunctions<Numbers> functions{.advance =
                                                [&](Numbers& u, std::uint64_t n) {
                                                  for (std::size_t i = 0; i < u.size(); ++i)
                                                    u[i] = std::sin(u[i] * at(n, i));
                                                },
                                            .reverse =
                                                [&](Numbers& u, Numbers& adjoint, std::uint64_t n) {
                                                  for (std::size_t i = 0; i < u.size(); ++i)
                                                    adjoint[i] *=
                                                        std::cos(u[i] * at(n, i)) * at(n, i);
                                                },
                                            .seed =
                                                [](Numbers& u) {
                                                  Numbers adjoint(u);
                                                  for (double& one : adjoint) one *= 2;
                                                  return adjoint;
                                                }};
  for (const Bytes budget : {64_KiB, 1_MiB}) {
    ReverseDriver driver(functions, ReverseOptions{.steps = steps, .memory_budget = budget});
    const Tensor start = start_of();
    Numbers u(start.data<double>().begin(), start.data<double>().end());
    const std::optional<Numbers> adjoint = driver.run(u);
    REQUIRE(adjoint.has_value());
    const Tensor& gradient = expected.entries()[0].gradient;
    for (std::size_t i = 0; i < u.size(); ++i) {
      CHECK_THAT((*adjoint)[i], WithinRel(gradient.at(static_cast<std::int64_t>(i)), 1e-12));
    }
  }
}

TEST_CASE("Enzyme-JAX 2936: the peak does not jump where a number divides the steps") {
  const Step step = [](const Var& x, const Var& c, const StepNumber&) { return sin(x) + c * x; };
  const Tensor captured = Tensor::full({cells}, 0.1, DType::f64);
  const Bytes state = cells * 8;
  const Bytes budget = 30 * state;
  Bytes least = unlimited, most = 0;
  for (int steps = 99; steps <= 144; ++steps) {
    CAPTURE(steps);
    const Report report = run_loop(Kind::scan, steps, step, captured, budget).report();
    CHECK(report.measured_peak <= budget);
    least = std::min(least, report.measured_peak);
    most = std::max(most, report.measured_peak);
  }
  CHECK(most - least < 2 * state);
}

/// The fewest calls of `advance` that reverse a chain with this many states held at a time, the
/// first one among them (Griewank and Walther, 2000): every step once for the way up, and again as
/// the binomial schedule says.
std::uint64_t binomial_advances(std::uint64_t steps, std::uint64_t states) {
  // t(l, c) = min over the place k of the next state: k + t(l − k, c − 1) + t(k, c).
  std::vector<std::vector<std::uint64_t>> t(steps + 1, std::vector<std::uint64_t>(states + 1, 0));
  for (std::uint64_t l = 2; l <= steps; ++l) {
    t[l][1] = l * (l - 1) / 2;
    for (std::uint64_t c = 2; c <= states; ++c) {
      t[l][c] = UINT64_MAX;
      for (std::uint64_t k = 1; k < l; ++k)
        t[l][c] = std::min(t[l][c], k + t[l - k][c - 1] + t[k][c]);
    }
  }
  return t[steps][states];
}

TEST_CASE(
    "Enzyme-JAX 2721: as many steps are run as the binomial schedule needs, for each length and "
    "number of states") {
  constexpr std::size_t size = 40;
  for (const std::uint64_t states : {1, 2, 3, 5, 8}) {
    for (const std::uint64_t steps : {2, 3, 7, 12, 25, 40, 63}) {
      CAPTURE(states, steps);
      ReverseOptions options{.steps = steps};
      options.memory_budget = tests::budget_for(states, size, options);
      const tests::Found found = tests::found_by_driver(steps, size, options);
      CHECK(found.report.states_in_memory <= states);

      // the schedule.
      CHECK(found.report.steps_advanced == binomial_advances(steps + 1, states));
    }
  }
}

TEST_CASE(
    "Checkpointing.jl 88: short loops of known and unknown length have the bits of no budget") {
  const Step step = [](const Var& x, const Var& c, const StepNumber& n) {
    return sin(x + 0.01 * n.as(DType::f64)) + c * x;
  };
  const Tensor captured = Tensor::full({cells}, 0.3, DType::f64);
  for (const Kind kind : {Kind::scan, Kind::while_loop}) {
    for (const int steps : {0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 24, 40}) {
      const auto within = [&](Bytes budget) {
        return run_loop(kind, steps, step, captured, budget);
      };
      const Gradients whole = within(unlimited);
      for (const Bytes budget : feasible_budgets(within, 4)) {
        CAPTURE(static_cast<int>(kind), steps, budget);
        CHECK(same_gradients(within(budget), whole));
      }
    }
  }
}

TEST_CASE(
    "Checkpointing.jl 65: a last step that is cut short has the same gradient with a schedule") {
  constexpr double dt = 0.3, end = 4.0;  // 13 whole steps, and one of a third
  const auto run = [&](Bytes budget) {
    Tape tape;
    const Var u = tape.parameter(start_of(), "start"),
              rate = tape.parameter(Tensor::full({}, 0.4, DType::f64), "rate");
    const Var t = tape.constant(Tensor::zeros({}, DType::f64));
    const WhileResult result = while_loop(
        std::vector<Var>{u, t},
        [](std::span<const Var> x, const StepNumber&) { return x[1] < end; },
        [&](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
          const Var next = minimum(x[1] + dt, end);
          return LoopStep{{x[0] + (next - x[1]) * rate * sin(x[0]), next}};
        });
    return backward(sum(result.state[0]), {.memory_budget = budget, .threads = 1});
  };
  const Gradients whole = run(unlimited);
  double gradient = 0;  // by the rate, by hand
  const Tensor start = start_of();
  for (std::int64_t i = 0; i < cells; ++i) {
    double x = start.at(i), by_rate = 0;
    for (double t = 0; t < end;) {
      const double next = std::min(t + dt, end);
      by_rate += (next - t) * (std::sin(x) + 0.4 * std::cos(x) * by_rate);
      x += (next - t) * 0.4 * std::sin(x);
      t = next;
    }
    gradient += by_rate;
  }
  CHECK_THAT(whole.entries()[1].gradient.item(), WithinRel(gradient, 1e-12));
  for (const Bytes budget : feasible_budgets(run, 6)) {
    CAPTURE(budget);
    CHECK(same_gradients(run(budget), whole));
  }
}

}  // namespace
}  // namespace palimpsest::reported_loops_test
