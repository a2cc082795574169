#include <sstream>

#include "palimpsest.h"
#include "strategy/base/strategy_fields.h"
#include "strategy/training/weight_average.h"
#include "tests/catch.h"

namespace palimpsest::execution_strategy_test {
namespace {

using Catch::Matchers::Contains;

void check_refused(const ExecutionStrategy& strategy, const std::string& text) {
  CAPTURE(text);
  CHECK_THROWS_AS(require_valid(strategy), ArgumentError);
  CHECK_THROWS_WITH(require_valid(strategy), Contains("[strategy]") && Contains(text));
}

TEST_CASE("strategies: named ones are valid, and no two are alike") {
  const auto all = named_strategies();
  CHECK(all.size() == 9);
  for (const NamedStrategy& one : all) {
    for (const NamedStrategy& other : all) {
      CHECK((one.strategy == other.strategy) == (one.name == other.name));
    }
    CHECK_NOTHROW(require_valid(one.strategy));
    CHECK(strategy_named(one.name) == one.strategy);
    CHECK_FALSE(one.purpose.empty());
  }
  CHECK_THROWS_WITH(strategy_named("fastest"), Contains("memory-efficient"));
}

TEST_CASE("strategies: a planner of the caller's own checkpoints gradients") {
  const ExecutionStrategy strategy{.gradient = GradientMode::checkpointed,
                                   .run = {.planner = uniform({.segments = 3})}};
  CHECK(strategy.run_options().planner == strategy.run.planner);
  CHECK(strategy.summary() == "lazy, checkpointed gradients by uniform, 3 segments");
  CHECK_THROWS_WITH(to_json(strategy), Contains("cannot hold run.planner"));
  CHECK_THROWS_WITH(to_json({.run = {.machine = {.flops_per_second = 1e9}}}),
                    Contains("cannot hold run.machine"));
  check_refused({.run = {.planner = uniform({.segments = 3})}}, "need gradient = checkpointed");
  check_refused({.gradient = GradientMode::checkpointed,
                 .checkpoint_interval = 2,
                 .run = {.planner = keep_all()}},
                "exactly one of");
}

TEST_CASE("strategies: files hold neither a stop token nor a progress function") {
  std::stop_source source;
  CHECK_THROWS_WITH(to_json({.run = {.stop = source.get_token()}}),
                    Contains("cannot hold run.stop"));
  const auto progress = std::make_shared<const ProgressFunction>([](const RunProgress&) {});
  CHECK_THROWS_WITH(to_json({.run = {.progress = progress}}), Contains("cannot hold run.progress"));
}

TEST_CASE("strategies: numbers that are no enumerators are refused") {
  check_refused({.mode = ExecutionMode{77}},
                "mode is 77, which has no name; give one of lazy, eager, hybrid");
  check_refused({.gradient = GradientMode{4}}, "gradient is 4");
  check_refused({.parallelism = ParallelMode{5}}, "parallelism is 5");
  check_refused({.run = {.memory = AllocationPolicy{4}}}, "memory is 4");
  check_refused({.run = {.native = NativeCode{3}}}, "native is 3");
  check_refused({.precision = Precision{.kind = PrecisionKind{9}}}, "precision.kind is 9");
  check_refused({.precision = Precision{.half = DType{99}}}, "precision.half is 99");
  CHECK_THROWS_AS(Execution({.mode = ExecutionMode{77}}), ArgumentError);
  CHECK_THROWS_AS(Execution({}, LossReduction{2}), ArgumentError);
  CHECK_THROWS_AS(precise(Precision{.kind = PrecisionKind{9}}), ArgumentError);
  CHECK_THROWS_AS(require_valid(LayerCheckpointing{.mode = LayerCheckpointing::Mode{8}}),
                  ArgumentError);
  CHECK_THROWS_AS(require_valid(LayerCheckpointing{
                      .mode = LayerCheckpointing::Mode::every, .interval = 1, .codec = Codec{5}}),
                  ArgumentError);
  CHECK_THROWS_AS(GradientAccumulator({.normalization = GradientNormalization{7}}), ArgumentError);
  CHECK_THROWS_AS(WeightAverage::exponential({.start = AverageStart{3}}), ArgumentError);
  using Driver = ReverseDriver<std::vector<double>, std::vector<double>>;
  CHECK_THROWS_WITH(Driver({}, {.codec = ReverseCodec{4}}), Contains("ReverseOptions::codec is 4"));

  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2}));
  CHECK_THROWS_WITH(backward(sum(x), {.memory = AllocationPolicy{4}}),
                    Contains("RunOptions::memory is 4") && Contains("minimal_peak, pooled"));
  CHECK_THROWS_AS(backward(sum(x), {.native = NativeCode{3}}), ArgumentError);
  const auto step = [](const Var& y, const StepNumber&) { return tanh(y); };
  CHECK_THROWS_WITH(scan(x, 3, step, {.codec = Codec{3}}),
                    Contains("[scan] LoopOptions::codec is 3") && Contains("half_f16"));
  CHECK_THROWS_WITH(checkpoint(
                        {.codec = Codec{3}}, [](const Var& y) { return tanh(y); }, x),
                    Contains("[checkpoint] CheckpointOptions::codec is 3"));
}

TEST_CASE("strategies: every switch is in files and in summaries") {
  for (const Switch& each : switches) {
    INFO(each.name);
    ExecutionStrategy strategy;
    strategy.run.*each.member = !(strategy.run.*each.member);
    CHECK(strategy != ExecutionStrategy{});
    CHECK_THAT(strategy.summary(), Contains(std::string(each.if_changed)));
    CHECK_THAT(to_json(strategy), Contains(each.name));
    CHECK(strategy_from_json(to_json(strategy)) == strategy);
  }
}

TEST_CASE("strategies: contradictions are refused as a whole") {
  check_refused({.accumulation = 0}, "accumulation is 0");
  check_refused({.workers = -1}, "workers is -1");
  check_refused({.run = {.threads = -2}}, "threads is -2");
  check_refused({.run = {.memory_budget = -5}}, "memory_budget is -5");
  check_refused({.mode = ExecutionMode::hybrid, .stage = {.nodes = 0}}, "stage.nodes is 0");
  check_refused({.stage = {.nodes = 10}}, "stage needs mode = hybrid, not lazy");
  check_refused({.checkpoint_interval = 4}, "need gradient = checkpointed, not automatic");
  check_refused({.gradient = GradientMode::checkpointed}, "needs exactly one of");
  check_refused({.mode = ExecutionMode::hybrid, .gradient = GradientMode::full},
                "choose mode = lazy");
  check_refused({.mode = ExecutionMode::eager,
                 .gradient = GradientMode::full,
                 .run = {.memory_budget = 1'000}},
                "leave the budget out");
  check_refused(
      {.accumulation = 1 << 11, .parallelism = ParallelMode::data_parallel, .workers = 1 << 11},
      "1048576 parts that a batch can be cut into; give fewer");
  check_refused({.gradient = GradientMode::checkpointed,
                 .checkpoint_interval = 4,
                 .checkpoint_fraction = 0.5},
                "needs exactly one of");
  check_refused({.gradient = GradientMode::checkpointed, .checkpoint_interval = 0},
                "checkpoint_interval is 0");
  check_refused({.gradient = GradientMode::checkpointed, .checkpoint_fraction = 1.5}, "1.5");
  check_refused({.mode = ExecutionMode::eager,
                 .gradient = GradientMode::checkpointed,
                 .checkpoint_fraction = 0.5},
                "eager mode");
  check_refused({.gradient = GradientMode::none, .accumulation = 2},
                "accumulation = 2 has no effect without gradients; set it to 1");
  check_refused({.workers = 2}, "workers need parallelism = data_parallel");
  check_refused({.parallelism = ParallelMode::none, .run = {.threads = 2}},
                "one thread, not on 2; leave threads out");
  check_refused({.stages = 2}, "stages need parallelism = pipeline, not automatic");
  check_refused({.stages = -1}, "stages is -1");
  check_refused({.parallelism = ParallelMode::pipeline}, "has 0 stages");
  check_refused({.parallelism = ParallelMode::pipeline, .stages = 5'000}, "give 1 to 64");
  check_refused({.accumulation = 5'000, .parallelism = ParallelMode::pipeline, .stages = 2},
                "records all its micro-batches first");
  check_refused({.parallelism = ParallelMode::pipeline, .workers = 2, .stages = 2}, "workers");
  check_refused({.mode = ExecutionMode::eager, .parallelism = ParallelMode::pipeline, .stages = 2},
                "needs mode = lazy, not eager");
  check_refused({.parallelism = ParallelMode::pipeline,
                 .stages = 2,
                 .run = {.memory = AllocationPolicy::pooled}},
                "need memory = minimal_peak, not pooled");
  check_refused({.mode = ExecutionMode::eager, .run = {.memory = AllocationPolicy::cached}},
                "needs mode = lazy, not eager");
  check_refused({.mode = ExecutionMode::hybrid, .run = {.memory = AllocationPolicy::cached}},
                "needs mode = lazy, not hybrid");
  const ExecutionStrategy devices{.parallelism = ParallelMode::model_parallel, .devices = {{}, {}}};
  const auto check_devices = [&](auto change, const std::string& text) {
    ExecutionStrategy strategy = devices;
    change(strategy);
    check_refused(strategy, text);
  };
  using Strategy = ExecutionStrategy;
  check_refused({.devices = {{}}}, "devices need parallelism = model_parallel, not automatic");
  check_devices([](Strategy& s) { s.devices.clear(); }, "has 0 devices");
  check_devices([](Strategy& s) { s.devices.resize(65); }, "give 1 to 64");
  check_devices([](Strategy& s) { s.devices[1].memory_budget = -1; }, "devices[1].memory_budget");
  check_devices([](Strategy& s) { s.devices[1].scopes = {""}; }, "devices[1] has a scope");
  check_devices([](Strategy& s) { s.mode = ExecutionMode::hybrid; }, "devices need mode = lazy");
  check_devices([](Strategy& s) { s.run.memory = AllocationPolicy::cached; },
                "need memory = minimal");
  check_devices([](Strategy& s) { s.stages = 2; }, "stages need parallelism = pipeline");
  check_refused({.precision = Precision{.half = DType::f32}}, "precision.half is f32");
  check_refused({.precision = Precision{PrecisionKind::single, DType::f16}},
                "precision.half has no effect in single precision");
  check_refused({.precision = Precision{.half = DType::f16}, .run = {.anomaly = true}},
                "overflow f16");
  CHECK_THROWS_WITH(
      require_valid({.gradient = GradientMode::checkpointed, .checkpoint_planner = "best"}),
      Contains("best"));
}

TEST_CASE("strategies: planners that compute nothing again without a budget are refused") {
  const Tensor weights = Tensor::normal({8, 8}, 1, 0, 0.3);
  const Tensor batch = Tensor::uniform({4, 8}, 2);
  const ModelFunction loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    Var y = b[0];
    for (int layer = 0; layer < 12; ++layer) y = tanh(matmul(y, p[0]));
    return mean(y * y);
  };
  for (const NamedPlanner& planner : named_planners()) {
    std::string name(planner.name);
    if (planner.setting.starts_with(':')) name += name == "fraction" ? ":0.7" : ":4";
    ExecutionStrategy strategy{.gradient = GradientMode::checkpointed, .checkpoint_planner = name};
    CAPTURE(name);
    try {
      require_valid(strategy);
    } catch (const ArgumentError&) {
      check_refused(strategy, "checkpoint_planner = " + name);
      check_refused(strategy, "set memory_budget");
      strategy.run.memory_budget = 1_MiB;
      CHECK_NOTHROW(require_valid(strategy));
      strategy.run.memory_budget = unlimited;
      strategy.parallelism = ParallelMode::pipeline;
      strategy.stages = 2;
      CHECK_NOTHROW(require_valid(strategy));
      continue;
    }
    const Report report = Execution(strategy).gradients(loss, {&weights, 1}, {&batch, 1}).report();
    CHECK(report.recomputed > 0);
  }
  ExecutionStrategy devices{.gradient = GradientMode::checkpointed,
                            .checkpoint_planner = "auto",
                            .parallelism = ParallelMode::model_parallel,
                            .devices = {{}, {}}};
  check_refused(devices, "set memory_budget");
  devices.devices[1].memory_budget = 1_MiB;
  CHECK_NOTHROW(require_valid(devices));
}

TEST_CASE("strategies: a line says what is not as by default") {
  std::ostringstream stream;
  stream << ExecutionStrategy{.mode = ExecutionMode::hybrid,
                              .stage = {.nodes = 10},
                              .precision = Precision{.half = DType::f16},
                              .gradient = GradientMode::checkpointed,
                              .checkpoint_interval = 8,
                              .accumulation = 4,
                              .parallelism = ParallelMode::data_parallel,
                              .workers = 2,
                              .run = {.memory_budget = 256_MiB,
                                      .threads = 4,
                                      .memory = AllocationPolicy::pooled,
                                      .fuse = false,
                                      .profile = true}};
  for (const char* part :
       {"hybrid", "10 nodes", "in mixed f16", "every 8 nodes", "4 micro-batches", "pooled memory",
        "within 256 MiB", "2 replicas", "4 threads", "no fusion", "profiled"}) {
    CHECK_THAT(stream.str(), Contains(part));
  }
  CHECK(ExecutionStrategy{}.summary() == "lazy");
  CHECK(ExecutionStrategy{.accumulation = 4, .parallelism = ParallelMode::pipeline, .stages = 2}
            .summary() == "lazy, 4 micro-batches, a pipeline of 2 stages");
  CHECK(ExecutionStrategy{.parallelism = ParallelMode::model_parallel, .devices = {{}, {}}}
            .summary() == "lazy, on 2 devices");
}

}  // namespace
}  // namespace palimpsest::execution_strategy_test
