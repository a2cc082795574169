#include "benchmarks/claims.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace palimpsest::benchmarks {

void Results::add(const std::string& benchmark, Run run) {
  const auto [entry, fresh] = runs_.try_emplace(benchmark, run);
  if (fresh) return;
  Run& known = entry->second;
  known.seconds = std::min(known.seconds, run.seconds);
  known.cpu_seconds = std::min(known.cpu_seconds, run.cpu_seconds);
  for (const auto& [name, value] : run.counters) {
    const auto [counter, first] = known.counters.try_emplace(name, value);
    if (first) continue;
    // Keep the worst value: a claim must hold for every repetition.
    counter->second = name == "exact" || name == "agree" || name == "same_bits"
                          ? std::min(counter->second, value)
                          : std::max(counter->second, value);
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

double least_of(std::span<const double> measured) {
  double least = NAN;
  for (const double each : measured) {
    if (!(each >= least)) least = std::isnan(each) ? least : each;
  }
  return least;
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

void Claims::print(std::ostream& stream) const {
  std::size_t width = 0;
  for (const Claim& claim : claims_) width = std::max(width, claim.text.size());
  for (const Claim& claim : claims_) {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, " %10.4g   measured %10.4g ", claim.target,
                  claim.measured);
    const char* const verdict = claim.holds                  ? "holds     "
                                : std::isnan(claim.measured) ? "NO VALUE  "
                                                             : "FAILS     ";
    stream << verdict << claim.text << std::string(width - claim.text.size(), ' ') << numbers
           << claim.unit << '\n';
  }
}

}  // namespace palimpsest::benchmarks
