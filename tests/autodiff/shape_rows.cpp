#include "autodiff/operations/shape.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> shape_rows() {
  const auto numbers = [](Shape shape) { return Tensor::normal(shape, 31, 0, 1, DType::f64); };
  const Tensor x = numbers({3, 1, 5});
  const Tensor y = numbers({3, 4, 5});
  const Tensor wide = numbers({67, 45});
  return {
      {"reshape", "to rank 2", {x}, [](auto xs) { return reshape(xs[0], {5, -1}); }},
      {"reshape", "flatten", {y}, [](auto xs) { return flatten(xs[0], 1); }},
      {"reshape", "squeeze", {x}, [](auto xs) { return squeeze(xs[0]); }},
      {"reshape", "unsqueeze", {x}, [](auto xs) { return unsqueeze(xs[0], -2); }},
      {"broadcast_to",
       "middle and front",
       {x},
       [](auto xs) { return broadcast_to(xs[0], {2, 3, 4, 5}); }},
      {"broadcast_to",
       "last",
       {numbers({3, 1})},
       [](auto xs) { return broadcast_to(xs[0], {3, 40}); }},
      {"broadcast_to", "tile", {y}, [](auto xs) { return tile(xs[0], {2, 1, 3}); }},
      {"broadcast_to", "repeat", {y}, [](auto xs) { return repeat(xs[0], 3, 1); }},
      {"broadcast_to", "repeated never", {y}, [](auto xs) { return repeat(xs[0], 0, 1); }},
      {"permute", "squares and remainders", {wide}, [](auto xs) { return transpose(xs[0]); }, 1},
      {"permute", "rotation", {y}, [](auto xs) { return permute(xs[0], {2, 0, 1}); }},
      {"permute", "last axis stays", {y}, [](auto xs) { return transpose(xs[0], 0, 1); }},
      {"permute",
       "short axis to the end",
       {numbers({2, 3, 40})},
       [](auto xs) { return permute(xs[0], {0, 2, 1}); }},
      {"permute", "nothing", {numbers({0, 3})}, [](auto xs) { return transpose(xs[0]); }},
      {"slice", "inside", {y}, [](auto xs) { return slice(xs[0], {{1, 3}, {}, {1, -1}}); }},
      {"slice",
       "steps both ways",
       {y},
       [](auto xs) { return slice(xs[0], {{.step = -2}, {.start = 1, .step = 2}, {.step = -1}}); }},
      {"slice", "nothing", {y}, [](auto xs) { return slice(xs[0], 1, {3, 1}); }},
      {"slice", "one place", {y}, [](auto xs) { return select(xs[0], 1, -2); }},
      {"slice", "flip", {y}, [](auto xs) { return flip(xs[0]); }},
      {"roll", "back along the last axis", {y}, [](auto xs) { return roll(xs[0], -2, 2); }},
      {"roll", "along the first axis", {y}, [](auto xs) { return roll(xs[0], 1, 0); }},
      {"pad", "a number", {y}, [](auto xs) { return pad(xs[0], {{1, 0}, {0, 2}, {3, 1}}, 0.5); }},
      {"pad",
       "around nothing",
       {numbers({0, 2})},
       [](auto xs) { return pad(xs[0], {{1, 1}, {0, 1}}, 2); }},
      {"pad",
       "gaps",
       {y},
       [](auto xs) {
         const Var part = slice(xs[0], {{.step = -2}, {}, {.start = 1, .step = 3}});
         return gradient(sum(part * part * part), xs[0]);
       },
       1},
      {"concat",
       "reflecting",
       {y},
       [](auto xs) { return pad(xs[0], {{2, 1}, {0, 3}, {4, 0}}, PadMode::reflect); }},
      {"concat",
       "replicating",
       {y},
       [](auto xs) { return pad(xs[0], {{2, 1}, {0, 3}, {4, 0}}, PadMode::replicate); }},
      {"concat",
       "first axis",
       {y, numbers({1, 4, 5})},
       [](auto xs) { return concat({xs[0], xs[1]}, 0); }},
      {"concat",
       "last axis with nothing",
       {y, numbers({3, 4, 0}), numbers({3, 4, 2})},
       [](auto xs) { return concat({xs[0], xs[1], xs[2], xs[0]}, -1); }},
      {"concat",
       "stack",
       {y, numbers({3, 4, 5})},
       [](auto xs) { return stack({xs[0], xs[1]}, 1); }},
      {"split",
       "every part used",
       {y},
       [](auto xs) {
         const auto parts = split(xs[0], {1, 2, 2}, 2);
         return parts[1] * parts[2] * parts[0];
       }},
      {"split",
       "chunks that do not divide",
       {y},
       [](auto xs) {
         const auto parts = chunk(xs[0], 3, 0);
         return sum(parts[0]) * parts.back();
       }},
      {"split",
       "some parts used",
       {y},
       [](auto xs) {
         const auto parts = chunk(xs[0], 4, 1);
         return parts[3] * parts[1];
       }},
  };
}

}  // namespace palimpsest
