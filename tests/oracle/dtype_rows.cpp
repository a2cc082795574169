// Rows of integers, bools and pairs of dtypes: values without derivatives.
#include <cstdint>
#include <limits>
#include <string>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/oracle/oracle_rows.h"

namespace palimpsest::oracle {

std::vector<OperationRow> rows_of_other_dtypes() {
  std::vector<OperationRow> rows;
  const std::vector<DType> dtypes = {DType::f64, DType::f32, DType::bf16,   DType::f16,
                                     DType::i64, DType::i32, DType::boolean};
  const auto sample = [](DType dtype) {
    return Tensor::from<double>({2, 0, -3, 1, 5, -1}, {2, 3}).to(dtype);
  };
  for (const DType a : dtypes) {
    for (const DType b : dtypes) {
      const std::string label(std::string(name_of(a)) + " and " + std::string(name_of(b)));
      const auto add = [&](const char* name, Differentiable call) {
        rows.push_back({name, label, {sample(a), sample(b)}, std::move(call), 0});
      };
      add("add", [](auto xs) { return xs[0] + xs[1]; });
      add("subtract", [](auto xs) { return xs[0] - xs[1]; });
      add("multiply", [](auto xs) { return xs[0] * xs[1]; });
      add("minimum", [](auto xs) { return minimum(xs[0], xs[1]); });
      add("maximum", [](auto xs) { return maximum(xs[0], xs[1]); });
      add("a > b", [](auto xs) { return xs[0] > xs[1]; });
      add("a <= b", [](auto xs) { return xs[0] <= xs[1]; });
      add("equal", [](auto xs) { return equal(xs[0], xs[1]); });
      add("where(a > b, a, b)", [](auto xs) { return where(xs[0] > xs[1], xs[0], xs[1]); });
      add("concat", [](auto xs) { return concat({xs[0], xs[1]}, 1); });
    }
  }
  for (const DType a : {DType::i64, DType::i32, DType::boolean}) {
    Tensor x = numbers({0, 1, -1, 2, 7, -7, 100, 65537}, DType::f64).to(a);
    if (a == DType::i64) {
      x = Tensor::from<std::int64_t>({0, 1, -1, 2, 7, -7, std::numeric_limits<std::int64_t>::max(),
                                      std::numeric_limits<std::int64_t>::min()},
                                     {8});
    }
    if (a == DType::i32) {
      x = Tensor::from<std::int32_t>({0, 1, -1, 2, 7, -7, std::numeric_limits<std::int32_t>::max(),
                                      std::numeric_limits<std::int32_t>::min()},
                                     {8});
    }
    const auto add = [&](std::string name, Differentiable call) {
      rows.push_back({std::move(name), "of " + std::string(name_of(a)), {x}, std::move(call), 0});
    };
    for (const DType b : dtypes) {
      add("cast to " + std::string(name_of(b)), [b](auto xs) { return cast(xs[0], b); });
    }
    add("sum", [](auto xs) { return sum(xs[0]); });
    add("prod", [](auto xs) { return prod(xs[0]); });
    add("cumsum", [](auto xs) { return cumsum(xs[0], 0); });
    add("max", [](auto xs) { return max(xs[0]); });
    add("argmin", [](auto xs) { return argmin(xs[0]); });
    add("flip", [](auto xs) { return flip(xs[0]); });
    add("roll", [](auto xs) { return roll(xs[0], 3, 0); });
    add("slice", [](auto xs) { return slice(xs[0], 0, {.start = 1, .step = 3}); });
    add("pad", [](auto xs) { return pad(xs[0], {{1, 2}}, 1); });
    add("tile", [](auto xs) { return tile(xs[0], {3}); });
    if (a == DType::boolean) {
      add("all", [](auto xs) { return all(xs[0]); });
      add("any", [](auto xs) { return any(xs[0]); });
      add("logical_not", [](auto xs) { return logical_not(xs[0]); });
      continue;
    }
    add("-x", [](auto xs) { return negate(xs[0]); });
    add("abs", [](auto xs) { return abs(xs[0]); });
    add("x + 0.5", [](auto xs) { return xs[0] + 0.5; });
    add("x + 1.0", [](auto xs) { return xs[0] + 1.0; });
    add("x / 2", [](auto xs) { return xs[0] / 2; });
    add("2.5 * x", [](auto xs) { return 2.5 * xs[0]; });
    add("clamp(-1, 2)", [](auto xs) { return maximum(minimum(xs[0], 2), -1); });
    add("fmod: a number", [](auto xs) { return fmod(xs[0], 2); });
    add("remainder: a number", [](auto xs) { return remainder(xs[0], -2); });
    add("divide, truncated", [](auto xs) { return xs[0] / flip(xs[0]); });
    add("x > 1.5", [](auto xs) { return xs[0] > 1.5; });
    add("not_equal(x, 0)", [](auto xs) { return not_equal(xs[0], 0); });
    add("exp", [](auto xs) { return exp(xs[0]); });
  }
  return rows;
}

}  // namespace palimpsest::oracle
