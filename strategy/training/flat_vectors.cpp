#include "strategy/training/flat_vectors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "autodiff/dtype.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

constexpr std::int64_t flat_grain = grain_for(1);

/// In several lanes, so that additions are not one long dependency chain.
double dot_of_run(const double* a, const double* b, std::int64_t n) {
  std::array<double, 8> lanes{};
  constexpr auto width = static_cast<std::int64_t>(lanes.size());
  for (std::int64_t i = 0; i < n; i += width) {
    const std::int64_t many = std::min(width, n - i);
    for (std::int64_t lane = 0; lane < many; ++lane) {
      lanes[static_cast<std::size_t>(lane)] += a[i + lane] * b[i + lane];
    }
  }
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

/// Calls f(element, place) for the elements of each tensor and their places in a flat vector.
template <class F>
void for_elements(std::span<const Tensor> tensors, F f) {
  std::int64_t first = 0;
  for (const Tensor& tensor : tensors) {
    visit(tensor.dtype(), [&]<class T>(T) {
      T* const data = tensor.data<T>().data();
      parallel_chunks(tensor.elements(), flat_grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) f(data[i], first + i);
      });
    });
    first += tensor.elements();
  }
}

}  // namespace

double dot(std::span<const double> a, std::span<const double> b) {
  const std::int64_t n = std::ssize(a);
  std::vector<double> sums(static_cast<std::size_t>(divide_up(n, flat_grain)));
  parallel_chunks(n, flat_grain, [&](std::int64_t begin, std::int64_t end) {
    sums[static_cast<std::size_t>(begin / flat_grain)] =
        dot_of_run(a.data() + begin, b.data() + begin, end - begin);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double norm_of(std::span<const double> a) { return std::sqrt(dot(a, a)); }

void add_scaled(std::span<double> y, double factor, std::span<const double> x) {
  parallel_chunks(std::ssize(y), flat_grain, [&](std::int64_t begin, std::int64_t end) {
    double* const to = y.data();
    const double* const from = x.data();
    for (std::int64_t i = begin; i < end; ++i) to[i] += factor * from[i];
  });
}

void multiply_by(std::span<double> x, double factor) {
  parallel_chunks(std::ssize(x), flat_grain, [&](std::int64_t begin, std::int64_t end) {
    double* const data = x.data();
    for (std::int64_t i = begin; i < end; ++i) data[i] *= factor;
  });
}

void gather(std::span<const Tensor> tensors, std::span<double> flat) {
  for_elements(tensors, [&](auto& element, std::int64_t place) {
    flat[static_cast<std::size_t>(place)] = convert_element<double>(element);
  });
}

void scatter(std::span<const double> flat, std::span<const Tensor> tensors) {
  for_elements(tensors, [&]<class T>(T& element, std::int64_t place) {
    element = convert_element<T>(flat[static_cast<std::size_t>(place)]);
  });
}

}  // namespace palimpsest
