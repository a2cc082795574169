#include <rapidcheck.h>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace palimpsest::strategy_file_test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("strategy files: strategies survive being written and read") {
  const TemporaryFile file;
  for (const NamedStrategy& named : named_strategies()) {
    write_strategy(named.strategy, file.path());
    CHECK(read_strategy(file.path()) == named.strategy);
  }
  CHECK(rc::check("any valid strategy", [&] {
    ExecutionStrategy s;
    s.mode = *rc::gen::element(ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid);
    if (s.mode == ExecutionMode::hybrid) {
      s.stage = {*rc::gen::inRange(1u, 100u), *rc::gen::inRange<Bytes>(1, 1'000'000)};
    }
    if (*rc::gen::arbitrary<bool>()) {
      using enum PrecisionKind;
      s.precision = Precision{*rc::gen::element(full, single, half, mixed)};
      if (is_half(s.precision->narrow()) && *rc::gen::arbitrary<bool>()) {
        s.precision->half = DType::f16;
      }
    }
    s.gradient = *rc::gen::element(GradientMode::none, GradientMode::automatic, GradientMode::full,
                                   GradientMode::checkpointed);
    if (*rc::gen::arbitrary<bool>()) s.run.memory_budget = *rc::gen::inRange<Bytes>(0, 1'000'000);
    if (s.gradient == GradientMode::full) {
      s.mode = ExecutionMode::lazy;
      s.stage = {};
    }
    if (s.gradient == GradientMode::checkpointed) {
      if (s.mode == ExecutionMode::eager) s.mode = ExecutionMode::lazy;
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          s.checkpoint_interval = *rc::gen::inRange(1u, 100u);
          break;
        case 1:
          s.checkpoint_fraction = *rc::gen::inRange(0, 1'000) / 1'000.0;
          break;
        default:
          s.checkpoint_planner = *rc::gen::element<std::string>("auto", "square_root", "uniform:8");
          if (s.checkpoint_planner == "auto" && s.run.memory_budget == unlimited) {
            s.run.memory_budget = 1'000;
          }
      }
    }
    if (s.gradient != GradientMode::none) s.accumulation = *rc::gen::inRange(1, 100);
    s.run.memory = *rc::gen::element(AllocationPolicy::minimal_peak, AllocationPolicy::pooled,
                                     AllocationPolicy::standard, AllocationPolicy::cached);
    if (s.run.memory == AllocationPolicy::cached) {
      s.mode = ExecutionMode::lazy;
      s.stage = {};
    }
    s.parallelism =
        *rc::gen::element(ParallelMode::none, ParallelMode::automatic, ParallelMode::data_parallel);
    if (s.parallelism == ParallelMode::data_parallel) s.workers = *rc::gen::inRange(0, 9);
    const bool fits_pipeline =
        s.mode == ExecutionMode::lazy && s.run.memory == AllocationPolicy::minimal_peak;
    if (fits_pipeline && *rc::gen::arbitrary<bool>()) {
      s.parallelism = ParallelMode::pipeline;
      s.workers = 0;
      s.stages = *rc::gen::inRange(1, 9);
      s.accumulation = *rc::gen::inRange(1, 9);
    }
    if (fits_pipeline && s.parallelism != ParallelMode::pipeline && *rc::gen::inRange(0, 3) == 0) {
      s.parallelism = ParallelMode::model_parallel;
      s.workers = 0;
      s.devices.resize(*rc::gen::inRange<std::size_t>(1, 5));
      for (Device& device : s.devices) {
        if (*rc::gen::arbitrary<bool>()) device.memory_budget = *rc::gen::inRange<Bytes>(0, 1'000);
        if (*rc::gen::arbitrary<bool>()) device.scopes = {"layer", "out/\"1\""};
      }
    }
    if (s.parallelism != ParallelMode::none) s.run.threads = *rc::gen::inRange(0, 9);
    s.run.fuse = *rc::gen::arbitrary<bool>();
    s.run.profile = *rc::gen::arbitrary<bool>();
    s.run.native = *rc::gen::element(NativeCode::off, NativeCode::automatic, NativeCode::at_once);
    const bool is_scaled = s.precision && s.precision->needs_scaling();
    s.run.anomaly = !is_scaled && *rc::gen::arbitrary<bool>();
    write_strategy(s, file.path());
    RC_ASSERT(read_strategy(file.path()) == s);
    RC_ASSERT(strategy_from_json(to_json(s)) == s);
  }));
}

TEST_CASE("strategy files: whatever is wrong is an error that names the place") {
  const auto with = [](const std::string& members) {
    return R"({"format":"palimpsest-strategy","version":1,)" + members + "}";
  };
  const struct {
    std::string content;
    std::string words;
  } rows[] = {
      {with(R"("mode":"fast")"), "mode: \"fast\" is unknown; use one of lazy, eager, hybrid"},
      {with(R"("mode":3)"), "mode: 3 is not a string"},
      {with(R"("colour":1)"), "\"colour\" is unknown"},
      {with(R"("stage":{"nodes":-1})"), "stage.nodes: -1 is negative"},
      {with(R"("stage":{"nodes":4294967296})"), "stage.nodes: 4294967296 is too large"},
      {with(R"("stage":{"steps":1})"), "stage: \"steps\" is unknown"},
      {with(R"("stage":{"nodes":5})"), "stage needs mode = hybrid"},
      {with(R"("gradient":"checkpointed")"), "needs exactly one of"},
      {with(R"("precision":"mixed")"), "precision: "},
      {with(R"("precision":{"kind":"double"})"), "precision.kind: \"double\" is unknown"},
      {with(R"("precision":{"half":"f32"})"), "precision.half: \"f32\" is unknown"},
      {with(R"("gradient":"some")"), "gradient: \"some\""},
      {with(R"("checkpoint_fraction":"half")"), "checkpoint_fraction: this string is not a number"},
      {with(R"("gradient":"checkpointed","checkpoint_fraction":2)"), "checkpoint_fraction is 2"},
      {with(R"("accumulation":1.5)"), "accumulation: 1.5 is not a whole number"},
      {with(R"("accumulation":3000000000)"), "accumulation: 3000000000 is too large"},
      {with(R"("accumulation":0)"), "accumulation is 0"},
      {with(R"("memory":"arena")"), "minimal_peak, pooled, standard, cached"},
      {with(R"("memory_budget":-1)"), "memory_budget: -1 is negative"},
      {with(R"("parallelism":"pipes")"), "none, automatic, data_parallel, pipeline"},
      {with(R"("parallelism":"data_parallel","workers":-1)"), "workers: -1 is negative"},
      {with(R"("workers":2)"), "workers need parallelism = data_parallel"},
      {with(R"("parallelism":"pipeline","stages":65)"), "has 65 stages; give 1 to 64"},
      {with(R"("stages":"two")"), "stages: this string is not a whole number"},
      {with(R"("parallelism":"model_parallel")"), "has 0 devices"},
      {with(R"("devices":{})"), "devices: this object is not a list"},
      {with(R"("devices":[{"memory":1}])"), "devices[0]: \"memory\" is unknown"},
      {with(R"("devices":[{},{"memory_budget":-1}])"), "devices[1].memory_budget: -1 is negative"},
      {with(R"("devices":[{"scopes":[1]}])"), "devices[0].scopes[0]: 1 is not a string"},
      {with(R"("gradient":"checkpointed","checkpoint_planner":"best")"), "best"},
      {with(R"("gradient":"checkpointed","checkpoint_interval":0)"), "checkpoint_interval is 0"},
      {with(R"("checkpoint_interval":2)"), "need gradient = checkpointed"},
      {with(R"("fusion":1)"), "fusion: 1 is not true or false"},
      {with(R"("profiling":"yes")"), "profiling: this string is not true or false"},
      {with(R"("anomaly":0)"), "anomaly: 0 is not true or false"},
      {with(R"("threads":2,"threads":3)"), "\"threads\" occurs twice"},
  };
  const TemporaryFile file;
  for (const auto& row : rows) {
    file.write(row.content);
    CHECK_THROWS_WITH(read_strategy(file.path()),
                      Contains("[read_strategy] " + file.path()) && Contains(row.words));
    CHECK_THROWS_WITH(strategy_from_json(row.content),
                      Contains("[strategy_from_json] the text") && Contains(row.words));
  }
  CHECK_THROWS_AS(read_strategy("/nowhere/strategy.json"), FileError);
  CHECK_THROWS_AS(write_strategy({.accumulation = 0}, file.path()), ArgumentError);
  CHECK_THROWS_AS(to_json(ExecutionStrategy{.accumulation = 0}), ArgumentError);
  CHECK_THROWS_WITH(strategy_from_json("{\"mode\":"), Contains("the text, byte"));
  CHECK_THROWS_WITH(
      to_json({.parallelism = ParallelMode::model_parallel, .devices = {{.scopes = {"\xff"}}}}),
      Contains("[strategy] a scope") && Contains("is not UTF-8; rename it"));
}

}  // namespace
}  // namespace palimpsest::strategy_file_test
