#include <benchmark/benchmark.h>

#include "benchmarks/training/loop.h"
#include "benchmarks/training/models.h"
#include "benchmarks/training/parts.h"
#include "benchmarks/turns.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

/// A model whose budget is a percentage of its keep-all peak, on one thread.
struct Budgeted {
  const char* model;
  int percent;
  double most;  ///< limit of the time, as a ratio to keep-all

  std::string name() const { return std::string(model) + "/" + std::to_string(percent) + "%"; }
};

constexpr Budgeted budgeted[] = {{"pde", 10, 1.0}, {"gpt", 40, 1.15}};

void train(State& state, const Budgeted& row) {
  const Model model = training_model(row.model);
  Loop plain(model, {.planner = keep_all(), .threads = 1});
  plain.step();
  const Bytes everything = plain.report().keep_all_peak;
  const Bytes budget = everything * row.percent / 100;
  Loop within(model, {.memory_budget = budget, .threads = 1});
  Turns turns;
  turns.add_once("plain", [&] { plain.step(); });
  turns.add_once("within", [&] { within.step(); });
  for (auto _ : state) {
    turns.take(6);
    state.SetIterationTime(turns.seconds("within"));
  }
  const Report& report = within.report();
  state.counters["keep_all"] = turns.seconds("plain");
  state.counters["of_keep_all"] = turns.ratio("within", "plain");
  state.counters["peak_bytes"] = static_cast<double>(report.measured_peak);
  state.counters["keep_all_bytes"] = static_cast<double>(everything);
  state.counters["overhead"] = report.compute_overhead;
  state.counters["kernels"] = within.kernels();
  state.counters["within"] = report.measured_peak <= budget;
}

/// No budget, but the measured machine: values far away in the memory hierarchy are recomputed.
void in_caches(State& state) {
  const Model model = training_model("pde");
  Loop usual(model, {.threads = 1});
  Loop measured(model, {.threads = 1, .machine = measured_machine()});
  Turns turns;
  turns.add_once("usual", [&] { usual.step(); });
  turns.add_once("measured", [&] { measured.step(); });
  for (auto _ : state) {
    turns.take(6);
    state.SetIterationTime(turns.seconds("measured"));
  }
  state.counters["of_usual"] = turns.ratio("measured", "usual");
  state.counters["peak_bytes"] = static_cast<double>(measured.report().measured_peak);
  state.counters["recomputed"] = measured.report().recomputed;
}

}  // namespace

void register_checkpointed() {
  benchmark::RegisterBenchmark("pde/caches", in_caches)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseManualTime();
  for (const Budgeted& row : budgeted) {
    benchmark::RegisterBenchmark(row.name().c_str(), [&row](State& state) { train(state, row); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
}

void claim_checkpointed(const Results& results, Claims& claims) {
  claims.at_most("a step of pde planned for this machine's caches", 1,
                 results.counter("pde/caches", "of_usual"), "of the time of one that is not");
  for (const Budgeted& row : budgeted) {
    claims.at_least(row.name() + ": the budget is kept", 1, results.counter(row.name(), "within"),
                    "");
    claims.at_most("a step within " + row.name() + " of keep-all memory", row.most,
                   results.counter(row.name(), "of_keep_all"), "of the keep-all time");
  }
}

}  // namespace palimpsest::benchmarks
