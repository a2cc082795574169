#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace palimpsest::benchmarks {

/// Times several functions in turns, round after round, so that other work on the machine affects
/// all of them alike. Results are medians over the rounds, of times and of ratios.
class Turns {
 public:
  /// Runs the function `times` times and returns the seconds that this took.
  using Run = std::function<double(std::int64_t times)>;

  void add(const std::string& name, Run run);
  /// Adds a function that runs once per call.
  void add_once(const std::string& name, const std::function<void()>& once);

  /// Runs everything a few times without timing. Then takes rounds for about `seconds`, at least
  /// seven. In each round, each function runs for about a fiftieth of a second.
  void take(double seconds);

  /// Median seconds of one run.
  double seconds(const std::string& name) const;
  /// Median over the rounds of the time of `a` over that of `b`.
  double ratio(const std::string& a, const std::string& b) const;

 private:
  struct Entry {
    Run run;
    std::vector<double> seconds;  ///< of one run, by round
  };
  std::map<std::string, Entry> entries_;
};

/// Throws `std::out_of_range` when `numbers` is empty.
double median(std::vector<double> numbers);

/// Seconds since the clock's epoch.
double now();

}  // namespace palimpsest::benchmarks
