// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_layers.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor tril(const Tensor& x, int diagonal, Where where) {
  Evaluation on("tril", where);
  return on.result(palimpsest::tril(on(x), diagonal, where));
}

Tensor triu(const Tensor& x, int diagonal, Where where) {
  Evaluation on("triu", where);
  return on.result(palimpsest::triu(on(x), diagonal, where));
}

Tensor cholesky(const Tensor& a, Where where) {
  Evaluation on("cholesky", where);
  return on.result(palimpsest::cholesky(on(a), where));
}

Tensor triangular_solve(const Tensor& a, const Tensor& b, const TriangularSolveOptions& options,
                        Where where) {
  Evaluation on("triangular_solve", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::triangular_solve(on_a, on_b, options, where));
}

Tensor solve(const Tensor& a, const Tensor& b, const SolveOptions& options, Where where) {
  Evaluation on("solve", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::solve(on_a, on_b, options, where));
}

Tensor inverse(const Tensor& a, Where where) {
  Evaluation on("inverse", where);
  return on.result(palimpsest::inverse(on(a), where));
}

Tensor inv(const Tensor& a, Where where) {
  Evaluation on("inv", where);
  return on.result(palimpsest::inv(on(a), where));
}

Tensor det(const Tensor& a, Where where) {
  Evaluation on("det", where);
  return on.result(palimpsest::det(on(a), where));
}

Tensor logdet(const Tensor& a, Where where) {
  Evaluation on("logdet", where);
  return on.result(palimpsest::logdet(on(a), where));
}

TensorSlogdet slogdet(const Tensor& a, Where where) {
  Evaluation on("slogdet", where);
  const Slogdet made = palimpsest::slogdet(on(a), where);
  const Var values[] = {made.sign, made.log_magnitude};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorQr qr(const Tensor& a, Where where) {
  Evaluation on("qr", where);
  const Qr made = palimpsest::qr(on(a), where);
  const Var values[] = {made.q, made.r};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorEigh eigh(const Tensor& a, Where where) {
  Evaluation on("eigh", where);
  const Eigh made = palimpsest::eigh(on(a), where);
  const Var values[] = {made.values, made.vectors};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorSvd svd(const Tensor& a, Where where) {
  Evaluation on("svd", where);
  const Svd made = palimpsest::svd(on(a), where);
  const Var values[] = {made.u, made.values, made.vh};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1], all[2]};
}

Tensor svdvals(const Tensor& a, Where where) {
  Evaluation on("svdvals", where);
  return on.result(palimpsest::svdvals(on(a), where));
}

Tensor pinv(const Tensor& a, std::optional<double> tolerance, Where where) {
  Evaluation on("pinv", where);
  return on.result(palimpsest::pinv(on(a), tolerance, where));
}

Tensor lstsq(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("lstsq", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::lstsq(on_a, on_b, where));
}

Tensor matrix_exp(const Tensor& a, Where where) {
  Evaluation on("matrix_exp", where);
  return on.result(palimpsest::matrix_exp(on(a), where));
}

Tensor matrix_power(const Tensor& a, std::int64_t n, Where where) {
  Evaluation on("matrix_power", where);
  return on.result(palimpsest::matrix_power(on(a), n, where));
}

Tensor matrix_norm(const Tensor& x, MatrixNorm kind, bool keep_axes, Where where) {
  Evaluation on("matrix_norm", where);
  return on.result(palimpsest::matrix_norm(on(x), kind, keep_axes, where));
}

Tensor dot(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("dot", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::dot(on_a, on_b, where));
}

Tensor outer(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("outer", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::outer(on_a, on_b, where));
}

Tensor vecdot(const Tensor& a, const Tensor& b, int axis, Where where) {
  Evaluation on("vecdot", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::vecdot(on_a, on_b, axis, where));
}

Tensor tensordot(const Tensor& a, const Tensor& b, int count, Where where) {
  Evaluation on("tensordot", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::tensordot(on_a, on_b, count, where));
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Axes& axes_a, const Axes& axes_b,
                 Where where) {
  Evaluation on("tensordot", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::tensordot(on_a, on_b, axes_a, axes_b, where));
}

Tensor multi_dot(std::span<const Tensor> factors, Where where) {
  Evaluation on("multi_dot", where);
  return on.result(palimpsest::multi_dot(on(factors), where));
}

Tensor multi_dot(std::initializer_list<Tensor> factors, Where where) {
  Evaluation on("multi_dot", where);
  return on.result(palimpsest::multi_dot(on(factors), where));
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Where where) {
  Evaluation on("linear", where);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::linear(on_x, on_weight, on_bias, where));
}

Tensor einsum(std::string_view equation, std::span<const Tensor> operands, Where where) {
  Evaluation on("einsum", where);
  return on.result(palimpsest::einsum(equation, on(operands), where));
}

Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands, Where where) {
  Evaluation on("einsum", where);
  return on.result(palimpsest::einsum(equation, on(operands), where));
}

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, Where where) {
  Evaluation on("matmul", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::matmul(on_a, on_b, options, where));
}

Tensor sparse_matmul(const SparsePattern& pattern, const Tensor& values, const Tensor& x,
                     const SparseMatmulOptions& options, Where where) {
  Evaluation on("sparse_matmul", where);
  const Var on_values = on(values);
  const Var on_x = on(x);
  return on.result(palimpsest::sparse_matmul(pattern, on_values, on_x, options, where));
}

Tensor sampled_matmul(const SparsePattern& pattern, const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("sampled_matmul", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::sampled_matmul(pattern, on_a, on_b, where));
}

}  // namespace palimpsest
