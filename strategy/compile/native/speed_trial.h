#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace palimpsest {

/// Compares native code of a program with the interpreter, by the times of runs of both. Both serve
/// in turns until one of them is known to be faster. The caller measures, so nothing here depends
/// on a clock.
class SpeedTrial {
 public:
  enum class Outcome : std::uint8_t { open, native, interpreter };

  /// Whether the next run is to be native. Two native runs are followed by two interpreted ones.
  bool next_is_native() const { return (native_.runs + since_native_) % 4 < 2; }
  /// Adds the time of a run. Interpreted runs before the first native one count as well.
  void add(bool native, double seconds);
  Outcome outcome() const { return outcome_; }

  /// The least time of the last runs; 0 without runs.
  double native_seconds() const { return native_.least(); }
  double interpreted_seconds() const { return interpreted_.least(); }

 private:
  /// The last runs of one kind.
  struct Runs {
    void add(double seconds);
    double least() const;
    double most() const;

    std::uint32_t runs = 0;
    double sum = 0;            // of all runs, in seconds
    std::vector<double> last;  // seconds of at most `enough` runs
  };
  Outcome decide() const;

  /// The least of so many runs is not a matter of luck.
  static constexpr std::uint32_t enough = 8;
  /// Two runs are enough if they are long and all times of one kind are less than all of the other.
  static constexpr std::uint32_t enough_long = 2;
  static constexpr double long_seconds = 0.02;

  Runs native_;
  Runs interpreted_;
  std::uint32_t since_native_ = 0;  // interpreted runs after the first native one
  Outcome outcome_ = Outcome::open;
};

}  // namespace palimpsest
