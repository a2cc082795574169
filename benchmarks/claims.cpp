#include "benchmarks/claims.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace palimpsest::benchmarks {
namespace {

// Google Benchmark 1.8 renamed the flag.
template <class Run>
bool failed(const Run& run) {
  if constexpr (requires { run.error_occurred; }) {
    return run.error_occurred;
  } else {
    return static_cast<bool>(run.skipped);
  }
}

class Collector : public benchmark::ConsoleReporter {
 public:
  Collector() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      any_failed = any_failed || failed(run);
      if (failed(run) || run.run_type != Run::RT_Iteration) continue;
      std::string name = run.run_name.function_name;
      if (!run.run_name.args.empty()) name += "/" + run.run_name.args;
      const auto iterations = static_cast<double>(run.iterations);
      Results::Run result{
          run.real_accumulated_time / iterations, run.cpu_accumulated_time / iterations, {}};
      for (const auto& [key, counter] : run.counters) result.counters[key] = counter.value;
      results.add(name, std::move(result));
    }
  }

  // Those that match everything are the library's own.
  Results results{benchmark::GetBenchmarkFilter() != "" && benchmark::GetBenchmarkFilter() != "."};
  bool any_failed = false;
};

// Takes `--claims=FILE` out of the arguments; Google Benchmark refuses what it does not know.
std::string take_claims_file(int& argc, char** argv) {
  static constexpr std::string_view flag = "--claims=";
  std::string file;
  char** const end = std::remove_if(argv, argv + argc, [&](const char* argument) {
    if (!std::string_view(argument).starts_with(flag)) return false;
    file = argument + flag.size();
    return true;
  });
  argc = static_cast<int>(end - argv);
  return file;
}

}  // namespace

void Results::add(const std::string& benchmark, Run run) {
  const auto [entry, fresh] = runs_.try_emplace(benchmark, run);
  if (fresh) return;
  Run& known = entry->second;
  known.seconds = std::min(known.seconds, run.seconds);
  known.cpu_seconds = std::min(known.cpu_seconds, run.cpu_seconds);
  for (const auto& [name, value] : run.counters) {
    const auto [counter, first] = known.counters.try_emplace(name, value);
    if (first) continue;
    // Whatever a claim bounds, no repetition may break it.
    counter->second =
        name == "exact" ? std::min(counter->second, value) : std::max(counter->second, value);
  }
}

const Results::Run* Results::run(const std::string& benchmark) const {
  const auto entry = runs_.find(benchmark);
  if (entry != runs_.end()) return &entry->second;
  if (partial_) return nullptr;
  throw std::out_of_range("no benchmark " + benchmark + " was run");
}

double Results::seconds(const std::string& benchmark) const {
  const Run* const found = run(benchmark);
  return found == nullptr ? NAN : found->seconds;
}

double Results::cpu_seconds(const std::string& benchmark) const {
  const Run* const found = run(benchmark);
  return found == nullptr ? NAN : found->cpu_seconds;
}

double Results::counter(const std::string& benchmark, const std::string& name) const {
  const Run* const found = run(benchmark);
  if (found == nullptr) return NAN;
  const auto entry = found->counters.find(name);
  if (entry == found->counters.end()) {
    throw std::out_of_range("benchmark " + benchmark + " has no counter " + name);
  }
  return entry->second;
}

void Claims::at_most(const std::string& subject, double target, double measured, std::string unit) {
  add(subject + " is at most", target, measured, std::move(unit), measured <= target);
}

void Claims::at_least(const std::string& subject, double target, double measured,
                      std::string unit) {
  add(subject + " is at least", target, measured, std::move(unit), measured >= target);
}

void Claims::add(const std::string& text, double target, double measured, std::string unit,
                 bool holds) {
  if (partial_ && std::isnan(measured)) return;
  claims_.push_back({text, target, measured, std::move(unit), holds});
}

bool Claims::all_hold() const {
  return std::all_of(claims_.begin(), claims_.end(), [](const Claim& c) { return c.holds; });
}

void Claims::write_json(std::ostream& stream) const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Claim& claim : claims_) {
    rows.push_back({{"claim", claim.text},
                    {"target", claim.target},
                    {"measured", claim.measured},
                    {"unit", claim.unit},
                    {"holds", claim.holds}});
  }
  stream << rows.dump(2) << '\n';
}

void Claims::print(std::ostream& stream) const {
  std::size_t width = 0;
  for (const Claim& claim : claims_) width = std::max(width, claim.text.size());
  for (const Claim& claim : claims_) {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, " %10.4g   measured %10.4g ", claim.target,
                  claim.measured);
    stream << (claim.holds ? "holds  " : "FAILS  ") << claim.text
           << std::string(width - claim.text.size(), ' ') << numbers << claim.unit << '\n';
  }
}

int run_suite(int argc, char** argv, void (*claim)(const Results&, Claims&)) {
  const std::string claims_file = take_claims_file(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  benchmark::Shutdown();
  if (claims_file.empty()) return collector.any_failed ? 1 : 0;

  Claims claims(collector.results.partial());
  claim(collector.results, claims);
  claims.print(std::cout);
  const auto write = [](const std::string& file, auto&& content) {
    std::ofstream stream(file);
    content(stream);
    if (!stream.flush()) throw std::runtime_error("cannot write " + file);
  };
  write(claims_file, [&](std::ostream& stream) { claims.write_json(stream); });
  if (!claims.picture().empty()) {
    const std::string file = std::filesystem::path(claims_file).replace_extension(".svg").string();
    write(file, [&](std::ostream& stream) { stream << claims.picture(); });
  }
  return claims.all_hold() && !collector.any_failed ? 0 : 1;
}

}  // namespace palimpsest::benchmarks
