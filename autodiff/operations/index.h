#pragma once

#include <cstdint>

#include "autodiff/var.h"

/// Operations that read and write at places given by a tensor of i64 or i32. Places count from 0;
/// one outside throws `ArgumentError` when the kernel runs, since it is not known before. Negative
/// axes count from the end.
namespace palimpsest {

/// y[…, i, …] = x[…, index[…, i, …], …]: along `axis` each place is read where `index` says. The
/// shapes of x and index are equal but for that axis. Any dtype. Throws `ShapeError` for an index
/// that is smaller than x along another axis, of which PyTorch reads the corner only: `slice` x to
/// it.
Var gather(const Var& x, int axis, const Var& index, Where where = Where::current());

/// Zeros of `size` along `axis`, to which each element of x is added where `index`, of x's shape,
/// says. Several at one place are added in the order of their own places. The adjoint of `gather`.
/// Throws `ShapeError` for an index of another shape, also for a smaller one.
Var scatter_add(const Var& x, int axis, const Var& index, std::int64_t size,
                Where where = Where::current());

/// Whole slices of x along `axis` at the places of `index`, whose axes take the place of that axis.
/// Any dtype.
Var index_select(const Var& x, int axis, const Var& index, Where where = Where::current());

/// Zeros of `size` along an axis, to which the slices of x are added where `index` says, in the
/// order of their own places. The axes `axis`, `axis` + 1 … of x are those of index. The adjoint of
/// `index_select`.
Var index_add(const Var& x, int axis, const Var& index, std::int64_t size,
              Where where = Where::current());

/// Row `ids[…]` of a table (rows, width): shape of ids, then width.
Var embedding(const Var& table, const Var& ids, Where where = Where::current());

/// 1 at the place `ids[…]` of a new last axis of size `classes`, 0 elsewhere. No derivative.
Var one_hot(const Var& ids, std::int64_t classes, DType dtype = DType::f32,
            Where where = Where::current());

}  // namespace palimpsest
