#pragma once

#include <cmath>

namespace palimpsest {

/// How long runs take, relative to the costs that planners predict. Costs are seconds of a nominal
/// machine and one thread. The programs of one cache learn together, from their latest runs.
class Pace {
 public:
  /// Notes that a run with a predicted cost took `seconds`. Runs are forgotten as later ones follow
  /// whose costs sum up to more than a second.
  void ran(double predicted, double seconds) {
    if (!(predicted > 0) || !std::isfinite(predicted)) return;  // views alone; costs of users
    constexpr double memory = 1;
    const double kept = memory / (memory + predicted);
    predicted_ = kept * predicted_ + predicted;
    seconds_ = kept * seconds_ + seconds;
  }

  /// Seconds that a run of a predicted cost takes. Before the first run, a quarter of the cost, as
  /// with AVX2 and two threads.
  double seconds(double predicted) const {
    constexpr double usual = 0.25;
    return predicted * (predicted_ > 0 ? seconds_ / predicted_ : usual);
  }

 private:
  double predicted_ = 0;
  double seconds_ = 0;
};

/// The time that planning of a program has taken and may take: a tenth of its run time. All plans
/// count, for all budgets and forms, but no refusals.
class PlanningTime {
 public:
  static constexpr double share = 0.1;

  /// Notes that the program has run for `seconds` more.
  void ran(double seconds) { run_ += seconds; }
  /// Notes that planning has taken `seconds` more.
  void planned(double seconds) { planned_ += seconds; }
  /// True if planning may take `seconds` more.
  bool allows(double seconds) const { return share * run_ >= planned_ + seconds; }

 private:
  double run_ = 0;
  double planned_ = 0;
};

}  // namespace palimpsest
