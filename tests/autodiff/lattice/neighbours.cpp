#include "tests/autodiff/lattice/neighbours.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace palimpsest::lattice {
namespace {

/// How an element moves, between -1 and 1: all up, all down, or each its own way.
double direction(std::uint64_t way, double drawn) {
  return way == 0 ? 1 : way == 1 ? -1 : 2 * (drawn - 1);
}

/// Elementwise, each number moves by its own digits. Otherwise all move by those of the largest.
Tensor moved(const Tensor& x, double unit, std::uint64_t way, std::uint64_t seed,
             bool is_elementwise) {
  if (!is_floating(x.dtype())) return x;
  const Numbers drawn = weights(static_cast<std::size_t>(x.elements()), seed);
  Tensor result = x.clone();
  double largest = 0;
  for (const double each : result.data<double>()) {
    if (std::isfinite(each)) largest = std::max(largest, std::abs(each));
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    double& each = result.data<double>()[i];
    const double size = is_elementwise ? std::abs(each) : largest;
    const double other = each + direction(way, drawn[i]) * unit * size;
    if (std::isfinite(other)) each = other;
  }
  return result;
}

}  // namespace

Neighbours::Neighbours(const OperationRow& row, std::span<const Tensor> inputs, DType dtype,
                       int order, const Numbers& weights, bool is_elementwise) {
  const double epsilon = dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                                             : double{std::numeric_limits<float>::epsilon()};
  constexpr std::uint64_t count = 24;
  for (std::uint64_t one = 0; one < count; ++one) {
    const double units = std::ldexp(1.0, static_cast<int>(one % 4));  // 1, 2, 4 and 8
    std::vector<Tensor> others;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      others.push_back(
          moved(inputs[i], units * epsilon, one / 4, 100 * one + i + 11, is_elementwise));
    }
    RecordedRow recorded(row, others, order);
    if (recorded.values().size() == weights.size()) {
      derivatives_.push_back(recorded.derivatives(weights));
    }
  }
}

bool Neighbours::surround(std::size_t input, const std::vector<std::int64_t>& elements,
                          double derivative) const {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const std::vector<Numbers>& each : derivatives_) {
    double total = 0;
    for (const std::int64_t i : elements) total += each[input][static_cast<std::size_t>(i)];
    low = std::min(low, total);
    high = std::max(high, total);
  }
  const double beside = 0.01 * (high - low);
  return derivative >= low - beside && derivative <= high + beside;
}

}  // namespace palimpsest::lattice
