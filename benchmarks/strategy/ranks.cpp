#include <benchmark/benchmark.h>

#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/process.h"
#include "benchmarks/strategy/dense.h"
#include "benchmarks/strategy/parts.h"
#include "benchmarks/turns.h"

namespace palimpsest::benchmarks {

#ifndef PALIMPSEST_RANK_STEPS

void register_ranks() {}
void claim_ranks(const Results&, Claims&) {}

#else

namespace {

using benchmark::State;

struct Row {
  const char* name;
  const char* kind;  ///< the argument of `rank_steps`
  std::int64_t width;
  std::int64_t examples;
  double most_peak;  ///< larger peak of both processes, as a ratio to one process
  double most_time;  ///< as a ratio to one process
};
// With large layers, the gradients are a large part of the peak, and every process has all of them.
constexpr Row rows[] = {{"ranks/shards-large", "shards", 1024, 512, 0.85, 1.4},
                        {"ranks/shards-small", "shards", 64, 512, 0.65, 1.1},
                        {"ranks/stages-large", "stages", 512, 1024, 0.75, 1.2},
                        {"ranks/stages-small", "stages", 64, 512, 0.75, 1}};

struct Steps {
  double seconds = 0;
  double fullest = 0;  ///< larger peak of both processes, in bytes
  double within = 0;   ///< 1 if both peaks are within the predicted ones
};

/// Starts two processes for these steps.
Steps on_ranks(const Row& row, std::int64_t times) {
  std::istringstream words(PALIMPSEST_MPIRUN);
  std::vector<std::string> command(std::istream_iterator<std::string>(words), {});
  command.insert(command.end(),
                 {"-n", "2", PALIMPSEST_RANK_STEPS, row.kind, std::to_string(row.width),
                  std::to_string(row.examples), std::to_string(times)});
  // Without a network, as in the tests, but with one core for each process.
  Process process(command,
                  {{"OMPI_MCA_btl", "^tcp"}, {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"}});
  Steps steps;
  std::istringstream(process.read_line()) >> steps.seconds >> steps.fullest >> steps.within;
  return steps;
}

/// Two processes with one core each, against one process on two threads that splits the batch
/// alike.
void against_one(State& state, const Row& row) {
  const Workload layers = dense(8, row.width, row.examples, [](const Var& x) { return gelu(x); });
  ExecutionStrategy strategy{.parallelism = ParallelMode::data_parallel, .workers = 2};
  if (row.kind == std::string_view("stages")) {
    strategy = {.accumulation = 8, .parallelism = ParallelMode::pipeline, .stages = 2};
  }
  strategy.run.threads = 2;
  Execution one(strategy);
  Report of_one;
  Steps of_ranks;
  Turns turns;
  turns.add_once("one", [&] {
    of_one = one.gradients(layers.model, layers.parameters, layers.batch).report();
  });
  turns.add("ranks", [&](std::int64_t times) {
    of_ranks = on_ranks(row, times);
    return of_ranks.seconds;
  });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("ranks"));
  }
  state.counters["of_one_process"] = turns.ratio("ranks", "one");
  state.counters["of_one_process_peak"] =
      of_ranks.fullest / static_cast<double>(of_one.measured_peak);
  state.counters["peak_bytes"] = of_ranks.fullest;
  state.counters["within"] = of_ranks.within;
}

}  // namespace

void register_ranks() {
  for (const Row& row : rows) {
    benchmark::RegisterBenchmark(row.name, [&row](State& state) { against_one(state, row); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
}

void claim_ranks(const Results& results, Claims& claims) {
  for (const Row& row : rows) {
    const std::string name = row.name;
    claims.at_least(name + ": peaks are as predicted or less", 1, results.counter(name, "within"),
                    "");
    claims.at_most(name + ": the fuller of two has", row.most_peak,
                   results.counter(name, "of_one_process_peak"), "of the peak of one process");
    claims.at_most(name + ": a step", row.most_time, results.counter(name, "of_one_process"),
                   "of the time of one process");
  }
}

#endif

}  // namespace palimpsest::benchmarks
