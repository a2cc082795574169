#include "autodiff/operations/normalization.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> normalization_rows() {
  const auto some = [](Shape shape, std::uint64_t seed) {
    return Tensor::normal(shape, seed, 0.5, 1, DType::f64);
  };
  const Tensor table = some({5, 7}, 61);
  const Tensor cube = some({40, 2, 3}, 62);
  const Tensor image = some({3, 4, 2, 3}, 63);
  const Tensor row_weight = some({7}, 64);
  const Tensor row_bias = some({7}, 65);
  const Tensor weight = some({4}, 66);
  const Tensor bias = some({4}, 67);
  const Tensor flat = some({6, 4}, 68);
  const Tensor variance = Tensor::uniform({4}, 69, 0.5, 2, DType::f64);
  const Tensor far = Tensor::normal({3, 700}, 70, 100, 1, DType::f64);
  // Uses the first gradients of every input, so that the test differentiates the adjoint operation.
  const auto slopes = [](Differentiable f) {
    return [f](std::span<const Var> xs) {
      const Var y = f(xs);
      Var total = sum(y);
      for (const Var& slope : gradient(y * y, xs)) total = total + sum(slope * slope * 0.01);
      return total;
    };
  };
  const auto group = [](auto xs) { return group_norm(xs[0], 2, xs[1], xs[2]); };
  const auto all_of_batch_norm = [](auto xs) {
    const BatchNorm b = batch_norm(xs[0], xs[1], xs[2]);
    return b.y * 0.5 + sum(b.mean * b.mean) + sum(b.variance * b.variance);
  };
  return {
      {"norm",
       "weight_norm",
       {table, row_weight},
       [](auto xs) { return weight_norm(xs[0], xs[1], 1); }},
      {"norm",
       "weight_norm, four axes",
       {image, some({3, 1, 1, 1}, 71)},
       [](auto xs) { return weight_norm(xs[0], xs[1]); }},
      {"abs",
       "weight_norm of a vector",
       {weight, bias},
       [](auto xs) { return weight_norm(xs[0], xs[1], -1); },
       1,
       false},  // a gradient that is 0 exactly
      // Converged vectors, so that the derivative of σ is that of the largest singular value.
      {"matmul",
       "spectral_norm",
       {some({2, 3}, 72)},
       [](auto xs) {
         const Var u = full(xs[0].tape(), {3}, 1, xs[0].dtype());
         return spectral_norm(xs[0], u, {.axis = 1, .iterations = 36}).weight;
       },
       1},
      {"layer_norm", "plain", {table}, [](auto xs) { return layer_norm(xs[0]); }},
      {"layer_norm",
       "weight",
       {table, row_weight},
       [](auto xs) { return layer_norm(xs[0], xs[1]); }},
      {"layer_norm",
       "two axes, many rows",
       {cube, some({2, 3}, 71), some({2, 3}, 72)},
       [](auto xs) { return layer_norm(xs[0], xs[1], xs[2]); }},
      {"layer_norm", "far from zero", {far}, [](auto xs) { return layer_norm(xs[0]); }, 1, false},
      {"layer_norm",
       "no rows",
       {Tensor::zeros({0, 7}, DType::f64), row_weight, row_bias},
       [](auto xs) { return layer_norm(xs[0], xs[1], xs[2]); }},
      {"rms_norm", "plain", {table}, [](auto xs) { return rms_norm(xs[0]); }},
      {"rms_norm", "weight", {table, row_weight}, [](auto xs) { return rms_norm(xs[0], xs[1]); }},
      {"group_norm", "two groups", {image, weight, bias}, group},
      {"group_norm", "no spatial axis", {flat, weight, bias}, group},
      {"group_norm", "plain", {image}, [](auto xs) { return group_norm(xs[0], 2); }},
      {"group_norm",
       "as instance_norm",
       {image, weight, bias},
       [](auto xs) { return instance_norm(xs[0], xs[1], xs[2]); }},
      {"batch_norm", "images", {image, weight, bias}, all_of_batch_norm},
      {"batch_norm", "rows", {flat, weight, bias}, all_of_batch_norm},
      {"batch_norm", "plain", {image}, [](auto xs) { return batch_norm(xs[0]).y; }},
      {"batch_norm",
       "more channels than a batch of columns",
       {some({5, 70}, 73)},
       [](auto xs) { return batch_norm(xs[0]).y; }},
      {"multiply",
       "as batch_norm with statistics given",
       {image, bias, variance, weight, bias},
       [](auto xs) { return batch_norm(xs[0], xs[1], xs[2], xs[3], xs[4]); },
       2,
       false},
      {"normalization_adjoint",
       "layer_norm",
       {table, row_weight, row_bias},
       slopes([](auto xs) { return layer_norm(xs[0], xs[1], xs[2]); }),
       1,
       false},
      {"normalization_adjoint",
       "rms_norm",
       {table, row_weight},
       slopes([](auto xs) { return rms_norm(xs[0], xs[1]); }),
       1,
       false},
      {"normalization_adjoint", "group_norm", {image, weight, bias}, slopes(group), 1, false},
      {"normalization_adjoint",
       "batch_norm",
       {image, weight, bias},
       slopes(all_of_batch_norm),
       1,
       false},
      {"normalization_adjoint",
       "batch_norm of rows",
       {flat, weight, bias},
       slopes(all_of_batch_norm),
       1,
       false},
  };
}

}  // namespace palimpsest
