#include <filesystem>
#include <fstream>

#include "palimpsest.h"
#include "strategy/base/free_memory.h"
#include "strategy/evaluators/engine.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace palimpsest::free_memory_test {
namespace {

/// Files as the operating system provides them.
struct System {
  TemporaryDirectory root;

  void write(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = root.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  Bytes free() const { return free_memory(root.path()); }
};

TEST_CASE("free memory: what the machine has") {
  const System system;
  CHECK(system.free() == unlimited);
  system.write("/proc/meminfo", "MemTotal:  9000 kB\nMemFree: 1000 kB\nMemAvailable:    3000 kB\n");
  CHECK(system.free() == 3000 * 1024);
  CHECK(free_memory() > 0);
  CHECK(free_memory() < unlimited);
}

TEST_CASE("free memory: control groups of version 2") {
  const System system;
  system.write("/proc/meminfo", "MemAvailable: 1000000 kB\n");
  system.write("/proc/self/cgroup", "0::/user/job\n");
  CHECK(system.free() == 1'024'000'000);
  system.write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  system.write("/sys/fs/cgroup/user/job/memory.current", "5000000\n");
  CHECK(system.free() == 1'024'000'000);
  system.write("/sys/fs/cgroup/user/job/memory.max", "8000000\n");
  CHECK(system.free() == 3'000'000);
  system.write("/sys/fs/cgroup/user/job/memory.stat", "anon 1\ninactive_file 1000000\n");
  CHECK(system.free() == 4'000'000);
  // The limits of enclosing groups count too.
  system.write("/sys/fs/cgroup/user/memory.max", "6000000\n");
  system.write("/sys/fs/cgroup/user/memory.current", "5500000\n");
  CHECK(system.free() == 500'000);
  system.write("/sys/fs/cgroup/user/memory.current", "7000000\n");
  CHECK(system.free() == 0);
}

TEST_CASE("free memory: control groups of version 1, from inside a container") {
  const System system;
  system.write("/proc/self/cgroup", "5:devices:/\n4:cpu,memory:/docker/123\n0::/\n");
  system.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "10000000\n");
  system.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "4000000\n");
  system.write("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 500000\n");
  CHECK(system.free() == 6'500'000);
  system.write("/sys/fs/cgroup/memory/docker/123/memory.limit_in_bytes", "5000000\n");
  system.write("/sys/fs/cgroup/memory/docker/123/memory.usage_in_bytes", "4000000\n");
  CHECK(system.free() == 1'000'000);
}

TEST_CASE("free memory: a budget where a run would take too much of it") {
  int asked = 0;
  const FreeMemory free = [&] {
    ++asked;
    return 160_MiB;
  };
  CHECK_FALSE(budget_of_free_memory(64_MiB, 0, free).has_value());
  CHECK_FALSE(budget_of_free_memory(300_MiB, 300_MiB, free).has_value());
  CHECK(asked == 0);
  CHECK_FALSE(budget_of_free_memory(150_MiB, 0, free).has_value());
  CHECK(budget_of_free_memory(151_MiB, 0, free) == 150_MiB);
  CHECK(budget_of_free_memory(170_MiB, 10_MiB, free) == 160_MiB);
  CHECK_FALSE(budget_of_free_memory(170_MiB, 160_MiB, free).has_value());
}

/// A chain whose gradient takes about 130 MiB with keep-all.
Var large_loss(Tape& tape) {
  const Var x = tape.parameter(Tensor::full({1 << 20}, 0.5, DType::f64));
  Var y = x;
  for (int i = 0; i < 14; ++i) y = cumsum(sin(y), 0) * 1e-6;
  return sum(y * y);
}

TEST_CASE("free memory: runs without a budget keep to it") {
  const auto evaluator = lazy();
  Engine& engine = evaluator->engine();
  Bytes free = unlimited;
  engine.set_free_memory([&] { return free; });
  Tape tape(evaluator);
  const Gradients all = backward(large_loss(tape));
  const Tensor expected = all.entries()[0].gradient.clone();
  const Bytes peak = all.report().measured_peak;
  REQUIRE(peak > 120_MiB);
  CHECK(all.report().budget == unlimited);
  engine.release_arena();
  free = 96_MiB;
  CHECK(plan_backward(large_loss(tape)).predicted_peak() <= 90_MiB);
  for (int step = 0; step < 4; ++step) {
    tape.clear();
    const Gradients some = backward(large_loss(tape));
    CHECK(some.report().budget <= 96_MiB);
    CHECK(some.report().predicted_peak <= some.report().budget);
    CHECK(some.report().measured_peak <= some.report().predicted_peak);
    CHECK(some.report().recomputed > 0);
    CHECK(same_bits(some.entries()[0].gradient, expected));
    if (step > 1) CHECK(some.report().plan_reused);
    free = 5_MiB;  // the rest is kept from the previous step
  }
  // An explicit budget or planner takes precedence.
  tape.clear();
  CHECK(backward(large_loss(tape), {.planner = keep_all()}).report().recomputed == 0);
  tape.clear();
  CHECK(backward(large_loss(tape), {.memory_budget = 2 * peak}).report().recomputed == 0);
}

}  // namespace
}  // namespace palimpsest::free_memory_test
