#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "checkpoint/stores/spill_file.h"
#include "palimpsest.h"
#include "strategy/training/training_state.h"
#include "tests/catch.h"
#include "tests/checkpoint/stores/records.h"
#include "tests/mutations/check_mutations.h"
#include "tests/mutations/mutations.h"
#include "tests/temporary_directory.h"
#include "tests/temporary_file.h"

namespace formats_test {

using namespace palimpsest;

namespace {

/// A program with products, fused groups, views, outputs that take over inputs, and several
/// targets.
Var record_model(Tape& tape) {
  Var x = tape.constant(Tensor::uniform({4, 6}, 1, -1, 1), "x");
  const Var w = tape.parameter(Tensor::uniform({6, 6}, 2, -1, 1), "w");
  const Var b = tape.parameter(Tensor::uniform({6}, 3, -1, 1), "b");
  for (int layer = 0; layer < 2; ++layer) x = tanh(matmul(x, w) + b) + reshape(x * 0.5, {4, 6});
  return mean(softmax(x) * x);
}

std::string content_of(const std::function<void(const std::string& path)>& write) {
  const TemporaryFile file;
  write(file.path());
  return file.read();
}

}  // namespace

TEST_CASE("mutated graph files are refused, or hold a graph that can be planned") {
  Tape tape;
  const Var loss = record_model(tape);
  const std::string content =
      content_of([&](const std::string& path) { write_graph(loss, path, {.threads = 2}); });
  check_file_mutations(content, true, [&](const std::string& path) {
    const Graph graph = read_graph(path);
    if (graph.node_count() > 0) make_plan(graph, *keep_all());
    write_graph(graph, path);
    if (!(read_graph(path) == graph)) throw InternalError("another graph is written");
  });
}

TEST_CASE("mutated schedule files are refused, or hold a schedule that can be looked at") {
  Tape tape;
  const Var loss = record_model(tape);
  const TemporaryFile file;
  write_graph(loss, file.path());
  const Graph graph = read_graph(file.path());
  const Plan plan = make_plan(graph, *square_root());
  const std::string content =
      content_of([&](const std::string& path) { write_schedule(plan.schedule, path); });
  check_file_mutations(content, true, [&](const std::string& path) {
    const Schedule schedule = read_schedule(path);
    try {
      make_plan(graph, *given(schedule));
    } catch (const ScheduleError&) {
    }
    write_schedule(schedule, path);
    const Schedule read = read_schedule(path);
    if (!(read == schedule) || read.graph != schedule.graph) {
      throw InternalError("another schedule is written");
    }
  });
}

TEST_CASE("mutated machine files are refused, or hold a machine that can be planned for") {
  Machine machine;
  machine.caches[0] = {1 << 20, 1e11};
  machine.products = {.f32 = 1e11, .f64 = 5e10, .bf16 = 2e11};
  Tape tape;
  const Var loss = record_model(tape);
  check_file_mutations(
      content_of([&](const std::string& path) { write_machine(machine, path); }), true,
      [&](const std::string& path) {
        const Machine read = read_machine(path);
        write_machine(read, path);
        if (!(read_machine(path) == read)) throw InternalError("another machine is written");
        const ValueId target = loss.id();
        try {
          graph_of(tape, {&target, 1}, 1, {}, read);
        } catch (const ArgumentError&) {  // rates that would make a node run forever
        }
      });
}

TEST_CASE("mutated strategies are refused, or hold a strategy that is written the same") {
  const ExecutionStrategy strategy{.mode = ExecutionMode::hybrid,
                                   .stage = {.nodes = 7, .bytes = 1000},
                                   .precision = Precision{},
                                   .gradient = GradientMode::checkpointed,
                                   .checkpoint_planner = "uniform:3",
                                   .accumulation = 2,
                                   .run = {.memory_budget = 1 << 20, .threads = 2}};
  check_mutations(to_json(strategy), true, [](const std::string& text) {
    const ExecutionStrategy read = strategy_from_json(text);
    if (!(strategy_from_json(to_json(read)) == read)) {
      throw InternalError("another strategy is written");
    }
    read.summary();
  });
}

TEST_CASE("mutated layer settings are refused, or hold settings that are written the same") {
  const LayerCheckpointing layers{.mode = LayerCheckpointing::Mode::listed,
                                  .layers = {1, 4, 7},
                                  .sublayers = {.attention = true, .feed_forward = false},
                                  .max_kept = 3,
                                  .codec = Codec::half};
  check_mutations(to_json(layers), true, [](const std::string& text) {
    const LayerCheckpointing read = layer_checkpointing_from_json(text);
    if (!(layer_checkpointing_from_json(to_json(read)) == read)) {
      throw InternalError("other settings are written");
    }
  });
}

TEST_CASE("mutated safetensors files are refused, or hold tensors that are written the same") {
  const NamedTensors tensors{{"weight", Tensor::uniform({3, 5}, 1, -1, 1)},
                             {"bias", Tensor::uniform({5}, 2, -1, 1, DType::f64)},
                             {"empty", Tensor({0, 4}, DType::i64)},
                             {"mask", Tensor::full({4}, 1, DType::boolean)}};
  const std::string content =
      content_of([&](const std::string& path) { save_safetensors(path, tensors); });
  const auto reader = GENERATE(load_safetensors, map_safetensors);
  for (const bool json : {false, true}) {
    check_file_mutations(content, json, [&](const std::string& path) {
      const NamedTensors read = reader(path, {});
      save_safetensors(path, read);
      const NamedTensors again = load_safetensors(path);
      const bool same = std::ranges::equal(read, again, [](const auto& a, const auto& b) {
        return a.first == b.first && same_bits(a.second, b.second);
      });
      if (!same) throw InternalError("other tensors are written");
    });
  }
}

TEST_CASE("mutated training files are refused, or hold a state that is written the same") {
  const TrainingState state{
      {{"parameters", {{"weight", Tensor::uniform({3, 5}, 1, -1, 1)}}}, {"empty", {}}},
      {{"epoch", 12}, {"shard", "first"}}};
  const std::string content =
      content_of([&](const std::string& path) { write_training_state(path, state); });
  for (const bool json : {false, true}) {
    check_file_mutations(content, json, [](const std::string& path) {
      const TrainingState read = read_training_state(path);
      write_training_state(path, read);
      const TrainingState again = read_training_state(path);
      bool same = again.position == read.position && again.parts.size() == read.parts.size();
      for (const auto& [name, part] : read.parts) {
        for (const auto& [entry, tensor] : part) {
          same = same && same_bits(tensor, again.parts.at(name).at(entry));
        }
      }
      if (!same) throw InternalError("another state is written");
    });
  }
}

TEST_CASE("JSON that is nested a million deep is refused") {
  const std::string deep = std::string(1'000'000, '[');
  const TemporaryFile file;
  file.write(deep);
  CHECK_THROWS_AS(read_graph(file.path()), FileError);
  CHECK_THROWS_AS(read_schedule(file.path()), FileError);
  CHECK_THROWS_AS(strategy_from_json(deep), FileError);
  const auto length = static_cast<std::uint64_t>(deep.size());
  std::string prefix(8, '\0');
  for (std::size_t i = 0; i < prefix.size(); ++i) prefix[i] = static_cast<char>(length >> 8 * i);
  file.write(prefix + deep);
  CHECK_THROWS_AS(load_safetensors(file.path()), FileError);
  std::string closed = deep + std::string(deep.size(), ']');
  file.write(R"({"format":"palimpsest-graph","version":1,"name":)" + closed + "}");
  CHECK_THROWS_AS(read_graph(file.path()), FileError);
}

TEST_CASE("spill files that are mutated while they are in use give what was written, or an error") {
  const bool compress = GENERATE(false, true);
  const tests::Sizes sizes{{1'500}, {4'000, DType::f32}};
  const TemporaryDirectory directory;
  SpillFile file(directory.path(), sizes, {.compress = compress});
  const tests::Record record(sizes, 8);
  constexpr std::uint32_t slot = 1;
  const auto write = [&] {
    file.write(0, 11, record.bytes());
    file.write(slot, 12, record.bytes());
    file.finish();
  };
  write();
  std::ifstream stream(file.path(), std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  int refused = 0;
  const int wanted = mutations_wanted();
  for (int seed = 0; seed < wanted; ++seed) {
    Mutations mutations(static_cast<std::uint64_t>(seed));
    const std::string mutated = mutations.of_bytes(content);
    std::ofstream(file.path(), std::ios::binary | std::ios::in | std::ios::trunc) << mutated;
    tests::Record read(sizes, 0);
    forget_allocations();
    try {
      file.prefetch(slot, 12, read.room());
      file.wait(slot);
      CHECK(read == record);
    } catch (const FileError&) {
      ++refused;
    }
    CHECK(largest_allocation() < std::size_t{1} << 22);
    if (seed % 16 == 0) write();  // writes into a damaged file
  }
  CHECK(refused > 0);
  write();
  tests::Record read(sizes, 0);
  file.prefetch(slot, 12, read.room());
  file.wait(slot);
  CHECK(read == record);
}

}  // namespace formats_test
