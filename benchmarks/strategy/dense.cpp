#include "benchmarks/strategy/dense.h"

#include <cmath>

namespace palimpsest::benchmarks {

Workload dense(std::size_t layers, std::int64_t width, std::int64_t examples,
               const std::function<Var(const Var&)>& activation) {
  Workload workload;
  for (std::size_t k = 0; k < layers; ++k) {
    const double deviation = 1 / std::sqrt(static_cast<double>(width));
    workload.parameters.push_back(Tensor::normal({width, width}, k, 0, deviation));
  }
  workload.batch = {Tensor::uniform({examples, width}, 10, -1, 1)};
  workload.model = [activation](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    Var y = batch[0];
    for (const Var& layer : p) y = activation(matmul(y, layer));
    return mean(y * y);
  };
  return workload;
}

}  // namespace palimpsest::benchmarks
