#include "autodiff/operations/construction.h"

#include "autodiff/operations/binary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> construction_rows() {
  const Tensor vector = normal_numbers({4}, 71);
  const Tensor matrix = normal_numbers({3, 4}, 72);
  const Tensor batch = normal_numbers({2, 3, 4}, 73);
  const Tensor empty = normal_numbers({0, 4}, 74);
  const Tensor points = normal_numbers({2, 3}, 75);
  const Tensor point = normal_numbers({3}, 76);
  const auto squared = [](const Var& v) { return v * v; };
  return {
      {"linspace",
       "ascending",
       {vector},
       [](auto xs) { return xs[0] * linspace(xs[0].tape(), -1, 2, 4, xs[0].dtype()); }},
      {"linspace",
       "one number",
       {vector},
       [](auto xs) { return xs[0] * linspace(xs[0].tape(), 3, 7, 1, xs[0].dtype()); }},
      {"linspace",
       "arange",
       {vector},
       [](auto xs) { return xs[0] * arange(xs[0].tape(), 1, -1, -0.5, xs[0].dtype()); }},
      {"linspace",
       "logspace",
       {vector},
       [](auto xs) { return xs[0] * logspace(xs[0].tape(), -1, 1, 4, 2, xs[0].dtype()); }},
      {"pad",
       "eye",
       {matrix},
       [](auto xs) { return xs[0] + eye(xs[0].tape(), 3, 4, xs[0].dtype()); }},
      {"full", "ones_like", {matrix}, [](auto xs) { return xs[0] - ones_like(xs[0]); }},
      {"full", "zeros_like", {matrix}, [](auto xs) { return xs[0] + zeros_like(xs[0]); }},
      {"slice", "diagonal", {matrix}, [=](auto xs) { return squared(diagonal(xs[0])); }},
      {"slice", "diagonal above", {matrix}, [=](auto xs) { return squared(diagonal(xs[0], 2)); }},
      {"slice", "diagonal below", {matrix}, [=](auto xs) { return squared(diagonal(xs[0], -1)); }},
      {"slice", "diagonal outside", {matrix}, [](auto xs) { return diagonal(xs[0], 4); }},
      {"slice", "diagonal of nothing", {empty}, [](auto xs) { return diagonal(xs[0]); }},
      {"slice",
       "diagonal of a batch",
       {batch},
       [=](auto xs) { return squared(diagonal(xs[0], 1, -1, 0)); }},
      {"pad", "diag_embed", {matrix}, [=](auto xs) { return squared(diag_embed(xs[0])); }},
      {"pad",
       "diag_embed above",
       {matrix},
       [=](auto xs) { return squared(diag_embed(xs[0], 1, 0, -1)); }},
      {"pad",
       "diag_embed below",
       {matrix},
       [=](auto xs) { return squared(diag_embed(xs[0], -2, 2, 0)); }},
      {"pad", "diag of a vector", {vector}, [](auto xs) { return diag(xs[0], -1); }},
      {"slice", "diag of a matrix", {matrix}, [](auto xs) { return diag(xs[0], 1); }},
      {"sum", "trace", {matrix}, [=](auto xs) { return squared(trace(xs[0])); }},
      {"sum",
       "trace of a batch",
       {batch},
       [=](auto xs) { return squared(trace(xs[0], -1, 1, 2)); }},
      {"concat",
       "block_diag",
       {matrix, vector, points},
       [=](auto xs) { return squared(block_diag({xs[0], xs[1], xs[2]})); }},
      {"broadcast_to",
       "meshgrid",
       {vector, point},
       [](auto xs) {
         const auto grid = meshgrid({xs[0], xs[1]});
         return grid[0] * grid[1] * grid[1];
       }},
      {"broadcast_to",
       "meshgrid, swapped",
       {vector, point, vector},
       [](auto xs) {
         const auto grid = meshgrid({xs[0], xs[1], xs[2]}, GridIndexing::xy);
         return grid[0] * grid[1] - grid[2];
       }},
      {"multiply", "kron", {matrix, points}, [](auto xs) { return kron(xs[0], xs[1]); }},
      {"multiply", "kron of a vector", {batch, vector}, [](auto xs) { return kron(xs[0], xs[1]); }},
      {"roll", "cross", {points, point}, [](auto xs) { return cross(xs[0], xs[1]); }},
      {"roll",
       "cross along an axis",
       {batch, batch},
       [](auto xs) { return cross(xs[0], xs[1] * xs[1], 1); }},
      {"permute", "movedim", {batch}, [=](auto xs) { return squared(movedim(xs[0], 0, -1)); }},
      {"permute", "swapaxes", {batch}, [=](auto xs) { return squared(swapaxes(xs[0], 0, 2)); }},
      {"reshape",
       "unflatten",
       {batch},
       [=](auto xs) { return squared(unflatten(xs[0], -1, {2, -1})); }},
      {"slice", "fliplr", {matrix}, [=](auto xs) { return squared(fliplr(xs[0])); }},
      {"slice", "flipud", {matrix}, [=](auto xs) { return squared(flipud(xs[0])); }},
      {"slice", "rot90", {matrix}, [=](auto xs) { return squared(rot90(xs[0])); }},
      {"slice", "rot90 twice", {batch}, [=](auto xs) { return squared(rot90(xs[0], -2, 1, 2)); }},
      {"slice", "rot90 back", {batch}, [=](auto xs) { return squared(rot90(xs[0], 3, 0, 2)); }},
  };
}

}  // namespace palimpsest
