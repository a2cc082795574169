// Exported C against the engine that runs the same program again and again, on one thread. Times
// that are compared were taken in turns, and figures are medians over the rounds.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "benchmarks/claims.h"
#include "benchmarks/turns.h"
#include "examples/support/host_c.h"
#include "examples/support/kalman.h"

namespace palimpsest::benchmarks {
namespace {

/// The exported filter, compiled as a user would and loaded.
class KalmanInC {
 public:
  using Function = int (*)(const double* noises, const double* measurements, double* loss,
                           double* gradient);

  explicit KalmanInC(const ExportedC& exported) {
    char folder[] = "/tmp/palimpsest-exported-XXXXXX";
    if (mkdtemp(folder) == nullptr) throw std::runtime_error("no directory in /tmp");
    write_files(exported, folder);
    const std::string at = std::string(folder) + "/kalman";
    examples::output_of("cc -std=c99 -O3 -shared -fPIC -o " + at + ".so " + at + ".c -lm");
    library_ = dlopen((at + ".so").c_str(), RTLD_NOW);
    std::filesystem::remove_all(folder);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    function_ = reinterpret_cast<Function>(dlsym(library_, "kalman"));
  }
  ~KalmanInC() { dlclose(library_); }
  KalmanInC(const KalmanInC&) = delete;
  KalmanInC& operator=(const KalmanInC&) = delete;

  Function function() const { return function_; }

 private:
  void* library_;
  Function function_;
};

void kalman(benchmark::State& state) {
  if (!examples::has_command("cc")) return state.SkipWithError("there is no C compiler");
  examples::Kalman filter;
  const Program program = filter.program();
  const KalmanInC in_c(filter.exported(program, 16_KiB));
  Runner runner(program);
  const Tensor noises = examples::first_noises();
  const Tensor positions = filter.simulated(1);
  double loss = 0;
  double gradient[2] = {};
  Turns turns;
  turns.add_once("engine", [&] { runner.run(); });
  turns.add_once("C", [&] {
    in_c.function()(noises.data<double>().data(), positions.data<double>().data(), &loss, gradient);
  });
  for (auto _ : state) {
    turns.take(2);
    state.SetIterationTime(turns.seconds("C"));
  }
  state.counters["engine"] = turns.seconds("engine");
  state.counters["ratio"] = turns.ratio("C", "engine");
}

void claim(const Results& results, Claims& claims) {
  claims.at_most(
      "exported C: gradient of 100 steps of a Kalman filter in 16 KiB / the engine's replay", 1.0,
      results.counter("kalman", "ratio"), "×");
}

}  // namespace
}  // namespace palimpsest::benchmarks

int main(int argc, char** argv) {
  using namespace palimpsest::benchmarks;
  benchmark::RegisterBenchmark("kalman", kalman)
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(1)
      ->UseManualTime();
  return run_suite(argc, argv, claim);
}
