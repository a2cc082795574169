// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_functions.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor zeros_like(const Tensor& x, Where where) {
  Evaluation on("zeros_like", where);
  return on.result(palimpsest::zeros_like(on(x), where));
}

Tensor ones_like(const Tensor& x, Where where) {
  Evaluation on("ones_like", where);
  return on.result(palimpsest::ones_like(on(x), where));
}

Tensor diagonal(const Tensor& x, int offset, int a, int b, Where where) {
  Evaluation on("diagonal", where);
  return on.result(palimpsest::diagonal(on(x), offset, a, b, where));
}

Tensor diag_embed(const Tensor& x, int offset, int a, int b, Where where) {
  Evaluation on("diag_embed", where);
  return on.result(palimpsest::diag_embed(on(x), offset, a, b, where));
}

Tensor diag(const Tensor& x, int offset, Where where) {
  Evaluation on("diag", where);
  return on.result(palimpsest::diag(on(x), offset, where));
}

Tensor trace(const Tensor& x, int offset, int a, int b, Where where) {
  Evaluation on("trace", where);
  return on.result(palimpsest::trace(on(x), offset, a, b, where));
}

Tensor block_diag(std::span<const Tensor> blocks, Where where) {
  Evaluation on("block_diag", where);
  return on.result(palimpsest::block_diag(on(blocks), where));
}

Tensor block_diag(std::initializer_list<Tensor> blocks, Where where) {
  Evaluation on("block_diag", where);
  return on.result(palimpsest::block_diag(on(blocks), where));
}

std::vector<Tensor> meshgrid(std::span<const Tensor> vectors, GridIndexing indexing, Where where) {
  Evaluation on("meshgrid", where);
  return on.results(palimpsest::meshgrid(on(vectors), indexing, where));
}

std::vector<Tensor> meshgrid(std::initializer_list<Tensor> vectors, GridIndexing indexing,
                             Where where) {
  Evaluation on("meshgrid", where);
  return on.results(palimpsest::meshgrid(on(vectors), indexing, where));
}

Tensor kron(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("kron", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::kron(on_a, on_b, where));
}

Tensor cross(const Tensor& a, const Tensor& b, int axis, Where where) {
  Evaluation on("cross", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::cross(on_a, on_b, axis, where));
}

Tensor movedim(const Tensor& x, int from, int to, Where where) {
  Evaluation on("movedim", where);
  return on.result(palimpsest::movedim(on(x), from, to, where));
}

Tensor swapaxes(const Tensor& x, int a, int b, Where where) {
  Evaluation on("swapaxes", where);
  return on.result(palimpsest::swapaxes(on(x), a, b, where));
}

Tensor unflatten(const Tensor& x, int axis, std::initializer_list<std::int64_t> sizes,
                 Where where) {
  Evaluation on("unflatten", where);
  return on.result(palimpsest::unflatten(on(x), axis, sizes, where));
}

Tensor fliplr(const Tensor& x, Where where) {
  Evaluation on("fliplr", where);
  return on.result(palimpsest::fliplr(on(x), where));
}

Tensor flipud(const Tensor& x, Where where) {
  Evaluation on("flipud", where);
  return on.result(palimpsest::flipud(on(x), where));
}

Tensor rot90(const Tensor& x, int times, int a, int b, Where where) {
  Evaluation on("rot90", where);
  return on.result(palimpsest::rot90(on(x), times, a, b, where));
}

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

Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                   Where where) {
  Evaluation on("scatter_add", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return on.result(palimpsest::scatter_add(on_x, axis, on_index, on_source, where));
}

Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& source, Where where) {
  Evaluation on("scatter", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return on.result(palimpsest::scatter(on_x, axis, on_index, on_source, where));
}

Tensor scatter(const Tensor& x, int axis, const Tensor& index, double value, Where where) {
  Evaluation on("scatter", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return on.result(palimpsest::scatter(on_x, axis, on_index, value, where));
}

Tensor scatter_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                      ScatterReduction reduction, bool include_self, Where where) {
  Evaluation on("scatter_reduce", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return on.result(
      palimpsest::scatter_reduce(on_x, axis, on_index, on_source, reduction, include_self, where));
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

Tensor index_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                 Where where) {
  Evaluation on("index_add", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return on.result(palimpsest::index_add(on_x, axis, on_index, on_source, where));
}

Tensor index_copy(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                  Where where) {
  Evaluation on("index_copy", where);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return on.result(palimpsest::index_copy(on_x, axis, on_index, on_source, where));
}

Tensor ravel_multi_index(std::span<const Tensor> indices, const Shape& sizes, Where where) {
  Evaluation on("ravel_multi_index", where);
  return on.result(palimpsest::ravel_multi_index(on(indices), sizes, where));
}

Tensor nonzero(const Tensor& x, std::optional<std::int64_t> count, Where where) {
  Evaluation on("nonzero", where);
  return on.result(palimpsest::nonzero(on(x), count, where));
}

Tensor masked_select(const Tensor& x, const Tensor& mask, std::optional<std::int64_t> count,
                     Where where) {
  Evaluation on("masked_select", where);
  const Var on_x = on(x);
  const Var on_mask = on(mask);
  return on.result(palimpsest::masked_select(on_x, on_mask, count, where));
}

Tensor index(const Tensor& x, std::span<const Tensor> indices, Where where) {
  Evaluation on("index", where);
  const Var on_x = on(x);
  const std::vector<Var> on_indices = on(indices);
  return on.result(palimpsest::index(on_x, on_indices, where));
}

Tensor index(const Tensor& x, std::initializer_list<Tensor> indices, Where where) {
  Evaluation on("index", where);
  const Var on_x = on(x);
  const std::vector<Var> on_indices = on(indices);
  return on.result(palimpsest::index(on_x, on_indices, where));
}

Tensor index_put(const Tensor& x, std::span<const Tensor> indices, const Tensor& values,
                 bool accumulate, Where where) {
  Evaluation on("index_put", where);
  const Var on_x = on(x);
  const std::vector<Var> on_indices = on(indices);
  const Var on_values = on(values);
  return on.result(palimpsest::index_put(on_x, on_indices, on_values, accumulate, where));
}

Tensor index_put(const Tensor& x, std::initializer_list<Tensor> indices, const Tensor& values,
                 bool accumulate, Where where) {
  Evaluation on("index_put", where);
  const Var on_x = on(x);
  const std::vector<Var> on_indices = on(indices);
  const Var on_values = on(values);
  return on.result(palimpsest::index_put(on_x, on_indices, on_values, accumulate, where));
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
