// Rows of `ReverseDriver`: its overhead on steps that do nothing, the steps that it advances again,
// and two tiers against the optimum. The last row compares a run that is divided into jobs with one
// job.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "benchmarks/claims.h"
#include "checkpoint/chains/binomial.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

/// Steps that do nothing but count, and are checked by their sum.
struct Empty {
  std::uint64_t steps = 0;

  ReverseFunctions<double> functions(bool knows_length) const {
    return {.advance = [](double& u, std::uint64_t) { u += 1; },
            .reverse = [](double& u, double& adjoint, std::uint64_t) { adjoint += u; },
            .seed = [](double&) { return 0.0; },
            .done = knows_length
                        ? std::function<bool(const double&, std::uint64_t)>()
                        : [last = steps](const double&, std::uint64_t n) { return n == last; }};
  }

  ReverseReport run(ReverseOptions options) const {
    ReverseDriver driver(functions(options.steps.has_value()), std::move(options));
    double u = 0;
    const double sum = *driver.run(u);
    const auto n = static_cast<double>(steps);
    if (sum != n * (n - 1) / 2) throw InternalError("the driver reversed other steps");
    return driver.report();
  }
};

/// The budget with which the driver keeps so many states of 8 bytes.
Bytes budget_for(std::uint64_t states, ReverseOptions options = {}) {
  const Empty chain{.steps = 10};
  const auto states_in = [&](Bytes budget) {
    options.memory_budget = budget;
    options.steps = 1'000'000;
    double u = 0;
    return ReverseDriver(chain.functions(true), options).forecast(u).states_in_memory;
  };
  Bytes low = 1_KiB;
  for (Bytes step = 1_GiB; step > 0; step /= 2) {
    const auto fits = [&] {
      try {
        return states_in(low + step) < states;
      } catch (const EnvironmentError&) {
        return true;
      }
    };
    if (fits()) low += step;
  }
  return low + 1;
}

void empty_steps(State& state) {
  const Empty chain{.steps = 200'000};
  const auto states = static_cast<std::uint64_t>(state.range(0));
  const ReverseOptions options{.steps = chain.steps, .memory_budget = budget_for(states)};
  ReverseReport report;
  for (auto _ : state) report = chain.run(options);
  state.counters["calls"] = static_cast<double>(report.steps_advanced + report.steps_reversed);
  state.counters["steps"] = static_cast<double>(chain.steps);
}
BENCHMARK(empty_steps)->Arg(50)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

void known_length(State& state) {
  const auto steps = static_cast<std::uint32_t>(state.range(0));
  const auto states = static_cast<std::uint32_t>(state.range(1));
  const Empty chain{.steps = steps};
  const ReverseOptions options{.steps = steps, .memory_budget = budget_for(states)};
  ReverseReport report;
  for (auto _ : state) report = chain.run(options);
  const std::uint64_t closed = binomial_forward_steps(steps + 1, states) - 2 * steps - 1;
  state.counters["again"] = static_cast<double>(report.steps_advanced_again);
  state.counters["more"] =
      static_cast<double>(report.steps_advanced_again) - static_cast<double>(closed);
}
BENCHMARK(known_length)->Args({1'000, 5})->Args({1'000, 20})->Args({100'000, 100});

void unknown_length(State& state) {
  const Empty chain{.steps = static_cast<std::uint64_t>(state.range(0))};
  const auto states = static_cast<std::uint64_t>(state.range(1));
  const ReverseOptions options{.memory_budget = budget_for(states)};
  ReverseReport report;
  for (auto _ : state) report = chain.run(options);
  state.counters["again"] = static_cast<double>(report.steps_advanced_again);
}
BENCHMARK(unknown_length)
    ->Args({100, 10})
    ->Args({500, 5})
    ->Args({500, 20})
    ->Args({1'000, 20})
    ->Args({5'000, 50});

/// The least cost of reversing `steps` steps with `slots` states in memory, any number on disk, and
/// state 0 in neither (Aupy, Herrmann, Hovland and Robert, 2016). By dynamic programming.
double least_cost(std::uint32_t steps, std::uint32_t slots, DiskCosts cost) {
  const std::vector<double> row(steps + 1, std::numeric_limits<double>::infinity());
  std::vector<std::vector<double>> loose(slots + 1, row);
  auto memory = loose;
  auto disk = loose;
  for (std::uint32_t s = 0; s <= slots; ++s) {
    const auto from_disk = [&](std::uint32_t n) {
      return s > 0 ? std::min(disk[s][n], memory[s - 1][n]) : disk[s][n];
    };
    loose[s][1] = memory[s][1] = disk[s][1] = 1;
    for (std::uint32_t n = 2; n <= steps; ++n) {
      for (std::uint32_t m = 1; m < n; ++m) {
        const double rest = m + loose[s][n - m];
        memory[s][n] = std::min(memory[s][n], rest + memory[s][m]);
        disk[s][n] = std::min(disk[s][n], rest + cost.read + from_disk(m));
      }
      loose[s][n] = cost.write + from_disk(n);
      if (s > 0) loose[s][n] = std::min(loose[s][n], memory[s - 1][n]);
    }
  }
  return loose[slots][steps];
}

void two_tiers(State& state) {
  const Empty chain{.steps = 1'000};
  const DiskCosts costs{static_cast<double>(state.range(0)), static_cast<double>(state.range(0))};
  const std::string directory = std::filesystem::temp_directory_path();
  ReverseOptions options{.steps = chain.steps,
                         .memory_budget = 1_MiB,
                         .largest_state = 128_KiB,
                         .spill = directory,
                         .disk_costs = costs};
  double u = 0;
  const ReverseForecast forecast = ReverseDriver(chain.functions(true), options).forecast(u);
  ReverseReport report;
  for (auto _ : state) report = chain.run(options);
  const auto cost = static_cast<double>(report.steps_advanced + chain.steps + 1) +
                    costs.write * static_cast<double>(report.disk_writes) +
                    costs.read * static_cast<double>(report.disk_reads);
  const double least = least_cost(static_cast<std::uint32_t>(chain.steps) + 1,
                                  static_cast<std::uint32_t>(forecast.states_in_memory), costs);
  state.counters["states"] = static_cast<double>(forecast.states_in_memory);
  state.counters["of_optimum"] = cost / least;
  const bool is_exact = report.steps_advanced_again == forecast.steps_advanced_again &&
                        report.disk_writes == forecast.disk_writes &&
                        report.disk_reads == forecast.disk_reads;
  state.counters["as_forecast"] = is_exact;
}
BENCHMARK(two_tiers)->Arg(1)->Arg(5)->Arg(30)->Iterations(3)->Unit(benchmark::kMillisecond);

/// Steps of some 100 microseconds, whose adjoint is their transpose.
struct Smoothing {
  static constexpr std::size_t size = 1 << 15;
  static constexpr Bytes budget = 3_MiB;
  std::uint64_t steps;

  static void smooth(std::vector<double>& u) {
    double before = u.back();
    for (std::size_t i = 0; i < size; ++i) {
      const double now = u[i];
      u[i] = 0.5 * now + 0.25 * before + 0.25 * u[i + 1 < size ? i + 1 : 0];
      before = now;
    }
  }

  static ReverseFunctions<std::vector<double>> functions() {
    using Numbers = std::vector<double>;
    return {.advance = [](Numbers& u, std::uint64_t) { smooth(u); },
            .reverse =
                [](Numbers& u, Numbers& a, std::uint64_t n) {
                  a[n % size] += u[n % size];
                  smooth(a);
                },
            .seed = [](Numbers& u) { return u; }};
  }

  /// Seconds, and the adjoint if the run ended.
  std::pair<double, std::optional<std::vector<double>>> run(ReverseOptions options) const {
    using Numbers = std::vector<double>;
    options.steps = steps;
    options.memory_budget = budget;
    Numbers u(size);
    for (std::size_t i = 0; i < size; ++i) u[i] = std::sin(0.01 * static_cast<double>(i));
    const auto start = std::chrono::steady_clock::now();
    ReverseDriver driver(functions(), options);
    std::optional<Numbers> adjoint = driver.run(u);
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
            std::move(adjoint)};
  }
};

/// A chain whose run takes about so long. Longer chains take more calls for each step.
Smoothing chain_of(double seconds) {
  const auto calls_of = [](std::uint64_t steps) {
    std::vector<double> u(Smoothing::size);
    const ReverseOptions options{.steps = steps, .memory_budget = Smoothing::budget};
    const ReverseForecast forecast = ReverseDriver(Smoothing::functions(), options).forecast(u);
    return static_cast<double>(2 * steps + forecast.steps_advanced_again);
  };
  const Smoothing trial{.steps = 10'000};
  const double calls = calls_of(trial.steps) * seconds / trial.run({}).first;
  std::uint64_t steps = trial.steps;
  for (std::uint64_t more = 1 << 24; more > 0; more /= 2) {
    if (calls_of(steps + more) < calls) steps += more;
  }
  return {.steps = steps};
}

/// Least seconds of each of ten jobs. Long runs have jobs of hours; short ones show the cost of a
/// job the more.
double job_seconds() {
  const char* const given = std::getenv("PALIMPSEST_JOB_SECONDS");
  return given != nullptr ? std::stod(given) : 2;
}

/// A run at once and as ten jobs.
void jobs(State& state) {
  const std::string directory = std::filesystem::temp_directory_path() / "palimpsest-bench-jobs";
  std::filesystem::remove_all(directory);
  const double longer = 1.15;  // processors do not always run at the same rate
  const Smoothing chain = chain_of(longer * 10 * job_seconds());
  for (auto _ : state) {
    const auto [once, expected] = chain.run({});
    double all = 0;
    int runs = 0;
    std::optional<std::vector<double>> found;
    for (; !found; ++runs) {
      auto [seconds, adjoint] =
          chain.run({.resume = directory,
                     .tag = "jobs",
                     .record_every = std::chrono::hours(1),
                     .stop_after = std::chrono::duration<double>(once / 9.8)});
      all += seconds;
      found = std::move(adjoint);
    }
    state.SetIterationTime(once);
    state.counters["jobs"] = runs;
    state.counters["ratio"] = all / once;
    state.counters["same_bits"] = found == expected;
  }
  std::filesystem::remove_all(directory);
}
BENCHMARK(jobs)->UseManualTime()->Iterations(1)->Unit(benchmark::kSecond);

void claim(const Results& results, Claims& claims) {
  for (const std::string states : {"50", "1000", "10000"}) {
    const std::string name = "empty_steps/" + states;
    claims.at_most("overhead for each call of a step that does nothing, with " + states + " states",
                   100, 1e9 * results.cpu_seconds(name) / results.counter(name, "calls"), "ns");
  }
  for (const std::string chain : {"1000/5", "1000/20", "100000/100"}) {
    claims.at_most("steps advanced again beyond the closed form, steps/states " + chain, 0,
                   results.counter("known_length/" + chain, "more"), "steps");
  }
  struct Row {
    const char* chain;
    double again;
  };
  for (const auto& [chain, again] : {Row{"100/10", 126},
                                     {"500/5", 2149},
                                     {"500/20", 750},
                                     {"1000/20", 1750},
                                     {"5000/50", 8626}}) {
    claims.at_most("steps advanced again, of an unknown number, steps/states " + std::string(chain),
                   again, results.counter("unknown_length/" + std::string(chain), "again"),
                   "steps");
  }
  for (const std::string cost : {"1", "5", "30"}) {
    const std::string name = "two_tiers/" + cost + "";
    claims.at_most("cost of two tiers, of the optimum, at " + cost + " steps per access", 1.02,
                   results.counter(name, "of_optimum"), "x");
    claims.at_least("steps and traffic of two tiers are as forecast, at " + cost, 1,
                    results.counter(name, "as_forecast"), "");
  }
  claims.at_most("time of ten jobs, of one", 1.05, results.counter("jobs", "ratio"), "x");
  claims.at_least("ten jobs give the same bits as one", 1, results.counter("jobs", "same_bits"),
                  "");
}

}  // namespace
}  // namespace palimpsest::benchmarks

int main(int argc, char** argv) {
  return palimpsest::benchmarks::run_suite(argc, argv, palimpsest::benchmarks::claim);
}
