// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_functions.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor gather(const Tensor& x, int axis, const Tensor& index, Where where) {
  Evaluation on("gather", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return on.result(palimpsest::gather(on_x, axis, on_index, where));
}

Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, std::int64_t size, Where where) {
  Evaluation on("scatter_add", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return on.result(palimpsest::scatter_add(on_x, axis, on_index, size, where));
}

Tensor index_select(const Tensor& x, int axis, const Tensor& index, Where where) {
  Evaluation on("index_select", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return on.result(palimpsest::index_select(on_x, axis, on_index, where));
}

Tensor index_add(const Tensor& x, int axis, const Tensor& index, std::int64_t size, Where where) {
  Evaluation on("index_add", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return on.result(palimpsest::index_add(on_x, axis, on_index, size, where));
}

Tensor embedding(const Tensor& table, const Tensor& ids, Where where) {
  Evaluation on("embedding", where);
  const Var on_table = on(table);
  const Var on_ids = on(ids);
  return on.result(palimpsest::embedding(on_table, on_ids, where));
}

Tensor one_hot(const Tensor& ids, std::int64_t classes, DType dtype, Where where) {
  Evaluation on("one_hot", where);
  return on.result(palimpsest::one_hot(on(ids), classes, dtype, where));
}

Tensor full_like(const Tensor& x, double value, Where where) {
  Evaluation on("full_like", where);
  return on.result(palimpsest::full_like(on(x), value, where));
}

Tensor cast(const Tensor& x, DType dtype, Where where) {
  Evaluation on("cast", where);
  return on.result(palimpsest::cast(on(x), dtype, where));
}

Tensor sum(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("sum", where);
  return on.result(palimpsest::sum(on(x), axes, keep_axes, where));
}

Tensor mean(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("mean", where);
  return on.result(palimpsest::mean(on(x), axes, keep_axes, where));
}

Tensor prod(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("prod", where);
  return on.result(palimpsest::prod(on(x), axes, keep_axes, where));
}

Tensor max(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("max", where);
  return on.result(palimpsest::max(on(x), axes, keep_axes, where));
}

Tensor min(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("min", where);
  return on.result(palimpsest::min(on(x), axes, keep_axes, where));
}

Tensor argmax(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("argmax", where);
  return on.result(palimpsest::argmax(on(x), axes, keep_axes, where));
}

Tensor argmin(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("argmin", where);
  return on.result(palimpsest::argmin(on(x), axes, keep_axes, where));
}

Tensor variance(const Tensor& x, const Axes& axes, double correction, bool keep_axes, Where where) {
  Evaluation on("variance", where);
  return on.result(palimpsest::variance(on(x), axes, correction, keep_axes, where));
}

Tensor standard_deviation(const Tensor& x, const Axes& axes, double correction, bool keep_axes,
                          Where where) {
  Evaluation on("standard_deviation", where);
  return on.result(palimpsest::standard_deviation(on(x), axes, correction, keep_axes, where));
}

Tensor norm(const Tensor& x, double p, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("norm", where);
  return on.result(palimpsest::norm(on(x), p, axes, keep_axes, where));
}

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("logsumexp", where);
  return on.result(palimpsest::logsumexp(on(x), axes, keep_axes, where));
}

Tensor cumsum(const Tensor& x, int axis, bool reverse, Where where) {
  Evaluation on("cumsum", where);
  return on.result(palimpsest::cumsum(on(x), axis, reverse, where));
}

Tensor all(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("all", where);
  return on.result(palimpsest::all(on(x), axes, keep_axes, where));
}

Tensor any(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("any", where);
  return on.result(palimpsest::any(on(x), axes, keep_axes, where));
}

Tensor reshape(const Tensor& x, const Shape& shape, Where where) {
  Evaluation on("reshape", where);
  return on.result(palimpsest::reshape(on(x), shape, where));
}

Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> sizes, Where where) {
  Evaluation on("reshape", where);
  return on.result(palimpsest::reshape(on(x), sizes, where));
}

Tensor flatten(const Tensor& x, int first, int last, Where where) {
  Evaluation on("flatten", where);
  return on.result(palimpsest::flatten(on(x), first, last, where));
}

Tensor squeeze(const Tensor& x, const Axes& axes, Where where) {
  Evaluation on("squeeze", where);
  return on.result(palimpsest::squeeze(on(x), axes, where));
}

Tensor unsqueeze(const Tensor& x, int axis, Where where) {
  Evaluation on("unsqueeze", where);
  return on.result(palimpsest::unsqueeze(on(x), axis, where));
}

Tensor broadcast_to(const Tensor& x, const Shape& shape, Where where) {
  Evaluation on("broadcast_to", where);
  return on.result(palimpsest::broadcast_to(on(x), shape, where));
}

Tensor permute(const Tensor& x, const Axes& axes, Where where) {
  Evaluation on("permute", where);
  return on.result(palimpsest::permute(on(x), axes, where));
}

Tensor transpose(const Tensor& x, int a, int b, Where where) {
  Evaluation on("transpose", where);
  return on.result(palimpsest::transpose(on(x), a, b, where));
}

Tensor slice(const Tensor& x, std::span<const Slice> ranges, Where where) {
  Evaluation on("slice", where);
  return on.result(palimpsest::slice(on(x), ranges, where));
}

Tensor slice(const Tensor& x, std::initializer_list<Slice> ranges, Where where) {
  Evaluation on("slice", where);
  return on.result(palimpsest::slice(on(x), ranges, where));
}

Tensor slice(const Tensor& x, int axis, const Slice& range, Where where) {
  Evaluation on("slice", where);
  return on.result(palimpsest::slice(on(x), axis, range, where));
}

Tensor select(const Tensor& x, int axis, std::int64_t place, Where where) {
  Evaluation on("select", where);
  return on.result(palimpsest::select(on(x), axis, place, where));
}

Tensor flip(const Tensor& x, const Axes& axes, Where where) {
  Evaluation on("flip", where);
  return on.result(palimpsest::flip(on(x), axes, where));
}

Tensor roll(const Tensor& x, std::int64_t shift, int axis, Where where) {
  Evaluation on("roll", where);
  return on.result(palimpsest::roll(on(x), shift, axis, where));
}

Tensor pad(const Tensor& x, const std::vector<Padding>& widths, double value, Where where) {
  Evaluation on("pad", where);
  return on.result(palimpsest::pad(on(x), widths, value, where));
}

Tensor pad(const Tensor& x, const std::vector<Padding>& widths, PadMode mode, Where where) {
  Evaluation on("pad", where);
  return on.result(palimpsest::pad(on(x), widths, mode, where));
}

Tensor concat(std::span<const Tensor> parts, int axis, Where where) {
  Evaluation on("concat", where);
  return on.result(palimpsest::concat(on(parts), axis, where));
}

Tensor concat(std::initializer_list<Tensor> parts, int axis, Where where) {
  Evaluation on("concat", where);
  return on.result(palimpsest::concat(on(parts), axis, where));
}

Tensor stack(std::span<const Tensor> parts, int axis, Where where) {
  Evaluation on("stack", where);
  return on.result(palimpsest::stack(on(parts), axis, where));
}

Tensor stack(std::initializer_list<Tensor> parts, int axis, Where where) {
  Evaluation on("stack", where);
  return on.result(palimpsest::stack(on(parts), axis, where));
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, int axis,
                          Where where) {
  Evaluation on("split", where);
  return on.results(palimpsest::split(on(x), sizes, axis, where));
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, int axis, Where where) {
  Evaluation on("chunk", where);
  return on.results(palimpsest::chunk(on(x), count, axis, where));
}

Tensor tile(const Tensor& x, const std::vector<std::int64_t>& counts, Where where) {
  Evaluation on("tile", where);
  return on.result(palimpsest::tile(on(x), counts, where));
}

Tensor repeat(const Tensor& x, std::int64_t count, int axis, Where where) {
  Evaluation on("repeat", where);
  return on.result(palimpsest::repeat(on(x), count, axis, where));
}

Tensor repeat_interleave(const Tensor& x, std::int64_t count, int axis, Where where) {
  Evaluation on("repeat_interleave", where);
  return on.result(palimpsest::repeat_interleave(on(x), count, axis, where));
}

}  // namespace palimpsest
