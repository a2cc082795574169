#include "tests/strategy/random_program.h"

#include <algorithm>
#include <random>

namespace palimpsest {

RandomProgram record_random(Tape& tape, std::uint64_t seed, int size) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  RandomProgram program;
  std::vector<Var> wide;    // (rows, 6)
  std::vector<Var> losses;  // scalars
  // Some programs are large enough that their steps are handed between threads.
  const std::int64_t least = below(3) == 0 ? 1000 : 3;
  const std::int64_t rows = least + static_cast<std::int64_t>(below(40));
  const auto keep = [&](const Var& value) {
    program.values.push_back(value);
    return value;
  };
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Shape shape = i == 0 ? Shape{6} : Shape{rows, 6};
    program.parameters.push_back(
        tape.parameter(Tensor::uniform(shape, seed * 3 + i, -1, 1, DType::f64)));
    wide.push_back(broadcast_to(program.parameters.back(), {rows, 6}));
  }
  program.parameters.push_back(
      tape.parameter(Tensor::uniform({6, 6}, seed, -0.4, 0.4, DType::f64)));
  const Var weight = program.parameters.back();
  const auto any = [&]() -> const Var& {
    // Mostly recent values, sometimes an old one, as in a network with skip connections.
    const std::size_t recent = std::min<std::size_t>(wide.size(), 4);
    return below(4) == 0 ? wide[below(wide.size())] : wide[wide.size() - 1 - below(recent)];
  };
  while (program.values.size() < static_cast<std::size_t>(size)) {
    // Values grow slowly enough that no NaN can arise: which of two NaNs a sum keeps is
    // unspecified.
    switch (below(15)) {
      case 0:
        wide.push_back(keep(any() + any()));
        break;
      case 1:
        wide.push_back(keep(any() * tanh(any()) * 0.5));
        break;
      case 2:
        wide.push_back(keep(tanh(any())));
        break;
      case 3:
        wide.push_back(keep(exp(-(tanh(any()) * tanh(any())))));
        break;
      case 4: {  // reshaped and back; the view is read twice
        const Var flat = keep(reshape(any(), {-1}));
        wide.push_back(keep(reshape(flat * tanh(flat), {rows, 6})));
        break;
      }
      case 5: {  // all rows contribute to their mean
        const Var mean = keep(sum(any(), {0}, true) / static_cast<double>(rows));
        wide.push_back(keep(any() - mean));
        break;
      }
      case 6:
        wide.push_back(keep(relu(any()) + 0.1));
        break;
      case 7: {  // an operation with three outputs, two of which are read
        const BatchNorm normal = batch_norm(any());
        wide.push_back(keep(normal.y));
        losses.push_back(keep(sum(normal.variance)));
        break;
      }
      case 8: {  // a product added to another one, which may be read elsewhere
        const Var product = matmul(any(), weight);
        wide.push_back(keep(product + matmul(any(), weight)));
        if (below(3) == 0) wide.push_back(keep(product));
        break;
      }
      case 9:  // products added to an existing value
        wide.push_back(keep(any() + matmul(any(), weight) + matmul(any(), weight)));
        break;
      case 10: {  // rows added to a product, which is read through a view
        const Var flat = reshape(matmul(any(), weight, {.transpose_b = true}), {-1});
        wide.push_back(
            keep(reshape(flat + reshape(any(), {-1}), {rows, 6}) + program.parameters[0]));
        break;
      }
      case 11: {  // 16-bit values in between, also read by a product
        const Var half = keep(cast(tanh(any()), DType::bf16));
        const Var other = cast(program.parameters[0], DType::bf16);
        wide.push_back(keep(cast(tanh(half * 0.5 + other) * half - other, DType::f64)));
        const Var product = matmul(half, cast(weight, DType::bf16));
        if (below(3) == 0) wide.push_back(keep(cast(product + other, DType::f64)));
        break;
      }
      case 12: {  // rolled and reduced in 16 bits
        const Var half = cast(tanh(any()), DType::bf16);
        const Var turned = keep(roll(half, 1, 0) - where(half > 0, half, 0.25));
        losses.push_back(keep(cast(mean(turned * turned), DType::f64)));
        wide.push_back(keep(cast(exp(-square(turned)), DType::f64)));
        break;
      }
      case 13: {  // the other 16-bit type, in which an adjoint might overflow
        const Var half = cast(stop_gradient(tanh(any())), DType::f16);
        const Var mean = sum(half, {0}, true) / static_cast<double>(rows);
        wide.push_back(any() + keep(cast(exp(half - mean) * half, DType::f64)));
        break;
      }
      default:
        losses.push_back(keep(sum(any() * any())));
        break;
    }
  }
  program.loss = sum(wide.back());
  for (const Var& loss : losses) program.loss = program.loss + loss;
  return program;
}

}  // namespace palimpsest
