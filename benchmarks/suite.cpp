#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "benchmarks/claims.h"

namespace palimpsest::benchmarks {
namespace {

// Google Benchmark 1.8 renamed the member `error_occurred`.
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

  // "" and "." are Google Benchmark's defaults, which match everything.
  Results results{benchmark::GetBenchmarkFilter() != "" && benchmark::GetBenchmarkFilter() != "."};
  bool any_failed = false;
};

// Removes `--claims=FILE` from the arguments; Google Benchmark rejects unknown options.
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
