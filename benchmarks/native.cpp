// Native code against loops and adjoints written by hand, compiled at -O3 for the baseline
// processor, and against the interpreter. Times that are compared were taken in turns, and figures
// are medians over the rounds.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/claims.h"
#include "benchmarks/loops/ring.h"
#include "benchmarks/native/chain.h"
#include "benchmarks/native/evals.h"
#include "benchmarks/native/small_pde.h"
#include "benchmarks/native/time_loops.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

using namespace palimpsest;
using namespace palimpsest::benchmarks;
using benchmark::State;

namespace {

/// Whether rows compare with XLA.
bool has_jax = false;

RunOptions options_with(NativeCode native, Bytes budget = unlimited) {
  return {.memory_budget = budget, .threads = 1, .native = native};
}

/// Forward steps of the ring; measures the time per step.
void forward_step(State& state) {
  constexpr std::int64_t steps = 50'000;
  double results[2] = {};
  double by_hand_result = 0;
  const auto run = [&](NativeCode native) {
    const Ring ring(steps);
    Var loss = ring.loss;
    evaluate({&loss, 1}, options_with(native));
    results[native == NativeCode::off] = loss.item();
  };
  Turns turns;
  turns.add_once("native", [&] { run(NativeCode::at_once); });
  turns.add_once("interpreted", [&] { run(NativeCode::off); });
  turns.add_once("by_hand", [&] { by_hand_result = by_hand::run(steps); });
  for (auto _ : state) {
    turns.take(6);
    state.SetIterationTime(turns.seconds("native") / steps);
  }
  state.counters["by_hand"] = turns.seconds("by_hand") / steps;
  state.counters["interpreted"] = turns.seconds("interpreted") / steps;
  state.counters["ratio"] = turns.ratio("native", "by_hand");
  state.counters["agree"] = std::abs(results[0] - by_hand_result) < 1e-9 * by_hand_result;
  state.counters["same_bits"] = same_number(results[0], results[1]);
}

/// A gradient within 1 MiB, against the adjoint by hand with the same number of states.
void ring_gradient(State& state) {
  constexpr std::uint32_t steps = 20'000;
  std::uint32_t states = 0;
  double results[2] = {};
  double by_hand_result = 0;
  const auto run = [&](NativeCode native) {
    const Ring ring(steps);
    const Gradients gradients = backward(ring.loss, options_with(native, 1_MiB));
    results[native == NativeCode::off] = gradients[ring.c].item();
    states = gradients.report().loops.at(0).states;
  };
  run(NativeCode::off);
  Turns turns;
  turns.add_once("native", [&] { run(NativeCode::at_once); });
  turns.add_once("interpreted", [&] { run(NativeCode::off); });
  turns.add_once("by_hand", [&] { by_hand_result = by_hand::gradient(steps, states).c; });
  for (auto _ : state) {
    turns.take(8);
    state.SetIterationTime(turns.seconds("native"));
  }
  state.counters["by_hand"] = turns.seconds("by_hand");
  state.counters["interpreted"] = turns.seconds("interpreted");
  state.counters["ratio"] = turns.ratio("native", "by_hand");
  state.counters["agree"] = std::abs(results[0] - by_hand_result) < 1e-7 * std::abs(by_hand_result);
  state.counters["same_bits"] = same_number(results[0], results[1]);
}

/// A time loop whose gradient is compared with an adjoint by hand.
struct TimeLoop {
  const char* name;
  const char* subject;
  RecordLoop record;
  GradientByHand by_hand;
  std::uint32_t steps;
  Bytes budget;
  double tolerance;  ///< of gradients, relative to the largest element of each
};

const TimeLoop time_loops[] = {
    {"lorenz", "the gradient of 20,000 steps of Lorenz's equations within 1 MiB", lorenz::record,
     lorenz::gradient_by_hand, 20'000, 1_MiB, 1e-9},
    {"shallow_water", "the gradient of 20,000 steps of shallow water on 64 × 64 cells within 1 MiB",
     shallow_water::record, shallow_water::gradient_by_hand, 20'000, 1_MiB, 2e-3},
    {"gray_scott", "the gradient of 1,000 steps of Gray-Scott on 256 × 256 cells within 16 MiB",
     gray_scott::record, gray_scott::gradient_by_hand, 1'000, 16_MiB, 1e-9},
    {"lstm", "the gradient of 20,000 steps of an LSTM cell of width 32 within 1 MiB", lstm::record,
     lstm::gradient_by_hand, 20'000, 1_MiB, 1e-4},
};

/// The recorded and planned gradient of a time loop.
class RecordedLoop {
 public:
  RecordedLoop(const TimeLoop& loop, NativeCode native)
      : runner_(Program::gradients(
            [&](Tape& tape) {
              parameters_.clear();
              return loop.record(tape, loop.steps, parameters_);
            },
            options_with(native, loop.budget))) {}

  void run() { runner_.run(); }
  std::vector<Tensor> gradients() const {
    const Gradients all = runner_.gradients();
    std::vector<Tensor> found;
    for (const Var& each : parameters_) found.push_back(all[each]);
    return found;
  }
  /// Number of states held at a time.
  std::uint32_t states() const { return runner_.report().loops.at(0).states; }

 private:
  std::vector<Var> parameters_;
  Runner runner_;
};

/// The largest difference, relative to the largest element.
double difference(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::f64);
  const Tensor y = b.to(DType::f64);
  double largest = 0;
  double most = 0;
  for (std::size_t i = 0; i < x.data<double>().size(); ++i) {
    largest = std::max(largest, std::abs(x.data<double>()[i]));
    most = std::max(most, std::abs(x.data<double>()[i] - y.data<double>()[i]));
  }
  return most / largest;
}

/// A gradient within a budget, against the adjoint by hand with the same number of states and the
/// same schedule.
void time_loop(State& state, const TimeLoop& loop) {
  RecordedLoop interpreted(loop, NativeCode::off);
  interpreted.run();
  RecordedLoop native(loop, NativeCode::at_once);
  std::vector<Tensor> by_hand;
  Turns turns;
  turns.add_once("native", [&] { native.run(); });
  turns.add_once("by_hand", [&] { by_hand = loop.by_hand(loop.steps, interpreted.states()); });
  for (auto _ : state) {
    turns.take(6);
    state.SetIterationTime(turns.seconds("native"));
  }
  double most = 0;
  bool same = native.states() == interpreted.states();
  const std::vector<Tensor> expected = interpreted.gradients();
  const std::vector<Tensor> found = native.gradients();
  for (std::size_t i = 0; i < by_hand.size(); ++i) {
    most = std::max(most, difference(by_hand[i], found[i]));
    same = same && same_bits(found[i], expected[i]);
  }
  state.counters["by_hand"] = turns.seconds("by_hand");
  state.counters["ratio"] = turns.ratio("native", "by_hand");
  state.counters["states"] = native.states();
  state.counters["difference"] = most;
  state.counters["agree"] = most < loop.tolerance;
  state.counters["same_bits"] = same;
}

/// Runs a program as native code and interpreted, `count` times each in turns. `make` compiles it.
template <class Make>
void compare(State& state, const Make& make, int count) {
  Runner native(make(NativeCode::at_once));
  Runner interpreted(make(NativeCode::off));
  Turns turns;
  turns.add_once("native", [&] { native.run(); });
  turns.add_once("interpreted", [&] { interpreted.run(); });
  for (auto _ : state) {
    turns.take(count);
    state.SetIterationTime(turns.seconds("native"));
  }
  state.counters["ratio"] = turns.ratio("native", "interpreted");
}

/// Six operations on 10⁷ numbers, with the derivative by one number or by all. What is possible at
/// best is the larger of two times: of a copy that moves as many bytes, and of the same by hand
/// with numbers in the nearest cache.
void operation_chain(State& state) {
  constexpr std::size_t n = 10'000'000;
  constexpr std::size_t near = 2'000;
  constexpr float factor = 1.5F;
  const bool differentiates = state.range(0) != 0;
  Tensor start = Tensor::zeros({n}, DType::f32);
  const std::span<float> x = start.data<float>();
  for (std::size_t i = 0; i < n; ++i) x[i] = std::sin(0.01F * static_cast<float>(i));
  const auto make = [&](NativeCode native) {
    return Runner(Program::gradients(
        [&](Tape& tape) {
          const Var u = differentiates ? tape.parameter(start) : tape.constant(start);
          const Var scale = tape.parameter(Tensor::scalar(factor, DType::f32), "factor");
          const Var y = (u * 2.0 + 1.0) * u - relu(u * scale);
          return sum(y * y);
        },
        options_with(native)));
  };
  Runner native = make(NativeCode::at_once);
  Runner interpreted = make(NativeCode::off);
  std::vector<float> copied(n);
  float near_sum = 0;
  Turns turns;
  turns.add_once("native", [&] { native.run(); });
  turns.add_once("interpreted", [&] { interpreted.run(); });
  turns.add_once("copy", [&] {
    std::memcpy(copied.data(), x.data(), sizeof(float) * (differentiates ? n : n / 2));
    benchmark::ClobberMemory();
  });
  turns.add_once("near", [&] {
    for (std::size_t i = 0; i < n / near; ++i) {
      near_sum +=
          chain::by_hand(x.data(), differentiates ? copied.data() : nullptr, near, factor).loss;
    }
    benchmark::DoNotOptimize(near_sum);
  });
  for (auto _ : state) {
    turns.take(6);
    state.SetIterationTime(turns.seconds("native"));
  }
  const double found = native.gradients()["factor"].item();
  const double expected = chain::by_hand(x.data(), nullptr, n, factor).factor;
  state.counters["copy"] = turns.seconds("copy");
  state.counters["near"] = turns.seconds("near");
  state.counters["ratio"] = turns.ratio("native", "interpreted");
  state.counters["of_best"] =
      std::min(turns.ratio("native", "copy"), turns.ratio("native", "near"));
  state.counters["agree"] = std::abs(found - expected) <= 1e-3 * std::abs(expected);
}

/// Recorded step by step, and replayed.
void replayed_pde(State& state) {
  const auto make = [](NativeCode native) {
    return Program::gradients(small_pde::recorded, options_with(native));
  };
  compare(state, make, 4);
}

/// The gradient of a mixture of 5 Gaussians at 1,000 points of a plane, whose last axes have 5 and
/// 2 elements.
void mixture(State& state) {
  const auto make = [&](NativeCode native) {
    return Program::gradients(
        [](Tape& tape) {
          const Var x = tape.constant(Tensor::normal({1'000, 2}, 1));
          const Var weight = tape.parameter(Tensor::normal({5}, 2));
          const Var center = tape.parameter(Tensor::normal({5, 2}, 3));
          const Var scale = tape.parameter(Tensor::normal({5, 2}, 4));
          const Var z = (unsqueeze(x, 1) - center) * exp(scale);
          const Var e = weight + sum(scale, {1}) - 0.5 * sum(z * z, {2});
          return sum(logsumexp(e, {1})) - 1'000.0 * logsumexp(weight);
        },
        options_with(native));
  };
  compare(state, make, 3);
}

/// Two forms of one problem, as native code.
void eval(State& state, const Eval& problem) {
  const auto make = [](Var (*record)(Tape&)) {
    return Runner(Program::gradients(record, options_with(NativeCode::at_once)));
  };
  Runner natural = make(problem.natural);
  Runner best = make(problem.best);
  Turns turns;
  turns.add_once("natural", [&] { natural.run(); });
  turns.add_once("best", [&] { best.run(); });
  for (auto _ : state) {
    turns.take(3);
    state.SetIterationTime(turns.seconds("natural"));
  }
  const double found = natural.gradients().loss().item();
  const double expected = best.gradients().loss().item();
  state.counters["ratio"] = turns.ratio("natural", "best");
  state.counters["agree"] = std::abs(found - expected) <= 1e-9 * std::abs(expected);
}

/// From now on the cache on disk is another, empty folder, which the destructor removes.
class EmptyCache {
 public:
  EmptyCache() {
    if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no temporary folder");
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~EmptyCache() { std::filesystem::remove_all(folder_); }
  EmptyCache(const EmptyCache&) = delete;
  EmptyCache& operator=(const EmptyCache&) = delete;

 private:
  std::string folder_ = std::filesystem::temp_directory_path().string() + "/native-XXXXXX";
};

/// Interpreted runs while another thread compiles at idle priority, against such runs while none
/// does.
void while_compiling(State& state) {
  const EmptyCache cache;
  std::vector<double> ratios, times;
  for (const std::int64_t cells : {20'001, 20'002, 20'003, 20'004, 20'005}) {
    const auto make = [&](NativeCode native) {
      return Runner(Program::gradients(
          [&](Tape& tape) {
            const Var c = tape.parameter(Tensor::scalar(0.2, DType::f64));
            Var u = tape.parameter(Tensor::zeros({cells}, DType::f64));
            for (int step = 0; step < 4; ++step) u = u - c * sin(u - roll(u, 1, 0));
            return sum(u * u);
          },
          options_with(native)));
    };
    Runner compiled = make(NativeCode::automatic);
    Runner interpreted = make(NativeCode::off);
    struct Timed {
      double begin, end;
    };
    std::vector<Timed> runs;
    const double give_up = now() + 20;
    const auto take = [&] {
      const double begin = now();
      interpreted.run();
      runs.push_back({begin, now()});
    };
    double served = 0;
    while (true) {
      served = now();
      compiled.run();
      if (compiled.report().native.groups > 0) break;
      take();
      if (now() > give_up) return state.SkipWithError("there is no native code after 20 seconds");
    }
    const double compiling = served - 0.9 * compiled.report().native.compile_seconds;
    const std::size_t until_served = runs.size();
    for (std::size_t run = 0; run < until_served; ++run) take();
    std::vector<double> during, alone;
    for (const auto& [begin, end] : runs) {
      const bool is_during = begin > compiling && end <= served;
      (is_during ? during : alone).push_back(end - begin);
    }
    if (during.empty()) return state.SkipWithError("compiling took less than a run");
    times.push_back(median(during));
    ratios.push_back(times.back() / median(alone));
  }
  for (auto _ : state) state.SetIterationTime(median(times));
  state.counters["ratio"] = median(ratios);
}

/// From the first run until its native code serves, with an empty cache on disk.
void first_run(State& state) {
  const EmptyCache cache;
  std::vector<double> seconds;
  for (const std::int64_t cells : {901, 902, 903, 904, 905}) {
    const double begin = now();
    Tape tape;
    const Var c = tape.parameter(Tensor::scalar(0.2, DType::f64));
    const Var start = tape.parameter(Tensor::zeros({cells}, DType::f64));
    const Var end = scan(start, 100, [&](const Var& u, const StepNumber&) {
      return u - c * sin(u - roll(u, 1, 0));
    });
    backward(sum(end * end), options_with(NativeCode::at_once));
    seconds.push_back(now() - begin);
  }
  for (auto _ : state) state.SetIterationTime(median(seconds));
}

void claim(const Results& results, Claims& claims) {
  std::vector<std::string> compared{"forward_step", "gradient"};
  for (const TimeLoop& loop : time_loops) compared.emplace_back(loop.name);
  for (const std::string& row : compared) {
    claims.at_least(row + ": what both compute agrees", 1, results.counter(row, "agree"), "");
    claims.at_least(row + ": the interpreter has the same bits", 1,
                    results.counter(row, "same_bits"), "");
  }
  claims.at_most("a step forward of 1,000 cells", 0.8, results.counter("forward_step", "ratio"),
                 "of the time of a loop by hand at -O3 for the baseline processor");
  claims.at_most("the gradient of 20,000 steps of 1,000 cells within 1 MiB", 1.2,
                 results.counter("gradient", "ratio"),
                 "of the time of an adjoint by hand with as many states");
  for (const TimeLoop& loop : time_loops) {
    claims.at_most(loop.subject, 1.3, results.counter(loop.name, "ratio"),
                   "of the time of an adjoint by hand for this processor with as many states");
  }
  struct Chain {
    const char* row;
    const char* subject;
  };
  for (const auto& [row, subject] :
       {Chain{"chain/0", "a chain of six operations"},
        Chain{"chain/1", "a chain of six operations with gradients"}}) {
    claims.at_least(std::string(subject) + ": by hand it agrees", 1, results.counter(row, "agree"),
                    "");
    claims.at_most(subject, 1, results.counter(row, "ratio"), "of the interpreter's time");
    claims.at_most(subject, 1.2, results.counter(row, "of_best"),
                   "of the time of a copy, or of the same in the nearest cache");
  }
  claims.at_most("a small PDE, replayed", 1, results.counter("small_pde", "ratio"),
                 "of the interpreter's time");
  claims.at_most("the gradient of a mixture of Gaussians with short last axes", 1,
                 results.counter("mixture", "ratio"), "of the interpreter's time");
  for (const Eval& problem : evals()) {
    claims.at_least(std::string(problem.name) + ": both forms agree", 1,
                    results.counter(problem.name, "agree"), "");
    claims.at_most(problem.subject, 1.2, results.counter(problem.name, "ratio"),
                   "of the time of the fastest form");
  }
  claims.at_most("runs while another thread compiles", 1.1,
                 results.counter("while_compiling", "ratio"),
                 "of the time of runs while none does");
  if (has_jax) small_pde::claim(results, claims);
  claims.at_most("from the first run until native code serves", 1, results.seconds("first_run"),
                 "seconds");
}

}  // namespace

int main(int argc, char** argv) {
  const auto add = [](const char* name, auto row) {
    return benchmark::RegisterBenchmark(name, row)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  };
  add("forward_step", forward_step)->Unit(benchmark::kMicrosecond);
  add("gradient", ring_gradient);
  for (const TimeLoop& loop : time_loops) {
    add(loop.name, [&loop](State& state) { time_loop(state, loop); });
  }
  add("chain", operation_chain)->Arg(0)->Arg(1);
  add("small_pde", replayed_pde);
  add("mixture", mixture)->Unit(benchmark::kMicrosecond);
  for (const Eval& problem : evals()) {
    add(problem.name, [&problem](State& state) {
      eval(state, problem);
    })->Unit(benchmark::kMicrosecond);
  }
  add("while_compiling", while_compiling);
  add("first_run", first_run);
  has_jax = small_pde::register_comparisons();
  return run_suite(argc, argv, claim);
}
