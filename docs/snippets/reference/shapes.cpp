// Examples of docs/reference/shapes.md.
#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(reshape, flatten, unflatten) {
  const Tensor x = Tensor::arange(6);
  // One size may be inferred.
  print(reshape(x, {2, -1}));          // → [[0, 1, 2], [3, 4, 5]]
  print(flatten(reshape(x, {2, 3})));  // → [0, 1, 2, 3, 4, 5]
  print(unflatten(x, 0, {3, 2}));      // → [[0, 1], [2, 3], [4, 5]]
}

EXAMPLE(squeeze, unsqueeze) {
  const Tensor x = Tensor::ones({1, 3, 1});
  print(squeeze(x).shape(), squeeze(x, 0).shape());  // → (3) (3, 1)
  print(unsqueeze(Tensor::ones({3}), -1).shape());   // → (3, 1)
}

EXAMPLE(broadcast_to) {
  print(broadcast_to(Tensor::vector({1, 2}), {2, 2}));  // → [[1, 2], [1, 2]]
}

EXAMPLE(permute, transpose, swapaxes, movedim) {
  const Tensor x = Tensor::zeros({2, 3, 4});
  print(permute(x, {2, 0, 1}).shape(), transpose(x).shape());  // → (4, 2, 3) (2, 4, 3)
  print(swapaxes(x, 0, 2).shape(), movedim(x, 0, 2).shape());  // → (4, 3, 2) (3, 4, 2)
}

EXAMPLE(slice, Slice, select) {
  const Tensor x = reshape(Tensor::arange(6), {2, 3});
  // Columns from 1 on.
  print(slice(x, 1, {.start = 1}));  // → [[1, 2], [4, 5]]
  // All rows, the last column.
  print(slice(x, {{}, {.start = -1}}));  // → [[2], [5]]
  // Columns backwards.
  print(slice(x, 1, {.step = -1}));  // → [[2, 1, 0], [5, 4, 3]]
  // Row 1, without the axis.
  print(select(x, 0, 1));  // → [3, 4, 5]
}

EXAMPLE(Index, new_axis, ellipsis) {
  const Tensor x = reshape(Tensor::arange(6), {2, 3});
  // A row, an element.
  print(x[1], x[{0, 2}]);  // → [3, 4, 5] 2
  // The last axis from 1 on.
  print(x[{ellipsis, Slice{.start = 1}}]);  // → [[1, 2], [4, 5]]
  print(x[{new_axis, 0}].shape());          // → (1, 3)
  // Where a condition holds.
  print(x[greater(x, 2.0)]);  // → [3, 4, 5]
}

EXAMPLE(flip, roll, fliplr, flipud, rot90) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}});
  print(flip(x, 0), flip(x));                              // → [[3, 4], [1, 2]] [[4, 3], [2, 1]]
  print(fliplr(x), flipud(x));                             // → [[2, 1], [4, 3]] [[3, 4], [1, 2]]
  print(rot90(x), roll(Tensor::vector({1, 2, 3}), 1, 0));  // → [[2, 4], [1, 3]] [3, 1, 2]
}

EXAMPLE(pad, Padding, PadMode) {
  const Tensor x = Tensor::vector({1, 2, 3});
  // One zero before, two after.
  print(pad(x, {{1, 2}}));                    // → [0, 1, 2, 3, 0, 0]
  print(pad(x, {{2, 0}}, PadMode::reflect));  // → [3, 2, 1, 2, 3]
}

EXAMPLE(concat, stack) {
  const Tensor a = Tensor::vector({1, 2}), b = Tensor::vector({3, 4});
  print(concat({a, b}, 0), stack({a, b}, 0));  // → [1, 2, 3, 4] [[1, 2], [3, 4]]
}

EXAMPLE(split, chunk, unstack) {
  const Tensor x = Tensor::vector({1, 2, 3, 4});
  const std::vector<Tensor> parts = split(x, {1, 3}, 0);
  print(parts[0], parts[1]);  // → [1] [2, 3, 4]
  print(chunk(x, 2, 0)[1]);   // → [3, 4]
  Tape tape;
  const auto [a, b] = unstack<2>(tape.constant(Tensor::matrix({{1, 2}, {3, 4}})));
  print(a, b);  // → [1, 2] [3, 4]
}

EXAMPLE(tile, repeat, repeat_interleave) {
  const Tensor x = Tensor::vector({1, 2});
  print(tile(x, {2}), repeat(x, 2, 0));  // → [1, 2, 1, 2] [1, 1, 2, 2]
}

EXAMPLE(gather) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}});
  const Tensor index = Tensor::from<std::int64_t>({1, 0}, {2, 1});
  // One element of each row.
  print(gather(x, 1, index));  // → [[2], [3]]
}

EXAMPLE(scatter_add, scatter) {
  const Tensor index = Tensor::from<std::int64_t>({0, 2, 0}, {3});
  // 1 and 3 meet at 0.
  print(scatter_add(Tensor::vector({1, 2, 3}), 0, index, 4));                  // → [4, 0, 2, 0]
  print(scatter_add(Tensor::ones({4}), 0, index, Tensor::vector({1, 2, 3})));  // → [5, 1, 3, 1]
  print(scatter(Tensor::zeros({4}), 0, index, 5.0));                           // → [5, 0, 5, 0]
}

EXAMPLE(index_select, index_add, index_copy) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}, {5, 6}});
  const Tensor rows = Tensor::from<std::int64_t>({2, 0}, {2});
  print(index_select(x, 0, rows));                                 // → [[5, 6], [1, 2]]
  print(index_add(Tensor::matrix({{1, 1}, {2, 2}}), 0, rows, 3));  // → [[2, 2], [0, 0], [1, 1]]
  print(index_add(x, 0, rows, Tensor::ones({2, 2})));              // → [[2, 3], [3, 4], [6, 7]]
  print(index_copy(x, 0, rows, Tensor::zeros({2, 2})));            // → [[0, 0], [3, 4], [0, 0]]
}

EXAMPLE(index, index_put, ravel_multi_index) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}});
  const Tensor i = Tensor::from<std::int64_t>({0, 1}, {2});
  // The diagonal.
  print(index(x, {i, i}));                              // → [1, 4]
  print(index_put(x, {i, i}, Tensor::vector({7, 8})));  // → [[7, 2], [3, 8]]
  print(ravel_multi_index(std::vector{i, i}, {2, 2}));  // → [0, 3]
}

EXAMPLE(nonzero, masked_select) {
  const Tensor x = Tensor::vector({0, 3, 0, 4});
  print(nonzero(x));               // → [[1], [3]]
  print(masked_select(x, x > 3));  // → [4]
}

EXAMPLE(embedding, one_hot) {
  const Tensor table = Tensor::matrix({{1, 2}, {3, 4}, {5, 6}});
  const Tensor ids = Tensor::from<std::int64_t>({2, 0}, {2});
  print(embedding(table, ids));  // → [[5, 6], [1, 2]]
  print(one_hot(ids, 3));        // → [[0, 0, 1], [1, 0, 0]]
}

EXAMPLE(full, full_like, zeros, ones, zeros_like, ones_like) {
  Tape tape;
  print(full(tape, {2}, 7), zeros(tape, {2}), ones(tape, {2}));  // → [7, 7] [0, 0] [1, 1]
  const Tensor x = Tensor::vector({1, 2});
  print(full_like(x, 3), zeros_like(x), ones_like(x));  // → [3, 3] [0, 0] [1, 1]
}

EXAMPLE(arange, linspace, logspace) {
  Tape tape;
  print(arange(tape, 0, 2, 0.5), linspace(tape, 0, 1, 5));
  // → [0, 0.5, 1, 1.5] [0, 0.25, 0.5, 0.75, 1]
  print(logspace(tape, 0, 3, 4));  // → [1, 10, 100, 1000]
}

EXAMPLE(eye) {
  Tape tape;
  print(eye(tape, 2), eye(tape, 2, 3));  // → [[1, 0], [0, 1]] [[1, 0, 0], [0, 1, 0]]
}

EXAMPLE(diag, diagonal, diag_embed, trace) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}});
  print(diag(x), diagonal(x, 1), trace(x));   // → [1, 4] [2] 5
  print(diag(Tensor::vector({1, 2})));        // → [[1, 0], [0, 2]]
  print(diag_embed(Tensor::vector({1, 2})));  // → [[1, 0], [0, 2]]
}

EXAMPLE(block_diag, kron, cross) {
  const Tensor a = Tensor::matrix({{1, 2}}), b = Tensor::matrix({{3}});
  print(block_diag({a, b}));                                           // → [[1, 2, 0], [0, 0, 3]]
  print(kron(a, Tensor::matrix({{1, 10}})));                           // → [[1, 10, 2, 20]]
  print(cross(Tensor::vector({1, 0, 0}), Tensor::vector({0, 1, 0})));  // → [0, 0, 1]
}

EXAMPLE(meshgrid, GridIndexing) {
  const auto grid = meshgrid({Tensor::vector({1, 2}), Tensor::vector({3, 4})});
  print(grid[0], grid[1]);  // → [[1, 1], [2, 2]] [[3, 4], [3, 4]]
}

EXAMPLE(stop_gradient, identity) {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(3));
  // The second factor counts as a constant.
  print(gradient(x * stop_gradient(x), x));  // → 3
}

EXAMPLE(cast) {
  const Tensor x = cast(Tensor::vector({1.7, -1.7}), DType::i32);
  print(x, x.dtype());  // → [1, -1] i32
}

EXAMPLE(scatter_reduce, ScatterReduction) {
  const Tensor index = Tensor::from<std::int64_t>({0, 0, 2}, {3});
  const Tensor source = Tensor::vector({1, 4, 2});
  const Tensor x = Tensor::vector({2, 5, 3});
  print(scatter_reduce(x, 0, index, source, ScatterReduction::amax));  // → [4, 5, 3]
}

EXAMPLE(Index::kind, Index::place, Index::range, Index::is_mask, Index::taken_axes,
        Index::positions, Index::where) {
  Tape tape;
  const Index row = 2, columns = Slice{.start = 1}, mask = Tensor::ones({2, 3}) > 0;
  print(row.kind() == Index::Kind::place, row.place(), columns.range().start.value());
  // → true 2 1
  print(mask.is_mask(), mask.taken_axes(), mask.positions(tape).shape());  // → true 2 (2, 3)
}

}  // namespace reference
