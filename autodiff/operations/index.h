#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "autodiff/export.h"
#include "autodiff/operations/sorting.h"
#include "autodiff/var.h"

/// Operations that read and write at positions given by a tensor of integers. Positions count
/// from 0; negative ones are out of range. A position out of range throws `ArgumentError` when the
/// kernel runs, since it is not known earlier. An index of another dtype throws `DTypeError`, an
/// axis that does not exist `ShapeError`. Negative axes count from the end.
namespace palimpsest PALIMPSEST_EXPORT {

/// y[…, i, …] = x[…, index[…, i, …], …]: reads along `axis` at the positions in `index`. The shapes
/// of x and index are equal except along that axis. Any dtype. Throws `ShapeError` for an index
/// that is smaller than x along another axis. PyTorch would read only the corner of x; here,
/// `slice` x first.
Var gather(const Var& x, int axis, const Var& index, Where where = Where::current());

/// Returns zeros of `size` along `axis`, to which the elements of x are added at the positions in
/// `index`, which has x's shape. Several at one position are added in the order of their positions
/// in x. The adjoint of `gather`. Throws `ShapeError` for an index of another shape, also for a
/// smaller one, and for a negative `size`. Throws `DTypeError` for an x of bool.
Var scatter_add(const Var& x, int axis, const Var& index, std::int64_t size,
                Where where = Where::current());
/// x with the elements of `source` added along `axis` at the positions in `index`. Several at one
/// position are added in the order of their positions in `source`. Shapes are as for `scatter`.
/// Throws as `scatter`, and `DTypeError` for an x of bool.
Var scatter_add(const Var& x, int axis, const Var& index, const Var& source,
                Where where = Where::current());

/// x with the elements of `source` written along `axis` at the positions in `index`. The shapes of
/// `source` and `index` are equal, and equal x's except along that axis. Any dtype. If several
/// elements have one position, the last one along `axis` is written, at any number of threads. Only
/// that one has a derivative. Throws `ShapeError` for other shapes, also for an index that is
/// smaller along another axis, and `DTypeError` for a source of another dtype.
Var scatter(const Var& x, int axis, const Var& index, const Var& source,
            Where where = Where::current());
/// Writes a number at the positions in `index`.
Var scatter(const Var& x, int axis, const Var& index, double value, Where where = Where::current());

/// How `scatter_reduce` combines an element with those that are written to its position.
enum class ScatterReduction : std::uint8_t { sum, prod, mean, amax, amin };

/// x with each element reduced together with the elements of `source` that `index` sends to its
/// position along `axis`. Shapes are as for `scatter`. Elements that are not named keep their
/// value. Without `include_self`, those that are named are replaced by the reduction of the others.
///
/// Elements are combined in the order of their positions in `source`, at any number of threads. The
/// derivatives of products are products of the other elements, also at zeros. The extremes share
/// the adjoint equally where several are equal; NaN takes precedence. Throws as `scatter`, and
/// `DTypeError` for an x of bool, and for the mean of integers.
Var scatter_reduce(const Var& x, int axis, const Var& index, const Var& source,
                   ScatterReduction reduction, bool include_self = true,
                   Where where = Where::current());

/// The slices of x along `axis` at the positions in `index`, which has any shape. In the result,
/// the axes of `index` replace `axis`. Any dtype.
Var index_select(const Var& x, int axis, const Var& index, Where where = Where::current());

/// Returns zeros of `size` along `axis`, to which the slices of x are added at the positions in
/// `index`, in the order of x. The adjoint of `index_select`: in x, the axes of `index` replace
/// `axis`. For an index without axes, all of x is one slice. The result then has `axis` as an
/// additional axis, which may come after the last axis of x. Throws `ShapeError` when the shapes
/// do not fit, and for a negative `size`. Throws `DTypeError` for an x of bool.
Var index_add(const Var& x, int axis, const Var& index, std::int64_t size,
              Where where = Where::current());
/// x with the slices of `source` added along `axis` at the positions in `index`, in the order of
/// `source`. Shapes are as for `index_copy`. Throws as `index_copy`, and `DTypeError` for an x of
/// bool.
Var index_add(const Var& x, int axis, const Var& index, const Var& source,
              Where where = Where::current());

/// x with the slices of `source` written along `axis` at the positions in `index`, which has any
/// shape: in `source`, the axes of `index` replace `axis`. If several slices have one position, the
/// last one is written, and only that one has a derivative. Throws as `scatter`.
Var index_copy(const Var& x, int axis, const Var& index, const Var& source,
               Where where = Where::current());

/// The row-major positions, in a tensor of shape `sizes`, of the elements at (indices[0],
/// indices[1] …). One index per axis; they broadcast. i64. Throws `ShapeError` for another number
/// of indices.
Var ravel_multi_index(std::span<const Var> indices, const Shape& sizes,
                      Where where = Where::current());

/// The positions of the elements of x that are not zero, or are true, in row-major order: i64
/// (count, rank). Any dtype.
///
/// The count depends on values. Without `count`, x is therefore evaluated when the operation is
/// recorded, also on a lazy tape. In the function of a `checkpoint`, the count is that of its
/// inputs, which are the same when it is recomputed. A loop body that asks for a count is recorded
/// anew in each step (docs/loops.md). Where inputs have no values yet (pipelines, forecasts of
/// layers), an `ArgumentError` is thrown. With `count`, nothing is evaluated.
///
/// A run finds as many elements as were recorded, or the kernel throws `ArgumentError`. So a
/// `Program` that runs with other inputs gives exact results or an error.
Var nonzero(const Var& x, std::optional<std::int64_t> count = {}, Where where = Where::current());

/// The elements of x where `mask` (bool) is true, in row-major order: one axis. The operands
/// broadcast. Throws `DTypeError` for a mask that is not bool. The number of elements is found, or
/// given, as by `nonzero`.
Var masked_select(const Var& x, const Var& mask, std::optional<std::int64_t> count = {},
                  Where where = Where::current());

/// x[indices[0], indices[1], …] as in NumPy and PyTorch. Index a is for axis a; further axes are
/// taken whole, and so is an axis whose index is an empty handle. Integer indices broadcast with
/// each other. In the result their axes replace the indexed ones, or come first if those are not
/// adjacent. A bool index selects from as many axes as it has: it stands for the columns of its
/// `nonzero`, which says when it is evaluated. So `index(x, {mask})` is boolean indexing.
///
/// Throws `ShapeError` for too many indices, for none, when they do not broadcast, and for a
/// condition of other sizes than its axes.
Var index(const Var& x, std::span<const Var> indices, Where where = Where::current());
Var index(const Var& x, std::initializer_list<Var> indices, Where where = Where::current());

/// x with `values`, which broadcast to the shape of `index(x, indices)`, written at these elements.
/// If there are several for one element, the last one is written, and only that one has a
/// derivative. With `accumulate` all of them are added instead, in order. Throws as `index`, and
/// `DTypeError` for values of another dtype.
Var index_put(const Var& x, std::span<const Var> indices, const Var& values,
              bool accumulate = false, Where where = Where::current());
Var index_put(const Var& x, std::initializer_list<Var> indices, const Var& values,
              bool accumulate = false, Where where = Where::current());

/// The rows `ids[…]` of a table (rows, width). The result has the shape of ids, followed by width.
/// Throws `ShapeError` for a table of other ranks.
Var embedding(const Var& table, const Var& ids, Where where = Where::current());

/// 1 at the position `ids[…]` of a new last axis of size `classes`, 0 elsewhere. No derivative.
Var one_hot(const Var& ids, std::int64_t classes, DType dtype = DType::f32,
            Where where = Where::current());

}  // namespace palimpsest
