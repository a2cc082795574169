// Examples of docs/reference/reductions.md.
#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(sum, mean, prod) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}});
  print(sum(x), mean(x), prod(x));  // → 10 2.5 24
  // Over an axis.
  print(sum(x, 0), sum(x, 1));  // → [4, 6] [3, 7]
  // Keeps the axis with size 1.
  print(sum(x, 1, true));  // → [[3], [7]]
}

EXAMPLE(max, min, argmax, argmin) {
  const Tensor x = Tensor::matrix({{1, 5}, {3, 4}});
  print(max(x), min(x), max(x, 1));  // → 5 1 [5, 4]
  print(argmax(x, 1), argmin(x));    // → [1, 1] 0
}

EXAMPLE(variance, standard_deviation) {
  const Tensor x = Tensor::vector({1, 2, 3, 4});
  print(variance(x), standard_deviation(x));  // → 1.667 1.291
  // Divides by n instead of n - 1.
  print(variance(x, {}, 0));  // → 1.25
}

EXAMPLE(norm, logsumexp) {
  const Tensor x = Tensor::vector({3, -4});
  print(norm(x), norm(x, 1), norm(x, INFINITY));   // → 5 7 4
  print(logsumexp(Tensor::vector({1000, 1000})));  // → 1001
}

EXAMPLE(cumsum, cumprod, logcumsumexp) {
  const Tensor x = Tensor::vector({1, 2, 3});
  print(cumsum(x, 0), cumprod(x, 0));  // → [1, 3, 6] [1, 2, 6]
  // From the end.
  print(cumsum(x, 0, true));  // → [6, 5, 3]
  print(logcumsumexp(x, 0));  // → [1, 2.313, 3.408]
}

EXAMPLE(cummax, cummin, ValuesAndIndices) {
  const auto best = cummax(Tensor::vector({1, 3, 2}), 0);
  print(best.values, best.indices);                    // → [1, 3, 3] [0, 1, 1]
  print(cummin(Tensor::vector({3, 1, 2}), 0).values);  // → [3, 1, 1]
}

EXAMPLE(linear_recurrence) {
  const Tensor a = Tensor::vector({0.5, 0.5, 0.5}), b = Tensor::vector({1, 1, 1});
  // y[i] = a[i]·y[i-1] + b[i].
  print(linear_recurrence(a, b, 0));  // → [1, 1.5, 1.75]
}

EXAMPLE(all, any) {
  const Tensor x = Tensor::vector({1, 0, 2});
  print(all(x > 0), any(x > 1));  // → 0 1
}

EXAMPLE(sort, argsort) {
  const auto sorted = sort(Tensor::vector({3, 1, 2}));
  print(sorted.values, sorted.indices);  // → [1, 2, 3] [1, 2, 0]
  // Descending.
  print(argsort(Tensor::vector({3, 1, 2}), -1, true));  // → [0, 2, 1]
}

EXAMPLE(topk, TopkOptions, kthvalue) {
  const Tensor x = Tensor::vector({3, 1, 4, 1});
  const auto best = topk(x, 2);
  print(best.values, best.indices);                                     // → [4, 3] [2, 0]
  print(topk(Tensor::matrix({{3, 1}, {2, 5}}), 1, 0).values);           // → [[3, 5]]
  print(topk(x, 2, {.largest = false}).values, kthvalue(x, 3).values);  // → [1, 1] 3
}

EXAMPLE(median, nanmedian) {
  // The lower of the middle two.
  print(median(Tensor::vector({3, 1, 4, 1})));            // → 1
  print(nanmedian(Tensor::vector({3, NAN, 1, 2})));       // → 2
  print(median(Tensor::matrix({{3, 1, 2}}), 1).indices);  // → [2]
}

EXAMPLE(quantile, nanquantile, QuantileOptions, QuantileMethod) {
  const Tensor x = Tensor::vector({1, 2, 3, 4});
  print(quantile(x, 0.5), quantile(x, 0.5, {.method = QuantileMethod::lower}));  // → 2.5 2
  print(quantile(x, std::vector{0.25, 0.75}));                                   // → [1.75, 3.25]
  print(nanquantile(Tensor::vector({1, NAN, 3}), 0.5));                          // → 2
}

EXAMPLE(searchsorted, bucketize) {
  const Tensor edges = Tensor::vector({1, 3, 5});
  print(searchsorted(edges, Tensor::vector({0, 3, 4})));     // → [0, 1, 2]
  print(bucketize(Tensor::vector({0, 3, 4}), edges, true));  // → [0, 2, 2]
}

EXAMPLE(bincount, BincountOptions) {
  const Tensor x = Tensor::from<std::int64_t>({0, 2, 2}, {3});
  print(bincount(x));  // → [1, 0, 2]
}

EXAMPLE(histogram, histc, Histogram, HistogramOptions, HistogramRange) {
  const auto found = histogram(Tensor::vector({1, 2, 2, 5}), 2);
  print(found.counts, found.edges);                     // → [3, 1] [1, 3, 5]
  print(histc(Tensor::vector({1, 2, 2, 5}), 2, 0, 4));  // → [1, 2]
}

EXAMPLE(unique, unique_consecutive, UniqueOptions, Unique) {
  const auto found = unique(Tensor::vector({3, 1, 3}), {.inverse = true, .counts = true});
  print(found.values, found.inverse, found.counts);                // → [1, 3] [1, 0, 1] [1, 2]
  print(unique_consecutive(Tensor::vector({1, 1, 2, 1})).values);  // → [1, 2, 1]
}

EXAMPLE(lexsort) {
  // By the second key, and by the first where that is equal.
  const Tensor keys = Tensor::matrix({{2, 1, 0}, {1, 1, 0}});
  print(lexsort(keys));  // → [2, 1, 0]
}

}  // namespace reference
