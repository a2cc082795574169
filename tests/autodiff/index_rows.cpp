#include "autodiff/operations/index.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> index_rows() {
  const auto numbers = [](Shape shape) { return Tensor::normal(shape, 41, 0, 1, DType::f64); };
  const auto places = [](std::vector<std::int64_t> list, Shape shape, DType dtype = DType::i64) {
    return Tensor::from(list, shape).to(dtype);
  };
  const Tensor x = numbers({3, 4, 2});
  const Tensor along = places({0, 3, 3, 1, 2, 2, 0, 0, 1, 3, 2, 1}, {3, 2, 2});
  const Tensor ids = places({2, 0, 2, 2, 1, 3}, {2, 3}, DType::i32);
  const auto square = [](const Var& y) { return y * y; };
  return {
      {"gather",
       "middle axis",
       {x, along},
       [=](auto xs) { return square(gather(xs[0], 1, xs[1])); }},
      {"gather",
       "last axis, i32",
       {numbers({2, 5}), ids},
       [=](auto xs) { return square(gather(xs[0], -1, xs[1])); }},
      {"gather",
       "nothing",
       {numbers({2, 5}), places({}, {2, 0})},
       [](auto xs) { return gather(xs[0], 1, xs[1]); }},
      {"scatter_add",
       "middle axis",
       {numbers({3, 2, 2}), along},
       [=](auto xs) { return square(scatter_add(xs[0], 1, xs[1], 4)); }},
      {"scatter_add",
       "many at few places",
       {numbers({3, 2, 90}), places(std::vector<std::int64_t>(540, 1), {3, 2, 90})},
       [](auto xs) { return scatter_add(xs[0], 1, xs[1], 2); },
       1},
      {"index_select",
       "middle axis by a matrix",
       {x, ids},
       [=](auto xs) { return square(index_select(xs[0], 1, xs[1])); }},
      {"index_select",
       "by one place",
       {x, places({1}, {})},
       [=](auto xs) { return square(index_select(xs[0], -1, xs[1])); }},
      {"index_select",
       "embedding",
       {numbers({4, 70}), ids},
       [=](auto xs) { return square(embedding(xs[0], xs[1])); },
       1},
      {"index_add",
       "a matrix of places",
       {numbers({2, 2, 3, 2}), ids},
       [=](auto xs) { return square(index_add(xs[0], 1, xs[1], 4)); }},
      {"index_add",
       "one place behind the last axis",
       {numbers({2, 3}), places({1}, {})},
       [=](auto xs) { return square(index_add(xs[0], 2, xs[1], 3)); }},
      {"scatter",
       "middle axis",
       {x, along, numbers({3, 2, 2})},
       [=](auto xs) { return square(scatter(xs[0], 1, xs[1], xs[2])); }},
      {"scatter",
       "repeated positions, i32",
       {numbers({2, 5}), ids, numbers({2, 3})},
       [=](auto xs) { return square(scatter(xs[0], -1, xs[1], xs[2])); }},
      {"scatter",
       "a number at many places",
       {numbers({3, 2, 90}), places(std::vector<std::int64_t>(540, 1), {3, 2, 90})},
       [](auto xs) { return scatter(xs[0], 1, xs[1], 0.5); },
       1},
      {"scatter",
       "nothing",
       {numbers({2, 5}), places({}, {2, 0}), numbers({2, 0})},
       [](auto xs) { return scatter(xs[0], 1, xs[1], xs[2]); }},
      {"scatter_recurrence",
       "products",
       {x, along, numbers({3, 2, 2})},
       [=](auto xs) { return scatter_reduce(xs[0], 1, xs[1], xs[2], ScatterReduction::prod); }},
      {"scatter_recurrence",
       "products of the source, with zeros",
       {numbers({2, 5}), ids, Tensor::from({0.0, 2.0, 0.0, 0.0, -1.0, 3.0}, {2, 3})},
       [=](auto xs) {
         return scatter_reduce(xs[0], 1, xs[1], xs[2], ScatterReduction::prod, false);
       }},
      {"scatter_recurrence",
       "of nothing",
       {numbers({2, 5}), places({}, {2, 0}), numbers({2, 0})},
       [](auto xs) { return scatter_reduce(xs[0], 1, xs[1], xs[2], ScatterReduction::prod); }},
      {"scatter_extreme",
       "largest",
       {x, along, normal_numbers({3, 2, 2}, 42)},
       [=](auto xs) {
         return square(scatter_reduce(xs[0], 1, xs[1], xs[2], ScatterReduction::amax));
       }},
      {"scatter_extreme",
       "smallest of the source, i32",
       {numbers({2, 5}), ids, normal_numbers({2, 3}, 42)},
       [=](auto xs) {
         return square(scatter_reduce(xs[0], -1, xs[1], xs[2], ScatterReduction::amin, false));
       }},
      {"scatter_sum",
       "middle axis",
       {x, along, numbers({3, 2, 2})},
       [=](auto xs) { return square(scatter_add(xs[0], 1, xs[1], xs[2])); }},
      {"scatter_sum",
       "many at few places",
       {numbers({3, 2, 2}), places(std::vector<std::int64_t>(180, 1), {3, 30, 2}),
        numbers({3, 30, 2})},
       [](auto xs) { return scatter_add(xs[0], 1, xs[1], xs[2]); },
       1},
      {"scatter_sum",
       "nothing",
       {numbers({2, 5}), places({}, {2, 0}), numbers({2, 0})},
       [](auto xs) { return scatter_add(xs[0], 1, xs[1], xs[2]); }},
      {"scatter_sum",
       "scatter_reduce, sums",
       {x, along, numbers({3, 2, 2})},
       [=](auto xs) {
         return square(scatter_reduce(xs[0], 1, xs[1], xs[2], ScatterReduction::sum));
       }},
      {"scatter_sum",
       "scatter_reduce, means of the source",
       {numbers({2, 5}), ids, numbers({2, 3})},
       [=](auto xs) {
         return square(scatter_reduce(xs[0], 1, xs[1], xs[2], ScatterReduction::mean, false));
       }},
      {"index_copy",
       "a matrix of places, one twice",
       {x, ids, numbers({3, 2, 3, 2})},
       [=](auto xs) { return square(index_copy(xs[0], 1, xs[1], xs[2])); }},
      {"index_copy",
       "one place",
       {numbers({2, 3}), places({1}, {}), numbers({2})},
       [=](auto xs) { return square(index_copy(xs[0], 1, xs[1], xs[2])); }},
      {"ravel_multi_index",
       "index of two axes",
       {x, places({0, 2, 1}, {3, 1}), ids},
       [=](auto xs) {
         const Var row = index_select(reshape(xs[2], {6}), 0, xs[1]);
         return square(index(xs[0], {xs[1], reshape(row, {1, 3})}));
       }},
      {"ravel_multi_index",
       "index of the last axes",
       {x, places({3, 0}, {2}), places({1}, {1})},
       [=](auto xs) { return square(index(xs[0], {Var(), xs[1], xs[2]})); }},
      {"ravel_multi_index",
       "index of the outer axes",
       {x, places({2, 0}, {2}), places({1, 1}, {2})},
       [=](auto xs) { return square(index(xs[0], {xs[1], Var(), xs[2]})); }},
      {"index_copy",
       "index_put",
       {x, places({2, 0, 2}, {3}), numbers({3, 1, 2})},
       [=](auto xs) { return square(index_put(xs[0], {xs[1]}, xs[2])); }},
      {"index_sum",
       "a matrix of places, one twice",
       {x, ids, numbers({3, 2, 3, 2})},
       [=](auto xs) { return square(index_add(xs[0], 1, xs[1], xs[2])); }},
      {"index_sum",
       "one place",
       {numbers({2, 3}), places({1}, {}), numbers({2})},
       [=](auto xs) { return square(index_add(xs[0], 1, xs[1], xs[2])); }},
      {"index_sum",
       "index_put, accumulating",
       {x, places({3, 0, 3}, {3}), numbers({3, 3, 2})},
       [=](auto xs) { return square(index_put(xs[0], {Var(), xs[1]}, xs[2], true)); }},
      {"one_hot", "of a matrix", {ids}, [](auto xs) { return one_hot(xs[0], 4, DType::f64); }, 0},
  };
}

}  // namespace palimpsest
