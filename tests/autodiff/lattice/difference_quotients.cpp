#include "tests/autodiff/lattice/difference_quotients.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace palimpsest::lattice {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

/// Between the quotients of one side: with the point itself, which sees a jump there, and beyond
/// it. `near` and `far` are the values at h/2 and h on this side.
Hull side_of(double here, double near, double far, double step) {
  const double with = (near - here) / (step / 2);
  if (!std::isfinite(near) || !std::isfinite(with)) return {.known = false};
  if (!std::isfinite((far - near) / (step / 2))) return {with, with, std::abs(with)};
  const double wider = (far - here) / step;
  const double beyond = (far - near) / (step / 2);
  const double change = with - wider;
  const bool grows =
      std::abs(with) > 1.02 * std::abs(wider) && std::abs(change) > 1e-3 * (1 + std::abs(wider));
  if (grows) {  // as does the quotient of a jump, a root or a logarithm
    const double end = with > 0 ? unbounded : -unbounded;
    return {std::min({with, beyond, end}), std::max({with, beyond, end}), std::abs(beyond)};
  }
  // The error of a one-sided quotient, from that of twice the step, and the error of rounding.
  const double rounding = 0x1p-50 * std::max({std::abs(here), std::abs(near), std::abs(far)});
  const double slack = 4 * std::abs(change) + rounding / std::abs(step);
  return {std::min(with, beyond) - slack, std::max(with, beyond) + slack, std::abs(with)};
}

}  // namespace

void Hull::add(const Hull& term) {
  low += term.low;
  high += term.high;
  size += term.size;
  known = known && term.known;
}

bool Hull::contains(double derivative, double tolerance) const {
  const double slack = std::isfinite(size) ? tolerance * (1 + size) : 0;
  return derivative >= low - slack && derivative <= high + slack;
}

Hull hull_of(const Neighbourhood& y, double h, double weight) {
  if (weight == 0) return {};
  const Hull left = side_of(y.at[2], y.at[1], y.at[0], -h);
  const Hull right = side_of(y.at[2], y.at[3], y.at[4], h);
  if (!left.known && !right.known) return {.known = false};
  const Hull& first = left.known ? left : right;
  const Hull& second = right.known ? right : left;
  const double low = std::min(first.low, second.low) * weight;
  const double high = std::max(first.high, second.high) * weight;
  return {std::min(low, high), std::max(low, high),
          std::max(first.size, second.size) * std::abs(weight), true};
}

}  // namespace palimpsest::lattice
