#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/var.h"

/// Ranges, matrices made of vectors, and other axes. Negative axes count from the end. Axes that do
/// not exist and sizes that do not fit throw `ShapeError`.
namespace palimpsest PALIMPSEST_EXPORT {

// New values, without derivatives

/// Zeros and ones of a shape, or of the type of x.
Var zeros(Tape& tape, const Shape& shape, DType dtype = DType::f32, Where where = Where::current());
Var ones(Tape& tape, const Shape& shape, DType dtype = DType::f32, Where where = Where::current());
Var zeros_like(const Var& x, Where where = Where::current());
Var ones_like(const Var& x, Where where = Where::current());

/// The numbers start, start + step, … before stop. They are computed in f64 and then converted to
/// `dtype`. Throws `ArgumentError` for a step of 0 and numbers that are not finite.
Var arange(Tape& tape, double start, double stop, double step = 1, DType dtype = DType::f32,
           Where where = Where::current());
/// `count` numbers from start to stop, both included, at equal distances. Computed in f64 like
/// `arange`. Throws `ArgumentError` for a negative count.
Var linspace(Tape& tape, double start, double stop, std::int64_t count, DType dtype = DType::f32,
             Where where = Where::current());
/// base to the power of each number of `linspace`.
Var logspace(Tape& tape, double start, double stop, std::int64_t count, double base = 10,
             DType dtype = DType::f32, Where where = Where::current());

/// The identity matrix (n, n), or (n, m) with ones on its diagonal.
Var eye(Tape& tape, std::int64_t n, DType dtype = DType::f32, Where where = Where::current());
Var eye(Tape& tape, std::int64_t n, std::int64_t m, DType dtype = DType::f32,
        Where where = Where::current());

// Diagonals. Any dtype. Diagonal k consists of the elements (i, i + k).

/// The diagonal `offset` of the matrices in two axes, as a new last axis. A diagonal outside of the
/// matrices is empty.
Var diagonal(const Var& x, int offset = 0, int a = 0, int b = 1, Where where = Where::current());
/// Matrices with the last axis of x as diagonal `offset` and zeros elsewhere, in the axes a and b
/// of the result.
Var diag_embed(const Var& x, int offset = 0, int a = -2, int b = -1,
               Where where = Where::current());
/// The matrix with a vector as diagonal, or the diagonal of a matrix.
Var diag(const Var& x, int offset = 0, Where where = Where::current());
/// The sum of diagonal `offset`.
Var trace(const Var& x, int offset = 0, int a = 0, int b = 1, Where where = Where::current());
/// The matrix with the given matrices on its diagonal and zeros elsewhere. Vectors are rows,
/// scalars single elements. Throws `ArgumentError` when there are no matrices.
Var block_diag(std::span<const Var> blocks, Where where = Where::current());
Var block_diag(std::initializer_list<Var> blocks, Where where = Where::current());

// Products

/// The order of the first two axes of `meshgrid`.
enum class GridIndexing : std::uint8_t {
  ij,  ///< axis i belongs to vector i
  xy,  ///< the first two axes swapped
};
/// The coordinates of a grid: each vector broadcast along the axes of the others. Scalars are
/// vectors of one element. Throws `ArgumentError` when there are no vectors.
std::vector<Var> meshgrid(std::span<const Var> vectors, GridIndexing indexing = GridIndexing::ij,
                          Where where = Where::current());
std::vector<Var> meshgrid(std::initializer_list<Var> vectors,
                          GridIndexing indexing = GridIndexing::ij, Where where = Where::current());

/// The Kronecker product. The operand with fewer axes gets leading axes of size 1; the sizes of the
/// result are the products of the sizes.
Var kron(const Var& a, const Var& b, Where where = Where::current());

/// The vector product of the vectors of three elements along `axis`, which is counted in both
/// operands; the other axes broadcast.
Var cross(const Var& a, const Var& b, int axis = -1, Where where = Where::current());

// Axes

/// x with axis `from` as axis `to` of the result; the others keep their order.
Var movedim(const Var& x, int from, int to, Where where = Where::current());
/// x with two axes swapped; `transpose` without defaults.
Var swapaxes(const Var& x, int a, int b, Where where = Where::current());
/// x with an axis split into axes of the given sizes, one of which may be −1 and is inferred. A
/// view.
Var unflatten(const Var& x, int axis, std::initializer_list<std::int64_t> sizes,
              Where where = Where::current());
/// x with axis 1 (`fliplr`) or axis 0 (`flipud`) reversed, as in NumPy. Throw `ShapeError` if x has
/// no such axis.
Var fliplr(const Var& x, Where where = Where::current());
Var flipud(const Var& x, Where where = Where::current());
/// x rotated by 90° `times` times in the plane of two axes, from axis a towards axis b.
Var rot90(const Var& x, int times = 1, int a = 0, int b = 1, Where where = Where::current());

}  // namespace palimpsest
