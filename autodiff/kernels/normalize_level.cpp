#include <Eigen/Core>

#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

using Index = std::int64_t;

template <class T>
using In = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using Out = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;

/// The sum of `term(first, length)` over blocks short enough to be summed in their own precision.
template <class Term>
double sum_blocks(Index n, Term term) {
  constexpr Index block = 512;
  double total = 0;
  for (Index first = 0; first < n; first += block) {
    total += static_cast<double>(term(first, n - first < block ? n - first : block));
  }
  return total;
}

template <class T>
double deviations(const T* x, Index n, T pivot) {
  return sum_blocks(
      n, [&](Index first, Index length) { return (In<T>(x + first, length) - pivot).sum(); });
}

template <class T>
double squares(const T* x, Index n, T mean) {
  return sum_blocks(n, [&](Index first, Index length) {
    return (In<T>(x + first, length) - mean).square().sum();
  });
}

/// x̂ of the elements [first, first + length).
template <class T>
auto normal(const NormalizeRun<T>& run, Index first, Index length) {
  return (In<T>(run.x + first, length) - run.mean) * run.scale + run.offset;
}

template <class T>
void normalize(const NormalizeRun<T>& run) {
  const auto x = normal(run, 0, run.n);
  Out<T> y(run.out, run.n);
  const bool each = run.step == 1;
  if (run.weight == nullptr) {
    y = x;
  } else if (each) {
    y = x * In<T>(run.weight, run.n);
  } else {
    y = x * *run.weight;
  }
  if (run.bias != nullptr && each) y += In<T>(run.bias, run.n);
  if (run.bias != nullptr && !each) y += *run.bias;
}

template <class T>
void adjoint_sums(const NormalizeRun<T>& run, double* sums) {
  const bool each = run.weight != nullptr && run.step == 1;
  const double factor = run.weight != nullptr && !each ? double{*run.weight} : 1.0;
  sums[0] += factor * sum_blocks(run.n, [&](Index first, Index length) {
               const In<T> dy(run.dy + first, length);
               return each ? (dy * In<T>(run.weight + first, length)).sum() : dy.sum();
             });
  sums[1] += factor * sum_blocks(run.n, [&](Index first, Index length) {
               const auto product = In<T>(run.dy + first, length) * normal(run, first, length);
               return each ? (product * In<T>(run.weight + first, length)).sum() : product.sum();
             });
}

template <class T>
void adjoint(const NormalizeRun<T>& run, T a, T b) {
  const In<T> dy(run.dy, run.n);
  const auto rest = normal(run, 0, run.n) * b + a;
  Out<T> dx(run.out, run.n);
  if (run.weight == nullptr) {
    dx = (dy - rest) * run.scale;
  } else if (run.step == 0) {
    dx = (dy * *run.weight - rest) * run.scale;
  } else {
    dx = (dy * In<T>(run.weight, run.n) - rest) * run.scale;
  }
}

template <class T>
void channel_sums(const NormalizeRun<T>& run, double* dweight, double* dbias) {
  if (run.step == 1) {
    for (Index i = 0; i < run.n; ++i) {
      dweight[i] += double{run.dy[i] * ((run.x[i] - run.mean) * run.scale + run.offset)};
      dbias[i] += double{run.dy[i]};
    }
    return;
  }
  *dweight += sum_blocks(run.n, [&](Index first, Index length) {
    return (In<T>(run.dy + first, length) * normal(run, first, length)).sum();
  });
  *dbias += deviations(run.dy, run.n, T(0));
}

template <class T>
constexpr NormalizeKernels<T> normalize_kernels{deviations<T>,   squares<T>, normalize<T>,
                                                adjoint_sums<T>, adjoint<T>, channel_sums<T>};

}  // namespace

void add_normalize(Kernels& kernels) {
  kernels.normalize_f32 = normalize_kernels<float>;
  kernels.normalize_f64 = normalize_kernels<double>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
