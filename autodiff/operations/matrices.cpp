#include "autodiff/operations/matrices.h"

namespace palimpsest {

Shape batch_of(const Shape& shape) {
  return Shape(shape.sizes().first(static_cast<std::size_t>(shape.rank() - 2)));
}

Shape with_matrix(Shape batch, std::int64_t rows, std::int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

Shape broadcast_batches(const Shape& a, const Shape& b, const char* operation, const Where& where) {
  try {
    return broadcast(batch_of(a), batch_of(b), operation, where);
  } catch (const ShapeError&) {
    throw ShapeError(operation,
                     "shapes " + to_string(a) + " and " + to_string(b) +
                         " do not broadcast: aligned at the right, sizes before the last two axes "
                         "must be equal or 1",
                     where);
  }
}

void check_matrices(const char* operation, const Var& x, bool square, const Where& where) {
  common_tape({&x, 1}, operation, where);
  const Shape shape = x.shape();
  if (!is_floating(x.dtype())) {
    throw DTypeError(operation,
                     "takes floating matrices, not " + to_string(x.type()) + "; cast it first",
                     where);
  }
  if (shape.rank() < 2) {
    throw ShapeError(operation,
                     "takes matrices, but shape " + to_string(shape) +
                         " has fewer than two axes; reshape it first",
                     where);
  }
  if (square && shape.size(-1) != shape.size(-2)) {
    throw ShapeError(operation,
                     "takes square matrices, not shape " + to_string(shape) +
                         "; lstsq, pinv, qr and svd take matrices of any shape",
                     where);
  }
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-52;
    case DType::bf16:
      return 0x1p-7;
    case DType::f16:
      return 0x1p-10;
    default:
      return 0x1p-23;
  }
}

}  // namespace palimpsest
