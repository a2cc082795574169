#include "strategy/training/gradient_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "autodiff/convert.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

template <class T>
void divide_run(T* x, std::int64_t n, double divisor) {
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = static_cast<T>(static_cast<double>(x[i]) / divisor);
  }
}

/// Works in blocks, so that sums are still in the nearest cache when they are divided.
template <class T>
void add_run(T* sum, const T* x, std::int64_t n, double weight, double divisor) {
  constexpr std::int64_t block = 1024;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(begin + block, n);
    for (std::int64_t i = begin; i < end; ++i) {
      sum[i] = static_cast<T>(static_cast<double>(sum[i]) + weight * static_cast<double>(x[i]));
    }
    if (divisor != 1) divide_run(sum + begin, end - begin, divisor);
  }
}

/// Converts a few 16-bit numbers to f32 at a time: converting the whole gradient would take memory.
void add_half(float* sum, const std::byte* x, DType dtype, std::int64_t n, double weight,
              double divisor) {
  std::array<float, 1024> wide;
  constexpr auto most = static_cast<std::int64_t>(wide.size());
  for (std::int64_t i = 0; i < n; i += most) {
    const Shape shape{std::min(most, n - i)};
    convert({const_cast<std::byte*>(x) + i * size_of(dtype), {shape, dtype}},
            {reinterpret_cast<std::byte*>(wide.data()), {shape, DType::f32}});
    add_run(sum + i, wide.data(), shape[0], weight, divisor);
  }
}

constexpr std::int64_t chunk = grain_for(1);

}  // namespace

Bytes sum_bytes(const ValueType& type) {
  const Bytes sum = ValueType{type.shape, compute_dtype(type.dtype)}.bytes();
  return is_half(type.dtype) ? sum + type.bytes() : sum;
}

void begin_sum(const Tensor& sum, const Tensor& gradient) {
  convert({gradient.raw(), gradient.type()}, {sum.raw(), sum.type()});
}

void add_to_sum(const Tensor& sum, const Tensor& gradient, double weight, double divisor) {
  visit_floating(sum.dtype(), [&]<class T>(T) {
    T* to = sum.data<T>().data();
    parallel_chunks(sum.elements(), chunk, [&](std::int64_t begin, std::int64_t end) {
      const std::byte* from = gradient.raw() + begin * size_of(gradient.dtype());
      if constexpr (std::is_same_v<T, float>) {
        if (is_half(gradient.dtype())) {
          add_half(to + begin, from, gradient.dtype(), end - begin, weight, divisor);
          return;
        }
      }
      add_run(to + begin, reinterpret_cast<const T*>(from), end - begin, weight, divisor);
    });
  });
}

void divide(const Tensor& x, double divisor) {
  if (divisor == 1) return;
  visit_floating(x.dtype(), [&]<class T>(T) {
    T* to = x.data<T>().data();
    parallel_chunks(x.elements(), chunk, [&](std::int64_t begin, std::int64_t end) {
      divide_run(to + begin, end - begin, divisor);
    });
  });
}

namespace {

/// Eight independent sums fill vector registers and avoid a dependency chain.
template <class T>
double sum_of_squares(const T* x, std::int64_t n, double scale) {
  std::array<double, 8> lanes{};
  constexpr auto width = static_cast<std::int64_t>(lanes.size());
  for (std::int64_t i = 0; i < n; i += width) {
    const std::int64_t many = std::min(width, n - i);
    for (std::int64_t lane = 0; lane < many; ++lane) {
      const double value = static_cast<double>(x[i + lane]) * scale;
      lanes[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

/// The largest magnitude of any element; NaN elements do not count.
double largest_of(const Tensor& x) {
  double largest = 0;
  for (const double each : x.data<double>()) largest = std::max(largest, std::abs(each));
  return largest;
}

}  // namespace

double sum_of_squares(const Tensor& x, double scale) {
  std::vector<double> sums(static_cast<std::size_t>(divide_up(x.elements(), chunk)));
  visit_floating(x.dtype(), [&]<class T>(T) {
    const T* data = x.data<T>().data();
    parallel_chunks(x.elements(), chunk, [&](std::int64_t begin, std::int64_t end) {
      sums[static_cast<std::size_t>(begin / chunk)] =
          sum_of_squares(data + begin, end - begin, scale);
    });
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double joint_norm(std::size_t count, const std::function<Tensor(std::size_t)>& tensor) {
  bool has_f64 = false;
  const auto squares = [&](double scale) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor x = tensor(i);
      has_f64 = has_f64 || x.dtype() == DType::f64;
      sum += sum_of_squares(x, scale);
    }
    return sum;
  };
  constexpr double smallest = 0x1p-900;  // squares below lose digits
  const double sum = squares(1);
  const bool is_ordinary = sum >= smallest && std::isfinite(sum);
  if (!has_f64 || std::isnan(sum) || is_ordinary) return std::sqrt(sum);
  // Squares of f64 overflow or vanish: divides by a power of two, which is exact.
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor x = tensor(i);
    largest = std::max(largest, largest_of(x.dtype() == DType::f64 ? x : x.to(DType::f64)));
  }
  if (largest == 0 || !std::isfinite(largest)) return largest;
  const int exponent = std::max(std::ilogb(largest), -1000);
  return std::ldexp(std::sqrt(squares(std::ldexp(1.0, -exponent))), exponent);
}

}  // namespace palimpsest
