#include "strategy/training/line_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace palimpsest {
namespace {

/// The minimiser of the cubic through two points with their slopes (Nocedal and Wright, 2006,
/// equation 3.59). Not finite if there is none.
double cubic_minimiser(const LinePoint& a, const LinePoint& b) {
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step);
  const double d2 = std::copysign(std::sqrt(d1 * d1 - a.slope * b.slope), b.step - a.step);
  return b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
}

class WolfeSearch {
 public:
  WolfeSearch(const std::function<LinePoint(double)>& line, const LinePoint& start,
              const WolfeConditions& conditions, int evaluations)
      : line_(line), start_(start), conditions_(conditions), left_(evaluations) {}

  /// Algorithm 3.5: lengthens the step until an interval contains a suitable one.
  std::optional<LinePoint> run(double step) {
    LinePoint before = start_;
    while (left_ > 0) {
      const LinePoint here = at(step);
      if (!decreases(here) || (before.step > 0 && here.value >= before.value)) {
        return zoom(before, here);
      }
      if (is_flat(here)) return here;
      if (here.slope >= 0) return zoom(here, before);
      const double longer = cubic_minimiser(before, here);
      step =
          std::isfinite(longer) ? std::clamp(longer, 2 * here.step, 10 * here.step) : 2 * here.step;
      before = here;
    }
    return {};
  }

 private:
  /// Algorithm 3.6. `low` decreases the function, and most of all steps so far that do. The
  /// interval from `low` to `high` contains suitable steps.
  std::optional<LinePoint> zoom(LinePoint low, LinePoint high) {
    double width_before = std::numeric_limits<double>::infinity();
    while (left_ > 0) {
      const double width = std::abs(high.step - low.step);
      if (!(width > 0)) return {};
      const LinePoint here = at(between(low, high, width > width_before * 2 / 3));
      width_before = width;
      if (!decreases(here) || here.value >= low.value) {
        high = here;
        continue;
      }
      if (is_flat(here)) return here;
      if (here.slope * (high.step - low.step) >= 0) high = low;
      low = here;
    }
    return {};
  }

  /// A step between two others. Interpolated, unless the interval hardly shrank the last time.
  static double between(const LinePoint& low, const LinePoint& high, bool bisect) {
    const double middle = low.step + (high.step - low.step) / 2;
    const double found = bisect ? middle : cubic_minimiser(low, high);
    if (!std::isfinite(found)) return middle;
    const double first = std::min(low.step, high.step);
    const double last = std::max(low.step, high.step);
    const double margin = (last - first) / 10;
    return std::clamp(found, first + margin, last - margin);
  }

  LinePoint at(double step) {
    --left_;
    LinePoint point = line_(step);
    if (!std::isfinite(point.value) || !std::isfinite(point.slope)) {
      point.value = std::numeric_limits<double>::infinity();
      point.slope = std::numeric_limits<double>::quiet_NaN();
    }
    return point;
  }

  bool decreases(const LinePoint& point) const {
    return point.value <= start_.value + conditions_.decrease * point.step * start_.slope;
  }
  bool is_flat(const LinePoint& point) const {
    return std::abs(point.slope) <= -conditions_.curvature * start_.slope;
  }

  const std::function<LinePoint(double)>& line_;
  LinePoint start_;
  WolfeConditions conditions_;
  int left_;
};

}  // namespace

std::optional<LinePoint> strong_wolfe_step(const std::function<LinePoint(double step)>& line,
                                           const LinePoint& start, double first_step,
                                           const WolfeConditions& conditions, int evaluations) {
  return WolfeSearch(line, start, conditions, evaluations).run(first_step);
}

}  // namespace palimpsest
