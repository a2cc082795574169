#include "benchmarks/calibration.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace palimpsest::benchmarks {
namespace {

constexpr std::size_t objects = 20'000;

struct Object {
  std::uint64_t key;
  std::vector<std::uint32_t> before;
};

/// One pass of the loop. The result depends on all of its work.
std::uint64_t pass() {
  std::minstd_rand random;
  std::vector<std::unique_ptr<Object>> made;
  std::unordered_map<std::uint64_t, std::uint32_t> index;
  for (std::uint32_t i = 0; i < objects; ++i) {
    const std::uint64_t key = std::uint64_t{random()} * 2'654'435'761U;
    made.push_back(std::make_unique<Object>(Object{key, {}}));
    for (std::uint32_t back = 1; back <= std::min<std::uint32_t>(i, 3); ++back) {
      made.back()->before.push_back(i - back * back % (i + 1));
    }
    index.emplace(key, i);
  }
  std::ranges::sort(made, {}, [](const auto& object) { return object->key; });
  std::uint64_t sum = 0;
  for (const auto& object : made) {
    for (const std::uint32_t before : object->before) sum += made[before]->key ^ sum >> 7;
    sum += index.at(object->key);
  }
  return sum;
}

void calibration(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(pass());
}

}  // namespace

void register_calibration() {
  benchmark::RegisterBenchmark("calibration", calibration)
      ->Unit(benchmark::kMillisecond)
      ->Repetitions(5);
}

double in_calibration_objects(double seconds, const Results& results) {
  return seconds / results.seconds("calibration") * static_cast<double>(objects);
}

}  // namespace palimpsest::benchmarks
