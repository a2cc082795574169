#include "benchmarks/loops/ring.h"

#include <cmath>

namespace palimpsest::benchmarks {

Tensor ring_start() {
  Tensor u = Tensor::zeros({Ring::cells}, DType::f64);
  const std::span<double> data = u.data<double>();
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = std::sin(0.01 * static_cast<double>(i));
  return u;
}

Ring::Ring(std::int64_t steps)
    : start(tape.parameter(ring_start())), c(tape.parameter(Tensor::scalar(speed, DType::f64))) {
  const Var end = scan(start, steps, [this](const Var& u, const StepNumber&) {
    const Var left = roll(u, 1, 0);
    return u - c * (u - left) + diffusion * (roll(u, -1, 0) - 2.0 * u + left);
  });
  loss = sum(end * end);
}

}  // namespace palimpsest::benchmarks
