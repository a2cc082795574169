#include "benchmarks/turns.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

namespace palimpsest::benchmarks {
namespace {

constexpr double turn_seconds = 0.02;
constexpr std::size_t least_rounds = 7;
constexpr int warm_up = 2;
// Threads of other runtimes keep spinning for some milliseconds after their work.
constexpr std::chrono::milliseconds pause{10};

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> numbers) {
  if (numbers.empty()) throw std::out_of_range("the median of nothing");
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

void Turns::add(const std::string& name, Run run) { entries_[name] = {std::move(run), {}}; }

void Turns::add_once(const std::string& name, const std::function<void()>& once) {
  add(name, [once](std::int64_t times) {
    const double start = now();
    for (std::int64_t i = 0; i < times; ++i) once();
    return now() - start;
  });
}

void Turns::take(double seconds) {
  std::map<std::string, std::int64_t> times;
  for (auto& [name, entry] : entries_) {
    entry.run(warm_up);
    // A few runs of microseconds would not predict the time of many runs.
    const double once = entry.run(1);
    const auto enough = [](double each) {
      return std::max<std::int64_t>(1, std::llround(turn_seconds / std::max(each, 1e-7)));
    };
    const std::int64_t first = std::min<std::int64_t>(enough(once), 1000);
    times[name] = enough(entry.run(first) / static_cast<double>(first));
  }
  const double start = now();
  for (std::size_t round = 0; round < least_rounds || now() - start < seconds; ++round) {
    for (auto& [name, entry] : entries_) {
      std::this_thread::sleep_for(pause);
      entry.seconds.push_back(entry.run(times[name]) / static_cast<double>(times[name]));
    }
  }
}

double Turns::seconds(const std::string& name) const { return median(entries_.at(name).seconds); }

double Turns::ratio(const std::string& a, const std::string& b) const {
  std::vector<double> ratios = entries_.at(a).seconds;
  const std::vector<double>& others = entries_.at(b).seconds;
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= others[i];
  return median(ratios);
}

}  // namespace palimpsest::benchmarks
