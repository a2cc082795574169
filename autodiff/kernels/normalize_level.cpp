#include "autodiff/kernels/level.h"
#include "autodiff/kernels/runs.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

/// x̂ of a pack or a number.
template <class T>
auto normal(const NormalizeRun<T>& run) {
  return [mean = run.mean, scale = run.scale, offset = run.offset](const auto& x) {
    return (x - mean) * scale + offset;
  };
}

template <class T>
double deviations(const T* x, std::int64_t n, T pivot) {
  return sum_blocks(n, [=](const auto& number) { return number - pivot; }, x);
}

template <class T>
double squares(const T* x, std::int64_t n, T mean) {
  return sum_blocks(n, [=](const auto& number) { return (number - mean) * (number - mean); }, x);
}

template <class T>
void normalize(const NormalizeRun<T>& run) {
  const auto n = run.n;
  const auto normal_of = normal(run);
  const bool each = run.step == 1;
  if (run.weight != nullptr && each) {
    compute_run(
        n, [=](const auto& x, const auto& weight) { return normal_of(x) * weight; }, run.out, run.x,
        run.weight);
  } else {
    const T weight = run.weight != nullptr ? *run.weight : T(1);
    compute_run(n, [=](const auto& x) { return normal_of(x) * weight; }, run.out, run.x);
  }
  if (run.bias == nullptr) return;
  if (each) {
    compute_run(
        n, [](const auto& y, const auto& bias) { return y + bias; }, run.out, run.out, run.bias);
  } else {
    compute_run(n, [bias = *run.bias](const auto& y) { return y + bias; }, run.out, run.out);
  }
}

template <class T>
void adjoint_sums(const NormalizeRun<T>& run, double* sums) {
  const auto normal_of = normal(run);
  if (run.weight != nullptr && run.step == 1) {
    sums[0] += sum_blocks(
        run.n, [](const auto& dy, const auto& weight) { return dy * weight; }, run.dy, run.weight);
    sums[1] += sum_blocks(
        run.n,
        [=](const auto& dy, const auto& x, const auto& weight) {
          return dy * normal_of(x) * weight;
        },
        run.dy, run.x, run.weight);
    return;
  }
  const double weight = run.weight != nullptr ? double{*run.weight} : 1.0;
  sums[0] += weight * deviations(run.dy, run.n, T(0));
  sums[1] += weight * sum_blocks(
                          run.n, [=](const auto& dy, const auto& x) { return dy * normal_of(x); },
                          run.dy, run.x);
}

template <class T>
void adjoint(const NormalizeRun<T>& run, T a, T b) {
  const auto normal_of = normal(run);
  const T scale = run.scale;
  if (run.weight != nullptr && run.step == 1) {
    compute_run(
        run.n,
        [=](const auto& dy, const auto& x, const auto& weight) {
          return (dy * weight - (normal_of(x) * b + a)) * scale;
        },
        run.out, run.dy, run.x, run.weight);
    return;
  }
  const T weight = run.weight != nullptr ? *run.weight : T(1);
  compute_run(
      run.n,
      [=](const auto& dy, const auto& x) { return (dy * weight - (normal_of(x) * b + a)) * scale; },
      run.out, run.dy, run.x);
}

template <class T>
void channel_sums(const NormalizeRun<T>& run, double* dweight, double* dbias) {
  const auto normal_of = normal(run);
  if (run.step == 1) {
    for (std::int64_t i = 0; i < run.n; ++i) {
      dweight[i] += double{run.dy[i] * normal_of(run.x[i])};
      dbias[i] += double{run.dy[i]};
    }
    return;
  }
  *dweight += sum_blocks(
      run.n, [=](const auto& dy, const auto& x) { return dy * normal_of(x); }, run.dy, run.x);
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
