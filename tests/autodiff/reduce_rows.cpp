#include "autodiff/operations/reduce.h"

#include <limits>

#include "autodiff/operations/binary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {

using Call = Var (*)(const Var&, const Axes&, bool);

/// One operation over inner, leading, trailing and outer axes, with sizes that leave remainders.
void append_axes(std::vector<OperationRow>& rows, const char* name, Call call, int order = 2,
                 bool half = true) {
  const auto numbers = [](Shape shape) {
    return Tensor::uniform(shape, 21, -0.5, 1.5, DType::f64);
  };
  const auto over = [call](const Axes& axes, bool keep = false) {
    return [=](auto xs) { return call(xs[0], axes, keep); };
  };
  const std::vector<OperationRow> more = {
      {name, "all axes", {numbers({3, 4, 5})}, over({}), order, half},
      {name, "scalar", {numbers({})}, over({}), order, half},
      {name, "last axis kept", {numbers({3, 70})}, over({-1}, true), order, half},
      {name, "middle axis", {numbers({3, 4, 5})}, over({1}), order, half},
      {name, "first and last axis", {numbers({3, 2, 4, 5})}, over({0, 3}), order, half},
      {name, "nothing left", {numbers({0, 4})}, over({1}), order, half},
  };
  rows.insert(rows.end(), more.begin(), more.end());
}

Var times_itself(const Var& y) { return y * y; }
Var is_positive(const Var& x) { return greater(x, x * 0.0); }

}  // namespace

std::vector<OperationRow> reduce_rows() {
  std::vector<OperationRow> rows;
  append_axes(rows, "sum", [](auto& x, auto& axes, bool keep) { return sum(x, axes, keep); });
  append_axes(rows, "mean", [](auto& x, auto& axes, bool keep) { return mean(x, axes, keep); });
  append_axes(
      rows, "prod", [](auto& x, auto& axes, bool keep) { return prod(x, axes, keep); }, 2, false);
  append_axes(rows, "max", [](auto& x, auto& axes, bool keep) { return max(x, axes, keep); });
  append_axes(rows, "min", [](auto& x, auto& axes, bool keep) { return min(x, axes, keep); });
  append_axes(rows, "variance",
              [](auto& x, auto& axes, bool keep) { return variance(x, axes, 0, keep); });
  append_axes(rows, "standard_deviation",
              [](auto& x, auto& axes, bool keep) { return standard_deviation(x, axes, 0, keep); });
  append_axes(rows, "logsumexp",
              [](auto& x, auto& axes, bool keep) { return logsumexp(x, axes, keep); });
  append_axes(rows, "norm", [](auto& x, auto& axes, bool keep) { return norm(x, 2, axes, keep); });
  append_axes(
      rows, "all", [](auto& x, auto& axes, bool keep) { return all(is_positive(x), axes, keep); },
      0);
  append_axes(
      rows, "any", [](auto& x, auto& axes, bool keep) { return any(is_positive(x), axes, keep); },
      0);
  append_axes(rows, "max", [](auto& x, auto& axes, bool keep) { return argmax(x, axes, keep); }, 0);
  append_axes(rows, "min", [](auto& x, auto& axes, bool keep) { return argmin(x, axes, keep); }, 0);

  const Tensor x = Tensor::normal({3, 7, 2}, 22, 0, 1, DType::f64);
  const Tensor zeros = Tensor::from({2.0, 0.0, 3.0, 0.0, 1.5, 0.5, 0.0, 4.0}, {2, 4});
  const std::vector<OperationRow> more = {
      {"sum",
       "in segments",
       {Tensor::normal({70001, 3}, 23, 0, 1, DType::f64)},
       [](auto xs) { return sum(xs[0], {0}); },
       1},
      {"sum",
       "in tiles of columns",
       {Tensor::normal({9, 1100}, 24, 0, 1, DType::f64)},
       [](auto xs) { return sum(xs[0], {0}); },
       1},
      {"prod", "one and two zeros", {zeros}, [](auto xs) { return prod(xs[0], {1}); }},
      {"prod", "seven factors, axes apart", {x}, [](auto xs) { return prod(xs[0], {0, 2}); }},
      {"variance", "corrected", {x}, [](auto xs) { return variance(xs[0], {1}); }},
      {"standard_deviation",
       "corrected",
       {x},
       [](auto xs) { return standard_deviation(xs[0], {1}); }},
      {"norm", "p = 1", {x}, [](auto xs) { return norm(xs[0], 1, {0}); }},
      {"norm", "p = 3.5", {x}, [](auto xs) { return norm(xs[0], 3.5, {1, 2}); }},
      {"max",
       "as the norm for p = infinity",
       {x},
       [](auto xs) { return norm(xs[0], std::numeric_limits<double>::infinity(), {1}); }},
      {"sum", "of bools", {x}, [](auto xs) { return sum(is_positive(xs[0]), {1}); }, 0},
      {"cumsum", "last axis", {x}, [](auto xs) { return cumsum(xs[0], -1); }},
      {"cumsum", "middle axis from the end", {x}, [](auto xs) { return cumsum(xs[0], 1, true); }},
      {"cumsum",
       "nothing",
       {Tensor::zeros({2, 0}, DType::f64)},
       [](auto xs) { return cumsum(xs[0], 0); }},
      {"cumprod", "last axis", {x}, [](auto xs) { return cumprod(xs[0], -1); }},
      {"cumprod",
       "from the end, with zeros",
       {zeros},
       [](auto xs) { return cumprod(xs[0], 1, true); }},
      {"cumprod",
       "no elements",
       {Tensor::zeros({2, 0}, DType::f64)},
       [](auto xs) { return cumprod(xs[0], 1); }},
      {"cummax", "middle axis", {x}, [](auto xs) { return times_itself(cummax(xs[0], 1).values); }},
      {"cummax",
       "from the end",
       {x},
       [](auto xs) { return times_itself(cummax(xs[0], 2, true).values); }},
      {"cummax", "positions", {x}, [](auto xs) { return cummax(xs[0], 0).indices; }, 0},
      {"cummin", "last axis", {x}, [](auto xs) { return times_itself(cummin(xs[0], -1).values); }},
      {"cummin",
       "of one, from the end",
       {Tensor::normal({3, 1}, 5, 0, 1, DType::f64)},
       [](auto xs) { return times_itself(cummin(xs[0], 1, true).values); }},
      {"logcumsumexp", "middle axis", {x}, [](auto xs) { return logcumsumexp(xs[0], 1); }},
      {"logcumsumexp", "from the end", {x}, [](auto xs) { return logcumsumexp(xs[0], -1, true); }},
      {"linear_recurrence",
       "middle axis",
       {x, Tensor::normal(x.shape(), 6, 0, 1, DType::f64)},
       [](auto xs) { return times_itself(linear_recurrence(xs[0], xs[1], 1)); }},
      {"linear_recurrence",
       "from the end, one factor for all",
       {Tensor::normal({1}, 7, 0, 1, DType::f64), x},
       [](auto xs) { return linear_recurrence(xs[0], xs[1], 0, true); }},
  };
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace palimpsest
