#include "strategy/base/profile.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>

#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/evaluators/measured_machine.h"
#include "strategy/program.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"
#include "tests/temporary_directory.h"

namespace palimpsest::costs_test {
namespace {

using Catch::Matchers::WithinRel;

/// A chain of matrix products, each followed by a function.
Var record_chain(Tape& tape) {
  const Var weight = tape.parameter(Tensor::normal({32, 32}, 1, 0, 0.2));
  Var x = tape.constant(Tensor::uniform({64, 32}, 2));
  for (int layer = 0; layer < 8; ++layer) x = tanh(matmul(x, weight));
  return sum(square(x));
}

Report profiled(RunOptions options = {}) {
  Tape tape;
  options.profile = true;
  return backward(record_chain(tape), options).report();
}

/// The report, with the given nanoseconds for each step, depending on what it computed.
template <class F>
Report with_times(Report report, F nanoseconds) {
  for (Report::Step& step : report.steps) step.event.end = step.event.start + nanoseconds(step);
  return report;
}

TEST_CASE("plans take their costs from the machine given") {
  const auto cost = [](const Machine& machine) {
    Tape tape;
    return plan_backward(record_chain(tape), {.machine = machine}).simulation.one_pass_cost;
  };
  Machine twice;
  twice.flops_per_second /= 2;
  twice.bytes_per_second /= 2;
  twice.seconds_per_node *= 2;
  CHECK_THAT(cost(twice), WithinRel(2 * cost({}), 1e-9));
  Machine cached;
  cached.caches[0] = {1_GiB, 1e12};
  CHECK(cost(cached) < cost({}));
  CHECK_THROWS_AS(cost({.flops_per_second = -1}), ArgumentError);
}

TEST_CASE("a group that reads a part of an array moves that part") {
  const auto cost = [](std::int64_t rows) {
    Tape tape;
    const Var x = tape.constant(Tensor::ones({rows, 256}));
    const Var made = tanh(slice(x, 0, {.stop = 2})) + 1.0;
    return forecast_values({&made, 1}, {}, {.machine = {}}).plan.simulation.cost;
  };
  CHECK(cost(1000) == cost(4));
}

TEST_CASE("one engine plans anew for another machine and for other times") {
  Tape tape;
  const auto is_planned_anew = [&](const RunOptions& options) {
    tape.clear();
    return !backward(record_chain(tape), options).report().plan_reused;
  };
  Machine slow;
  slow.flops_per_second = 1e6;
  const Report report = with_times(profiled(), [](const auto&) { return 1'000'000'000; });
  const auto costs = std::make_shared<const Profile>(report);
  CHECK(is_planned_anew({}));
  for (int step = 0; step < 3; ++step) CHECK_FALSE(is_planned_anew({}));
  CHECK(is_planned_anew({.machine = slow}));
  CHECK(is_planned_anew({.costs = costs}));
  CHECK_FALSE(is_planned_anew({}));
  CHECK_FALSE(is_planned_anew({.machine = slow}));
  CHECK_FALSE(is_planned_anew({.costs = costs}));
  for (FlopRates Machine::* const kind :
       {&Machine::products, &Machine::reductions, &Machine::functions}) {
    Machine other;
    (other.*kind).f32 = 1e9;
    CHECK(is_planned_anew({.machine = other}));
    CHECK_FALSE(is_planned_anew({.machine = other}));
  }
}

TEST_CASE("nodes that run as one take what each takes by its own rate") {
  const Machine machine{.flops_per_second = 1e12,
                        .bytes_per_second = 1e30,
                        .seconds_per_node = 0,
                        .reductions = {.f32 = 1e6},
                        .functions = {.f32 = 1e9, .f64 = 1e8}};
  const auto seconds = [&](auto made_of) {
    Tape tape;
    const Var made = made_of(tape.constant(Tensor::ones({64})));
    return forecast_values({&made, 1}, {.machine = machine}, {.machine = machine})
        .plan.simulation.cost;
  };
  const auto wide = [](const Var& x) { return exp(cast(x, DType::f64)); };
  const auto narrow = [](const Var& x) { return exp(x); };
  const double function = seconds(narrow);
  CHECK(function > 64 / 1e9);
  CHECK_THAT(seconds(wide), WithinRel(10 * function + 64 / 1e8, 1e-9));
  CHECK_THAT(seconds([](const Var& x) { return where(x > 0.5, exp(x), x); }),
             WithinRel(function + 2 * 64 / 1e9, 1e-9));
  CHECK(seconds([](const Var& x) { return sum(exp(x)); }) > function + 64 / 1e6);
}

TEST_CASE("plans take the times of a profiled run in place of estimates") {
  const auto nanoseconds = [](const Report::Step& step) {
    return step.operation == "matmul" ? 3'000'000 : 1'000;
  };
  const Report report = with_times(profiled(), nanoseconds);
  double total = 0;
  for (const Report::Step& step : report.steps) {
    total += static_cast<double>(nanoseconds(step)) * 1e-9 + Machine{}.seconds_per_node;
  }
  const auto costs = std::make_shared<const Profile>(report);
  Tape tape;
  const Plan plan = plan_backward(record_chain(tape), {.costs = costs});
  CHECK_THAT(plan.simulation.one_pass_cost, WithinRel(total, 1e-9));
  const Program program =
      Program::gradients([](Tape& own) { return record_chain(own); }, {.costs = costs});
  CHECK_THAT(program.plan().simulation.one_pass_cost, WithinRel(total, 1e-9));
}

TEST_CASE(
    "a profile keeps the median of times of the same work, and knows runs that were not timed") {
  const Report report = profiled({.fuse = false});
  const Report::Step& step =
      *std::find_if(report.steps.begin(), report.steps.end(),
                    [](const auto& each) { return each.operation == "matmul"; });
  CHECK(step.work.starts_with("matmul 8192 4096 -> 8192"));
  const Report slow = with_times(report, [](const auto&) { return 2000; });
  const Report fast = with_times(report, [](const auto&) { return 1000; });
  const Report first = with_times(report, [](const auto&) { return 90'000; });
  const Report all[] = {first, fast, fast, slow};
  const Profile profile(all);
  CHECK_THAT(profile.seconds(step.work).value(), WithinRel(1e-6, 1e-12));
  CHECK_FALSE(profile.seconds("matmul 1 1 -> 1").has_value());
  CHECK(profile.hash() == Profile(fast).hash());
  CHECK(profile.hash() != Profile(slow).hash());
  Tape tape;
  const Report bare = backward(record_chain(tape)).report();
  CHECK_THROWS_AS(Profile(bare), ArgumentError);
}

TEST_CASE("gradients have the same bits whatever the machine is taken for") {
  const auto gradients = [](const RunOptions& options, bool eagerly) {
    Tape tape(eagerly ? eager({.memory_budget = options.memory_budget, .machine = options.machine})
                      : lazy());
    const RandomProgram program = record_random(tape, 11, 60);
    const Gradients made = backward(program.loss, options);
    std::vector<Tensor> tensors;
    for (const Gradients::Entry& entry : made) tensors.push_back(entry.gradient);
    return std::pair(tensors, made.report().keep_all_peak);
  };
  const auto [expected, peak] = gradients({}, false);
  Machine odd{.flops_per_second = 1, .bytes_per_second = 1e15, .seconds_per_node = 0};
  odd.caches[1] = {64, 3};
  const Machine machines[] = {{}, odd, measured_machine()};
  for (const Machine& machine : machines) {
    for (const bool eagerly : {false, true}) {
      const auto made =
          gradients({.memory_budget = peak * 7 / 10, .threads = 2, .machine = machine}, eagerly)
              .first;
      REQUIRE(made.size() == expected.size());
      for (std::size_t i = 0; i < made.size(); ++i) CHECK(same_bits(made[i], expected[i]));
    }
  }
}

TEST_CASE("the machine at hand is measured once, and is one") {
  const Machine& machine = measured_machine();
  CHECK(&machine == &measured_machine());
  CHECK_NOTHROW(check(machine));
  for (const double rate :
       {machine.products.f64, machine.products.bf16, machine.products.f16, machine.convolutions.f32,
        machine.convolutions.f64, machine.reductions.f32, machine.reductions.f64,
        machine.functions.f32, machine.functions.f64}) {
    CHECK(rate > 0);
  }
  Bytes before = 0;
  for (const Cache& cache : machine.caches) {
    CHECK(cache.bytes >= before);
    before = cache.bytes;
  }
}

TEST_CASE("the machine at hand is kept in a file, whoever asks for it at the same time") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/machine.json";
  std::vector<Machine> machines(8);
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> threads;
    for (Machine& machine : machines) {
      threads.emplace_back([&] {
        try {
          machine = measured_machine(path);
        } catch (const Error&) {
          ++failures;
        }
      });
    }
  }
  CHECK(failures == 0);
  for (const Machine& machine : machines) CHECK(machine == measured_machine());
  CHECK(directory.files() == std::vector{path});
  // A file is not a directory.
  CHECK_THROWS_AS(measured_machine(path + "/below"), FileError);
  CHECK(directory.files() == std::vector{path});
}

}  // namespace
}  // namespace palimpsest::costs_test
