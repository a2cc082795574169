#pragma once

#include <cstdint>

#include "autodiff/export.h"
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

/// The slices of x along `axis` at the positions in `index`, which has any shape. In the result,
/// the axes of `index` replace `axis`. Any dtype.
Var index_select(const Var& x, int axis, const Var& index, Where where = Where::current());

/// Returns zeros of `size` along `axis`, to which the slices of x are added at the positions in
/// `index`, in the order of x. The adjoint of `index_select`: in x, the axes of `index` replace
/// `axis`. An index without axes replaces none: all of x is one slice, and the result has `axis` as
/// an additional axis, which may come after the last axis of x. Throws `ShapeError` when the shapes
/// do not fit, and for a negative `size`. Throws `DTypeError` for an x of bool.
Var index_add(const Var& x, int axis, const Var& index, std::int64_t size,
              Where where = Where::current());

/// The rows `ids[…]` of a table (rows, width). The result has the shape of ids, followed by width.
/// Throws `ShapeError` for a table of other ranks.
Var embedding(const Var& table, const Var& ids, Where where = Where::current());

/// 1 at the position `ids[…]` of a new last axis of size `classes`, 0 elsewhere. No derivative.
Var one_hot(const Var& ids, std::int64_t classes, DType dtype = DType::f32,
            Where where = Where::current());

}  // namespace palimpsest
