#include "strategy/base/updates.h"

#include <algorithm>

namespace palimpsest {

void apply_updates(std::span<const Tape::Update> updates, std::span<const Tensor> values) {
  for (std::size_t i = 0; i < updates.size(); ++i) {
    std::copy_n(values[i].raw(), values[i].bytes(), updates[i].target.raw());
  }
}

Tensor mean_of_parts(std::span<const Tensor> values, std::span<const std::int64_t> examples) {
  Tensor sum = Tensor::zeros(values[0].shape(), DType::f64);
  const std::span<double> sums = sum.data<double>();
  double count = 0;
  for (std::size_t part = 0; part < values.size(); ++part) {
    const auto weight = static_cast<double>(examples[part]);
    const Tensor wide = values[part].to(DType::f64);
    const std::span<const double> terms = wide.data<double>();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * terms[i];
    count += weight;
  }
  for (double& each : sums) each /= count;
  return sum.to(values[0].dtype());
}

}  // namespace palimpsest
