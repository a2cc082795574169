#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/plan.h"
#include "checkpoint/reverse/reverse.h"
#include "tests/temporary_directory.h"

namespace palimpsest::tests {

using Numbers = std::vector<double>;

inline bool same_bits(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

/// A chain of nonlinear steps on a row of numbers. The loss is the sum of the squares of the last
/// state and, weighted, of the first number of each state. It depends on one parameter.
struct Row {
  double parameter = 0.7;
  std::uint64_t steps = 10;
  std::uint64_t advanced = 0;  // calls of `advance`
  double loss = 0;
  double gradient = 0;  // with respect to the parameter

  Numbers start(std::size_t size) const {
    Numbers u(size);
    for (std::size_t i = 0; i < size; ++i) u[i] = std::cos(0.3 * static_cast<double>(i) + 1);
    return u;
  }

  void advance(Numbers& u, std::uint64_t step) {
    ++advanced;
    const Numbers old = u;
    for (std::size_t i = 0; i < u.size(); ++i) {
      u[i] = std::sin(parameter * old[i] + 0.5 * old[(i + 1) % u.size()] + phase(step));
    }
  }

  void reverse(const Numbers& u, Numbers& adjoint, std::uint64_t step) {
    loss += weight(step) * u[0] * u[0];
    const Numbers next = std::exchange(adjoint, Numbers(u.size()));
    for (std::size_t i = 0; i < u.size(); ++i) {
      const std::size_t j = (i + 1) % u.size();
      const double slope = next[i] * std::cos(parameter * u[i] + 0.5 * u[j] + phase(step));
      adjoint[i] += parameter * slope;
      adjoint[j] += 0.5 * slope;
      gradient += u[i] * slope;
    }
    adjoint[0] += 2 * weight(step) * u[0];
  }

  Numbers seed(const Numbers& u) {
    Numbers adjoint(u.size());
    for (std::size_t i = 0; i < u.size(); ++i) {
      loss += u[i] * u[i];
      adjoint[i] = 2 * u[i];
    }
    return adjoint;
  }

  ReverseFunctions<Numbers> functions(bool knows_length = true) {
    return {.advance = [this](Numbers& u, std::uint64_t n) { advance(u, n); },
            .reverse = [this](Numbers& u, Numbers& a, std::uint64_t n) { reverse(u, a, n); },
            .seed = [this](Numbers& u) { return seed(u); },
            .done = knows_length ? std::function<bool(const Numbers&, std::uint64_t)>()
                                 : [this](const Numbers&, std::uint64_t n) { return n == steps; },
            .accumulated = {named("loss", loss), named("gradient", gradient)},
            .inputs = {named("parameter", parameter)}};
  }

  /// The adjoint of the first state from all states.
  Numbers plain(std::size_t size) {
    std::vector<Numbers> states{start(size)};
    for (std::uint64_t n = 0; n < steps; ++n) {
      states.push_back(states.back());
      advance(states.back(), n);
    }
    Numbers adjoint = seed(states.back());
    for (std::uint64_t n = steps; n > 0; --n) reverse(states[n - 1], adjoint, n - 1);
    return adjoint;
  }

 private:
  static double phase(std::uint64_t step) { return 0.01 * static_cast<double>(step % 97); }
  static double weight(std::uint64_t step) { return step % 3 == 0 ? 0.25 : 0; }
};

/// What a run of a `Row` found.
struct Found {
  std::optional<Numbers> adjoint;
  double loss = 0;
  double gradient = 0;
  ReverseReport report;

  bool operator==(const Found& other) const {
    return adjoint.has_value() == other.adjoint.has_value() &&
           (!adjoint || same_bits(*adjoint, *other.adjoint)) &&
           same_bits({loss, gradient}, {other.loss, other.gradient});
  }
};

inline Found plainly(std::uint64_t steps, std::size_t size) {
  Row row{.steps = steps};
  Numbers adjoint = row.plain(size);
  return {std::move(adjoint), row.loss, row.gradient, {}};
}

inline Found found_by_driver(std::uint64_t steps, std::size_t size, ReverseOptions options) {
  Row row{.steps = steps};
  ReverseDriver driver(row.functions(options.steps.has_value()), std::move(options));
  Numbers u = row.start(size);
  std::optional<Numbers> adjoint = driver.run(u);
  return {std::move(adjoint), row.loss, row.gradient, driver.report()};
}

/// The smallest feasible budget of a `Row`.
inline Bytes smallest_budget(std::size_t size, ReverseOptions options) {
  const TemporaryDirectory directory;
  options.memory_budget = 1;
  if (!options.spill.empty()) options.spill = directory.path();
  if (!options.resume.empty()) options.resume = directory.path();
  try {
    found_by_driver(10, size, options);
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
  return 0;
}

/// At least the bytes that are known of states on disk, one for each step. The smallest budget has
/// no room for them.
inline Bytes table_bytes(std::uint64_t steps) { return 1200 * static_cast<Bytes>(steps); }

/// A budget for so many states in memory.
inline Bytes budget_for(std::uint64_t states, std::size_t size, ReverseOptions options) {
  const Bytes smallest = smallest_budget(size, options);
  Row row;
  options.memory_budget = smallest + 1_MiB;
  const ReverseDriver driver(row.functions(options.steps.has_value()), options);
  Numbers u = row.start(size);
  const ReverseForecast forecast = driver.forecast(u);
  const auto more = static_cast<Bytes>(forecast.states_in_memory) - 1;
  if (more <= 0) return smallest;
  return smallest + (forecast.bytes - smallest) / more * (static_cast<Bytes>(states) - 1);
}

}  // namespace palimpsest::tests
