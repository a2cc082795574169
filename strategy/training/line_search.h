#pragma once

#include <functional>
#include <optional>

namespace palimpsest {

/// A step along a line, and the value and slope of the function there.
struct LinePoint {
  double step = 0;
  double value = 0;
  double slope = 0;
};

/// The strong Wolfe conditions for a step t, with 0 < decrease < curvature < 1:
///
///     φ(t) ≤ φ(0) + decrease·t·φ'(0)    and    |φ'(t)| ≤ curvature·|φ'(0)|.
struct WolfeConditions {
  double decrease = 1e-4;
  double curvature = 0.9;
};

/// A step that meets the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5
/// and 3.6). It is the last one that was evaluated. `start` is the point with step 0; its slope is
/// negative. Steps where the value or slope is not finite count as too long. Returns nothing if
/// `evaluations` calls of `line` find no such step.
std::optional<LinePoint> strong_wolfe_step(const std::function<LinePoint(double step)>& line,
                                           const LinePoint& start, double first_step,
                                           const WolfeConditions& conditions, int evaluations);

}  // namespace palimpsest
