// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_functions.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

TensorValuesAndIndices sort(const Tensor& x, int axis, bool descending, Where where) {
  Evaluation on("sort", where);
  const ValuesAndIndices made = palimpsest::sort(on(x), axis, descending, where);
  const Var values[] = {made.values, made.indices};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

Tensor argsort(const Tensor& x, int axis, bool descending, Where where) {
  Evaluation on("argsort", where);
  return on.result(palimpsest::argsort(on(x), axis, descending, where));
}

Tensor lexsort(const Tensor& keys, Where where) {
  Evaluation on("lexsort", where);
  return on.result(palimpsest::lexsort(on(keys), where));
}

TensorValuesAndIndices topk(const Tensor& x, std::int64_t k, const TopkOptions& options,
                            Where where) {
  Evaluation on("topk", where);
  const ValuesAndIndices made = palimpsest::topk(on(x), k, options, where);
  const Var values[] = {made.values, made.indices};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorValuesAndIndices kthvalue(const Tensor& x, std::int64_t k, int axis, bool keep_axis,
                                Where where) {
  Evaluation on("kthvalue", where);
  const ValuesAndIndices made = palimpsest::kthvalue(on(x), k, axis, keep_axis, where);
  const Var values[] = {made.values, made.indices};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorValuesAndIndices median(const Tensor& x, int axis, bool keep_axis, Where where) {
  Evaluation on("median", where);
  const ValuesAndIndices made = palimpsest::median(on(x), axis, keep_axis, where);
  const Var values[] = {made.values, made.indices};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

Tensor median(const Tensor& x, Where where) {
  Evaluation on("median", where);
  return on.result(palimpsest::median(on(x), where));
}

TensorValuesAndIndices nanmedian(const Tensor& x, int axis, bool keep_axis, Where where) {
  Evaluation on("nanmedian", where);
  const ValuesAndIndices made = palimpsest::nanmedian(on(x), axis, keep_axis, where);
  const Var values[] = {made.values, made.indices};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

Tensor nanmedian(const Tensor& x, Where where) {
  Evaluation on("nanmedian", where);
  return on.result(palimpsest::nanmedian(on(x), where));
}

Tensor quantile(const Tensor& x, double q, const QuantileOptions& options, Where where) {
  Evaluation on("quantile", where);
  return on.result(palimpsest::quantile(on(x), q, options, where));
}

Tensor quantile(const Tensor& x, std::span<const double> qs, const QuantileOptions& options,
                Where where) {
  Evaluation on("quantile", where);
  return on.result(palimpsest::quantile(on(x), qs, options, where));
}

Tensor nanquantile(const Tensor& x, double q, const QuantileOptions& options, Where where) {
  Evaluation on("nanquantile", where);
  return on.result(palimpsest::nanquantile(on(x), q, options, where));
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right, Where where) {
  Evaluation on("searchsorted", where);
  const Var on_sorted = on(sorted);
  const Var on_values = on(values);
  return on.result(palimpsest::searchsorted(on_sorted, on_values, right, where));
}

Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool right, Where where) {
  Evaluation on("bucketize", where);
  const Var on_values = on(values);
  const Var on_boundaries = on(boundaries);
  return on.result(palimpsest::bucketize(on_values, on_boundaries, right, where));
}

Tensor bincount(const Tensor& x, const TensorBincountOptions& options, Where where) {
  Evaluation on("bincount", where);
  const Var on_x = on(x);
  const BincountOptions on_options{.weights = on.optional(options.weights),
                                   .minlength = options.minlength,
                                   .size = options.size};
  return on.result(palimpsest::bincount(on_x, on_options, where));
}

TensorHistogram histogram(const Tensor& x, std::int64_t bins, const TensorHistogramOptions& options,
                          Where where) {
  Evaluation on("histogram", where);
  const Var on_x = on(x);
  const HistogramOptions on_options{
      .range = options.range, .weights = on.optional(options.weights), .density = options.density};
  const Histogram made = palimpsest::histogram(on_x, bins, on_options, where);
  const Var values[] = {made.counts, made.edges};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorHistogram histogram(const Tensor& x, const Tensor& edges,
                          const TensorHistogramOptions& options, Where where) {
  Evaluation on("histogram", where);
  const Var on_x = on(x);
  const Var on_edges = on(edges);
  const HistogramOptions on_options{
      .range = options.range, .weights = on.optional(options.weights), .density = options.density};
  const Histogram made = palimpsest::histogram(on_x, on_edges, on_options, where);
  const Var values[] = {made.counts, made.edges};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

Tensor histc(const Tensor& x, std::int64_t bins, double low, double high, Where where) {
  Evaluation on("histc", where);
  return on.result(palimpsest::histc(on(x), bins, low, high, where));
}

TensorUnique unique(const Tensor& x, const UniqueOptions& options, Where where) {
  Evaluation on("unique", where);
  const Unique made = palimpsest::unique(on(x), options, where);
  const Var values[] = {made.values, made.inverse, made.counts};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1], all[2]};
}

TensorUnique unique_consecutive(const Tensor& x, const UniqueOptions& options, Where where) {
  Evaluation on("unique_consecutive", where);
  const Unique made = palimpsest::unique_consecutive(on(x), options, where);
  const Var values[] = {made.values, made.inverse, made.counts};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1], all[2]};
}

}  // namespace palimpsest
