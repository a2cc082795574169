#include "autodiff/operations/sorting.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/unary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> sorting_rows() {
  const auto square = [](const Var& y) { return y * y; };
  const auto f64 = [](std::vector<double> list, const Shape& shape) {
    return Tensor::from(list, shape);
  };
  const auto i64 = [](std::vector<std::int64_t> list, const Shape& shape) {
    return Tensor::from(list, shape);
  };
  const Tensor x = normal_numbers({3, 4, 5}, 61);
  const Tensor line = normal_numbers({70}, 62);
  const Tensor even = f64({0.5, -1.25, 2, 0.75, -0.25, 1.5, 3, -2}, {2, 4});
  const Tensor distinct = f64({1.5, -2, 0.25, 4, -0.75, 3}, {2, 3});
  const Tensor edges = f64({-1, -0.25, 0.5, 2}, {4});
  const Tensor numbers = i64({2, 0, 2, 5, 2, 1}, {2, 3});
  return {
      {"sort", "last axis", {x}, [=](auto xs) { return square(sort(xs[0]).values); }},
      {"sort",
       "middle axis, descending",
       {x},
       [=](auto xs) { return square(sort(xs[0], 1, true).values); }},
      {"sort", "a longer line", {line}, [](auto xs) { return sort(xs[0]).values; }, 1},
      {"sort", "argsort of the first axis", {x}, [](auto xs) { return argsort(xs[0], 0); }, 0},
      {"sort",
       "lines of one",
       {normal_numbers({3, 1}, 3)},
       [](auto xs) { return sort(xs[0]).values; }},
      {"sort", "nothing", {normal_numbers({3, 0}, 3)}, [](auto xs) { return sort(xs[0]).values; }},
      {"sort", "no lines", {normal_numbers({0, 3}, 3)}, [](auto xs) { return sort(xs[0]).values; }},
      {"topk", "largest", {x}, [=](auto xs) { return square(topk(xs[0], 3).values); }},
      {"topk",
       "smallest of the first axis",
       {x},
       [=](auto xs) { return square(topk(xs[0], 1, {.axis = 0, .largest = false}).values); }},
      {"topk", "few of many", {line}, [=](auto xs) { return square(topk(xs[0], 4).values); }, 1},
      {"topk",
       "positions",
       {line},
       [](auto xs) { return topk(xs[0], 5, {.largest = false}).indices; },
       0},
      {"topk", "none", {x}, [](auto xs) { return topk(xs[0], 0).values; }},
      {"kthvalue", "second", {x}, [=](auto xs) { return square(kthvalue(xs[0], 2).values); }},
      {"kthvalue",
       "positions of the last, axis kept",
       {x},
       [](auto xs) { return kthvalue(xs[0], 4, 1, true).indices; },
       0},
      {"kthvalue", "median", {x}, [=](auto xs) { return square(median(xs[0], 1).values); }},
      {"kthvalue", "median of all", {even}, [=](auto xs) { return square(median(xs[0])); }},
      {"sort", "nanmedian", {x}, [=](auto xs) { return square(nanmedian(xs[0], 0, true).values); }},
      {"sort", "quantile of all", {x}, [=](auto xs) { return square(quantile(xs[0], 0.3)); }},
      {"sort",
       "quantiles of an axis",
       {x},
       [=](auto xs) {
         const double qs[] = {0, 0.25, 0.9, 1};
         return square(quantile(xs[0], qs, {.axis = 1}));
       }},
      {"sort",
       "quantile, midpoint, axis kept",
       {x},
       [=](auto xs) {
         return square(quantile(
             xs[0], 0.6, {.axis = 0, .keep_axis = true, .method = QuantileMethod::midpoint}));
       }},
      {"sort",
       "nanquantile",
       {x},
       [=](auto xs) { return square(nanquantile(xs[0], 0.4, {.axis = 2})); }},
      {"lexsort", "two keys of lines", {x}, [](auto xs) { return lexsort(xs[0]); }, 0},
      {"lexsort",
       "unique columns",
       {x},
       [=](auto xs) { return square(unique(xs[0], {.size = 4, .axis = 1}).values); }},
      {"searchsorted",
       "one line",
       {edges, normal_numbers({3, 5}, 63)},
       [](auto xs) { return searchsorted(xs[0], xs[1]); },
       0},
      {"searchsorted",
       "lines, from the right",
       {f64({-1, 0.5, 2, -2, -1, 1}, {2, 3}), f64({0.5, -3, 4, -1, 0, 1}, {2, 3})},
       [](auto xs) { return searchsorted(xs[0], xs[1], true); },
       0},
      {"searchsorted",
       "bucketize",
       {normal_numbers({7}, 64), edges},
       [](auto xs) { return bucketize(xs[0], xs[1]); },
       0},
      {"bincount", "counts", {numbers}, [](auto xs) { return bincount(xs[0], {.size = 7}); }, 0},
      {"bincount",
       "weights",
       {numbers, normal_numbers({2, 3}, 65)},
       [=](auto xs) { return square(bincount(xs[0], {.weights = xs[1], .size = 6})); }},
      {"bincount",
       "histogram of weights",
       {x, normal_numbers({3, 4, 5}, 66)},
       [=](auto xs) {
         return square(
             histogram(xs[0], 4, {.range = HistogramRange{-1.5, 1.5}, .weights = xs[1]}).counts);
       }},
      {"bincount", "histc", {x}, [](auto xs) { return histc(xs[0], 4, -1.5, 1.5); }, 0},
      {"bincount",
       "density between edges",
       {x, edges},
       [](auto xs) { return histogram(xs[0], stop_gradient(xs[1]), {.density = true}).counts; },
       0},
      {"nonzero",
       "positions",
       {distinct},
       [](auto xs) { return nonzero(greater(xs[0], 0.0), 4); },
       0},
      {"nonzero",
       "masked_select",
       {distinct, normal_numbers({2, 3}, 67)},
       [=](auto xs) { return square(masked_select(xs[1], greater(xs[0], 0.0), 4)); }},
      {"nonzero",
       "unique",
       {distinct},
       [=](auto xs) { return square(unique(xs[0], {.size = 6}).values); }},
      {"nonzero",
       "inverse of unique",
       {distinct},
       [](auto xs) { return unique(xs[0], {.inverse = true, .size = 6}).inverse; },
       0},
      {"nonzero",
       "unique_consecutive",
       {i64({3, 3, 1, 1, 1, 3}, {6})},
       [](auto xs) { return unique_consecutive(xs[0], {.counts = true, .size = 3}).counts; },
       0},
  };
}

}  // namespace palimpsest
