#include "autodiff/operations/products.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

void check_vectors(const char* operation, const Var& a, const Var& b, const Where& where) {
  const Var pair[] = {a, b};
  common_tape(pair, operation, where);
  if (a.rank() == 1 && b.rank() == 1) return;
  throw ShapeError(operation,
                   "takes vectors, not shapes " + to_string(a.shape()) + " and " +
                       to_string(b.shape()) + "; matmul and einsum take more axes",
                   where);
}

}  // namespace

Var dot(const Var& a, const Var& b, Where where) {
  check_vectors("dot", a, b, where);
  return matmul(a, b, {}, where);
}

Var outer(const Var& a, const Var& b, Where where) {
  check_vectors("outer", a, b, where);
  return matmul(reshape(a, {a.shape()[0], 1}, where), reshape(b, {1, b.shape()[0]}, where), {},
                where);
}

Var linear(const Var& x, const Var& weight, const Var& bias, Where where) {
  const Var y = matmul(x, weight, {}, where);
  return bias.defined() ? add(y, bias, where) : y;
}

}  // namespace palimpsest
