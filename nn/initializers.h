#pragma once

#include <cstdint>
#include <functional>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn::init {

/// How many inputs each output of a layer sums, and how many outputs each input goes to.
struct Fans {
  std::int64_t in = 1;
  std::int64_t out = 1;
};

/// Makes the first value of a parameter. The bits depend only on the arguments: they are equal on
/// every machine and for any number of threads. Values are drawn in f32, or in f64 for f64.
using Initializer =
    std::function<Tensor(const ValueType& type, const Fans& fans, std::uint64_t seed)>;

Initializer constant(double value);
inline Initializer zeros() { return constant(0); }
inline Initializer ones() { return constant(1); }

/// Throws `ArgumentError` unless low < high.
Initializer uniform(double low, double high);
/// Throws `ArgumentError` for a negative deviation, as all below do for a negative gain.
Initializer normal(double deviation, double mean = 0);
/// Normal, drawn again until it lies within `cut` deviations of the mean. Throws `ArgumentError`
/// unless `cut` is at least 0.5.
Initializer truncated_normal(double deviation, double mean = 0, double cut = 2);

/// Uniform within ±1/√fans.in: PyTorch's default of linear layers, convolutions and their biases.
Initializer fan_in_uniform();

/// Keeps the variance of values and of gradients (Glorot and Bengio, 2010): the variance is
/// gain²·2/(fans.in + fans.out).
Initializer xavier_uniform(double gain = 1);
Initializer xavier_normal(double gain = 1);

/// √2: the gain for layers followed by `relu`.
inline constexpr double relu_gain = 1.4142135623730951;

/// Which fan a variance is kept for: that of values in the forward part, or of gradients.
enum class Fan : std::uint8_t { in, out };

/// The variance is gain²/fan (He et al., 2015).
Initializer kaiming_uniform(double gain = relu_gain, Fan fan = Fan::in);
Initializer kaiming_normal(double gain = relu_gain, Fan fan = Fan::in);

/// A matrix with orthonormal rows or columns, times the gain (Saxe et al., 2014). Axes after the
/// first are taken together. Throws `ShapeError` for fewer than two axes.
Initializer orthogonal(double gain = 1);

}  // namespace nn::init
}  // namespace palimpsest
