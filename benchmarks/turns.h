#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace palimpsest::benchmarks {

/// Things that are timed in turns, round after round, so that what else the machine does weighs on
/// all of them alike. What comes out are medians over the rounds, of times and of ratios.
class Turns {
 public:
  /// Does its thing so many times and returns the seconds that this took.
  using Run = std::function<double(std::int64_t times)>;

  void add(const std::string& name, Run run);
  /// The same for a function that does the thing once.
  void add_once(const std::string& name, const std::function<void()>& once);

  /// Runs everything a few times untimed, then takes rounds for about `seconds` and seven at least,
  /// in which each thing is done as often as fills a fiftieth of a second.
  void take(double seconds);

  /// Median seconds of one time.
  double seconds(const std::string& name) const;
  /// Median over the rounds of the time `a` took over that of `b`.
  double ratio(const std::string& a, const std::string& b) const;

 private:
  struct Entry {
    Run run;
    std::vector<double> seconds;  ///< of one time, by round
  };
  std::map<std::string, Entry> entries_;
};

/// Throws `std::out_of_range` when there are none.
double median(std::vector<double> numbers);

/// Seconds since the clock's epoch.
double now();

}  // namespace palimpsest::benchmarks
