#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <string>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/factor_batch.h"
#include "autodiff/operations/gap_quotients.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/triangle.h"

namespace palimpsest {
namespace {

using WideMatrix = Eigen::Map<Eigen::MatrixXd>;
using WideVector = Eigen::Map<Eigen::VectorXd>;

/// f64 for every dtype, so that the eigenvalues of narrower dtypes are nearly correctly rounded.
Bytes eigh_bytes(const Shape& a) {
  return (a.size(-1) + 4) * a.size(-1) * static_cast<Bytes>(sizeof(double));
}

/// Eigen's SelfAdjointEigenSolver in the given memory of n·(n + 4) numbers: tridiagonalization,
/// then QR steps. On entry the first n·n numbers hold the matrix's lower triangle, by columns. On
/// return they hold the vectors, followed by the values. Signs are determined by an element that
/// any precision would select. Returns false when the steps do not converge.
bool factor_symmetric(std::int64_t n, double* space) {
  WideMatrix v(space, n, n);
  WideVector w(space + n * n, n);
  WideVector beside(space + n * n + n, n - 1);
  WideVector coefficients(space + n * n + 2 * n, n - 1);
  WideVector scratch(space + n * n + 3 * n, n);
  if (!v.allFinite()) return false;
  const double largest = v.cwiseAbs().maxCoeff();
  const double scale = largest > 0 ? largest : 1;
  v /= scale;
  bool converged = true;
  if (n > 1) {
    Eigen::internal::tridiagonalization_inplace(v, coefficients);
    w = v.diagonal();
    beside = v.diagonal<-1>();
    // The vectors are the product of the reflections, formed in place from the last to the first.
    v.triangularView<Eigen::StrictlyUpper>().setZero();
    v.diagonal().setOnes();
    for (std::int64_t k = n - 1; k-- > 0;) {
      v.bottomRightCorner(n - k - 1, n - k - 1)
          .applyHouseholderOnTheLeft(v.col(k).tail(n - k - 2), coefficients(k), scratch.data());
      v.col(k).tail(n - k - 1).setZero();
    }
    converged =
        Eigen::internal::computeFromTridiagonal_impl(w, beside, 30, true, v) == Eigen::Success;
  } else {
    w(0) = v(0, 0);
    v(0, 0) = 1;
  }
  w *= scale;
  for (std::int64_t j = 0; j < n; ++j) {
    const double most = v.col(j).cwiseAbs().maxCoeff();
    const double* first = std::find_if(v.col(j).data(), v.col(j).data() + n,
                                       [&](double x) { return std::abs(x) >= 0.9 * most; });
    if (first != v.col(j).data() + n && *first < 0) v.col(j) = -v.col(j);
  }
  return converged;
}

/// Eigenvalues and eigenvectors, by rows, of the symmetric matrix with the lower triangle of `a`.
template <class T>
bool factor_symmetric(const T* a, T* values, T* vectors, std::int64_t n, double* space) {
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) space[j * n + i] = i < j ? 0 : double{a[i * n + j]};
  }
  if (n == 0) return true;
  const bool converged = factor_symmetric(n, space);
  for (std::int64_t i = 0; i < n; ++i) {
    values[i] = static_cast<T>(space[n * n + i]);
    for (std::int64_t j = 0; j < n; ++j) vectors[i * n + j] = static_cast<T>(space[j * n + i]);
  }
  return converged;
}

template <class T>
void compute_eigh(const KernelCall& call) {
  const auto batch = batch_for(call.input().shape(), false);
  const std::int64_t n = batch.n;
  const auto failed = batch.run<T>(
      call, eigh_bytes(call.input().shape()),
      [&](std::int64_t index, std::span<std::byte> own, Products<T>&) {
        const bool converged = factor_symmetric(
            call.input().as<T>() + index * n * n, call.output(0).as<T>() + index * n,
            call.output(1).as<T>() + index * n * n, n, reinterpret_cast<double*>(own.data()));
        return std::int64_t{converged ? -1 : 0};
      });
  if (failed.first < 0) return;
  throw ArgumentError("eigh",
                      "the eigenvalues of matrix " + std::to_string(failed.first) + " of " +
                          std::to_string(batch.count) + " of size " + std::to_string(n) +
                          " do not converge; check for elements that are not finite",
                      call.attributes.as<Blamed>().where);
}

// Giles (2008), section 3.1, for a symmetric matrix whose lower triangle is the variable.
// Derivatives of 16-bit matrices are computed in f32. The factors are recomputed for that, because
// the stored ones are rounded and small eigenvalue gaps magnify the error.
void pull_back_eigh(const Pullback& p) {
  const Where where = p.where();
  const DType dtype = p.input().dtype();
  const DType wide = compute_dtype(dtype);
  const Eigh again =
      wide == dtype ? Eigh{p.output(0), p.output(1)} : eigh(cast(p.input(), wide), where);
  const Var w = again.values;
  const Var v = again.vectors;
  Var inner;
  if (p.has_adjoint(1)) {
    const Var dv = cast(p.adjoint(1), wide);
    const Var turned = matmul(v, dv, {.transpose_a = true}, where);
    GapOptions options{.spectrum = Spectrum::eigenvalues};
    set_tolerances(options, p.adjoint(1), p.output(0), wide, v.shape().size(-1));
    // Only this part of the product is not 0 in s + sᵀ.
    const Var skew = (turned - transpose(turned, -2, -1, where)) * 0.5;
    const Var quotients = gap_quotients(skew, w, gap_scale(dv, -2, where), options, where);
    inner = matmul(v, quotients, {}, where);
  }
  if (p.has_adjoint(0)) {
    const Shape shape = w.shape();
    Shape row = shape;
    row.insert(shape.rank() - 1, 1);
    const Var scaled = v * reshape(cast(p.adjoint(0), wide), row, where);
    inner = inner.defined() ? inner + scaled : scaled;
  }
  const Var s = matmul(inner, v, {.transpose_b = true}, where);
  p.set(0, cast(half_tril(s + transpose(s, -2, -1, where), where), dtype));
}

const Operation eigh_operation{
    .name = "eigh",
    .formula = "a = v·diag(w)·vᵀ, ā = Φ(s + sᵀ), s = v·(diag(w̄) + (vᵀ·v̄)/(wⱼ - wᵢ))·vᵀ",
    .summary = "eigenvalues and eigenvectors of symmetric matrices",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_eigh<T>(call); });
        },
    .vjp = pull_back_eigh,
    .cost =
        [](const NodeView& node) {
          const auto n = static_cast<double>(node.output(0).shape.size(-1));
          return Cost{9 * n * static_cast<double>(node.output(1).shape.elements()),
                      2 * static_cast<double>(node.output(1).bytes())};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          const ValueType a = node.input(0);
          return batch_for(a.shape, false)
              .workspace<float>(threads, eigh_bytes(a.shape), [](Products<float>&) {});
        },
};

}  // namespace

std::span<const Operation* const> eigh_operations() {
  static const Operation* const family[] = {&eigh_operation};
  return family;
}

Eigh eigh(const Var& a, Where where) {
  check_matrices("eigh", a, true, where);
  const Shape shape = a.shape();
  Shape values = shape;
  values.erase(shape.rank() - 1);
  const ValueType types[] = {{values, a.dtype()}, {shape, a.dtype()}};
  const Var w = a.tape().record(eigh_operation, {&a, 1}, types, Blamed{where}, where);
  return {w, w.output(1)};
}

}  // namespace palimpsest
