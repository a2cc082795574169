#include "tests/autodiff/lattice/condition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "autodiff/operations/tensor_functions.h"
#include "autodiff/operations/tensor_layers.h"

namespace palimpsest::lattice {
namespace {

double smallest_gap(std::span<const double> sorted) {
  double gap = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    gap = std::min(gap, std::abs(sorted[i] - sorted[i - 1]));
  }
  return gap;
}

double condition_of_one(Condition condition, std::span<const double> sorted) {
  const double most = std::max(std::abs(sorted.front()), std::abs(sorted.back()));
  double least = condition == Condition::inverse ? most : smallest_gap(sorted);
  if (condition != Condition::eigen_gaps) least = std::min(least, sorted.back());
  return least > 0 ? most / least : std::numeric_limits<double>::infinity();
}

}  // namespace

double condition_of(Condition condition, const Tensor& matrices) {
  if (condition == Condition::none || matrices.elements() == 0) return 0;
  const Tensor values =
      condition == Condition::eigen_gaps ? eigh(matrices).values : svdvals(matrices);
  const auto n = static_cast<std::size_t>(values.shape().size(-1));
  const std::span<const double> all = values.data<double>();
  double most = 0;
  if (condition == Condition::inverse && matrices.shape().size(-1) > matrices.shape().size(-2)) {
    // `qr` of a wide matrix divides by factors of the square in front.
    const Slice front{.stop = matrices.shape().size(-2)};
    most = condition_of(condition, slice(matrices, -1, front));
  }
  for (std::size_t first = 0; first < all.size(); first += n) {
    most = std::max(most, condition_of_one(condition, all.subspan(first, n)));
  }
  return most;
}

}  // namespace palimpsest::lattice
