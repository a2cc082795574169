#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autodiff/files.h"
#include "data/csv_dataset.h"
#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/mutations/failing_calls.h"
#include "tests/temporary_directory.h"

namespace file_faults_test {

using namespace palimpsest;

namespace {

/// Calls `work` and makes its file system call number `n` fail. `refused` tells whether `work`
/// threw one of the library's errors.
struct Failing {
  explicit Failing(std::int64_t n, const std::function<void()>& work) {
    fail_file_call(n);
    try {
      work();
    } catch (const FileError&) {
      refused = true;
    } catch (const EnvironmentError&) {
      refused = true;
    } catch (...) {
      function = end_failing_calls();
      throw;
    }
    function = end_failing_calls();
  }
  bool ended() const { return function == nullptr; }
  bool left_something() const {
    return std::strcmp(function, "remove") == 0 || std::strcmp(function, "unlink") == 0;
  }

  bool refused = false;
  const char* function = nullptr;
};

std::string content_of(const std::string& path) { return read_file(path, "test"); }

struct Format {
  std::string name;
  std::function<void(const std::string& path)> write;
  std::function<void(const std::string& path)> read;  // throws when the file has another content
};

Var record_model(Tape& tape) {
  const Var x = tape.constant(Tensor::uniform({4, 6}, 1, -1, 1), "x");
  const Var w = tape.parameter(Tensor::uniform({6, 6}, 2, -1, 1), "w");
  return mean(softmax(tanh(matmul(x, w))) * x);
}

void require_same(bool same) {
  if (!same) throw InternalError("something else was read");
}

std::vector<Format> formats(const Var& loss) {
  const Plan plan = plan_backward(loss);
  const Graph graph = [&] {
    const TemporaryDirectory directory;
    write_graph(loss, directory.path() + "/graph");
    return read_graph(directory.path() + "/graph");
  }();
  const NamedTensors tensors{{"w", Tensor::uniform({300, 100}, 1, -1, 1)}};
  const ExecutionStrategy strategy{.mode = ExecutionMode::hybrid, .run = {.threads = 2}};
  const LayerCheckpointing layers{.mode = LayerCheckpointing::Mode::listed, .layers = {1, 4}};
  Machine machine;
  machine.products.f32 = 1e11;
  return {
      {"graph", [=](const std::string& path) { write_graph(graph, path); },
       [=](const std::string& path) { require_same(read_graph(path) == graph); }},
      {"schedule", [=](const std::string& path) { write_schedule(plan.schedule, path); },
       [=](const std::string& path) { require_same(read_schedule(path) == plan.schedule); }},
      {"machine", [=](const std::string& path) { write_machine(machine, path); },
       [=](const std::string& path) { require_same(read_machine(path) == machine); }},
      {"strategy", [=](const std::string& path) { write_strategy(strategy, path); },
       [=](const std::string& path) { require_same(read_strategy(path) == strategy); }},
      {"layers", [=](const std::string& path) { write_layer_checkpointing(layers, path); },
       [=](const std::string& path) { require_same(read_layer_checkpointing(path) == layers); }},
      {"tensors", [=](const std::string& path) { save_safetensors(path, tensors); },
       [=](const std::string& path) {
         require_same(same_bits(load_safetensors(path).at("w"), tensors.at("w")));
       }},
      {"mapped tensors", [=](const std::string& path) { save_safetensors(path, tensors); },
       [=](const std::string& path) {
         require_same(same_bits(map_safetensors(path).at("w"), tensors.at("w")));
       }},
      {"csv", [](const std::string& path) { write_file(path, "a,b\n1,2\n3,4\n", "test"); },
       [](const std::string& path) {
         require_same(same_bits(read_csv(path).rows({1, 0})[1], Tensor::from<double>({4, 2}, {2})));
       }},
  };
}

}  // namespace

TEST_CASE("whichever call to the file system fails, a file is the old one or the new one") {
  Tape tape;
  for (const Format& format : formats(record_model(tape))) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/file";
    format.write(path);
    const std::string wanted = content_of(path);
    for (const bool replaces : {false, true}) {
      for (std::int64_t n = 0;; ++n) {
        std::filesystem::remove(path);
        if (replaces) write_file(path, "old", "test");
        const Failing failing(n, [&] { format.write(path); });
        if (failing.ended()) {
          CHECK(n > 2);
          break;
        }
        INFO(format.name << ", call " << n << ", " << failing.function);
        const bool is_there = std::filesystem::exists(path);
        if (failing.refused) {
          CHECK(is_there == replaces);
          if (is_there) CHECK(content_of(path) == "old");
        } else {
          REQUIRE(is_there);
          CHECK(content_of(path) == wanted);
        }
        std::vector<std::string> others = directory.files();
        std::erase(others, path);
        CHECK(others.empty() != failing.left_something());
        for (const std::string& other : others) std::filesystem::remove(other);
        format.write(path);
        CHECK(content_of(path) == wanted);
      }
    }
  }
}

TEST_CASE(
    "whichever call to the file system fails, what is read is what was written, or an error") {
  Tape tape;
  for (const Format& format : formats(record_model(tape))) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/file";
    format.write(path);
    for (std::int64_t n = 0;; ++n) {
      INFO(format.name << ", call " << n);
      std::optional<Failing> failing;
      CHECK_NOTHROW(failing.emplace(n, [&] { format.read(path); }));
      if (!failing) break;
      if (failing->ended()) {
        CHECK(n > 1);
        break;
      }
    }
    format.read(path);
  }
}

TEST_CASE("whichever call to the file system fails, a loop on disk has its gradient, or an error") {
  const bool compress = GENERATE(false, true);
  const TemporaryDirectory directory;
  const Tensor start = Tensor::uniform({2000}, 1, -1, 1, DType::f64);
  const auto run = [&] {
    Tape tape;
    const Var u = tape.parameter(start);
    const Var end = scan(u, compress ? 150 : 60,
                         [](const Var& x, const StepNumber&) { return x + 0.1 * sin(x); },
                         {.spill = directory.path(),
                          .spill_options = {.compress = compress},
                          .disk_costs = DiskCosts{0.1, 0.1}});
    return backward(sum(end * end), {.memory_budget = compress ? 1_MiB : 256_KiB, .threads = 1})[u];
  };
  const Tensor expected = run();
  CHECK(directory.files().empty());
  for (std::int64_t n = 0;; n += 1 + n / 8) {
    Tensor found;
    const Failing failing(n, [&] { found = run(); });
    if (failing.ended()) {
      CHECK(n > 10);
      break;
    }
    INFO("call " << n << ", " << failing.function);
    if (!failing.refused) CHECK(same_bits(found, expected));
    // The next run removes what this run could not remove or could not stat.
    const bool looked = std::strstr(failing.function, "stat") != nullptr;
    if (!failing.left_something() && !looked) CHECK(directory.files().empty());
    CHECK(same_bits(run(), expected));
    CHECK(directory.files().empty());
  }
}

}  // namespace file_faults_test
