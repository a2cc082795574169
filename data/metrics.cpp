#include "data/metrics.h"

#include <cmath>
#include <string>

#include "autodiff/number_text.h"

namespace palimpsest {
namespace {

void require_weight(double weight) {
  if (weight >= 0) return;
  throw ArgumentError("[weighted_mean] a weight is " + number_text(weight) + "; give 0 or more");
}

}  // namespace

void WeightedMean::add(double value, double weight) {
  require_weight(weight);
  sum_ += value * weight;
  weight_ += weight;
}

void WeightedMean::add(const Tensor& values) {
  const Tensor wide = values.to(DType::f64);
  for (const double value : wide.data<double>()) add(value);
}

void WeightedMean::add(const Tensor& values, const Tensor& weights) {
  if (values.shape() != weights.shape()) {
    throw ShapeError("[weighted_mean] values have shape " + to_string(values.shape()) +
                     " and weights " + to_string(weights.shape()) + "; give equal shapes");
  }
  const Tensor wide = values.to(DType::f64);
  const Tensor wide_weights = weights.to(DType::f64);
  for (const double weight : wide_weights.data<double>()) require_weight(weight);
  for (std::size_t i = 0; const double value : wide.data<double>()) {
    add(value, wide_weights.data<double>()[i++]);
  }
}

void Perplexity::add(double mean_cross_entropy, std::int64_t tokens) {
  if (tokens < 0) {
    throw ArgumentError("[perplexity] there are " + std::to_string(tokens) +
                        " tokens; give 0 or more");
  }
  mean_.add(mean_cross_entropy, static_cast<double>(tokens));
}

void Perplexity::add(const Tensor& mean_cross_entropy, std::int64_t tokens) {
  add(mean_cross_entropy.item(), tokens);
}

double Perplexity::value() const { return std::exp(mean_.value()); }

}  // namespace palimpsest
