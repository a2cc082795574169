#include "nn/initializers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "autodiff/enumerators.h"
#include "autodiff/error.h"
#include "autodiff/number_text.h"

namespace palimpsest::nn::init {
namespace {

void require_gain(double gain, const char* what) {
  if (gain >= 0) return;
  throw ArgumentError("[initializer] the " + std::string(what) + " is " + number_text(gain) +
                      "; give 0 or more");
}

/// Draws in f32 or f64 and rounds.
template <class Draw>
Tensor drawn(const ValueType& type, Draw draw) {
  const DType wide = type.dtype == DType::f64 ? DType::f64 : DType::f32;
  return draw(wide).to(type.dtype);
}

Tensor draw_uniform(const ValueType& type, double bound, std::uint64_t seed) {
  if (!(bound > 0)) return Tensor::zeros(type.shape, type.dtype);
  return drawn(
      type, [&](DType dtype) { return Tensor::uniform(type.shape, seed, -bound, bound, dtype); });
}

Tensor draw_normal(const ValueType& type, double deviation, double mean, std::uint64_t seed) {
  return drawn(
      type, [&](DType dtype) { return Tensor::normal(type.shape, seed, mean, deviation, dtype); });
}

double xavier_variance(double gain, const Fans& fans) {
  return gain * gain * 2 / static_cast<double>(std::max<std::int64_t>(1, fans.in + fans.out));
}

double kaiming_variance(double gain, const Fans& fans, Fan fan) {
  const std::int64_t count = fan == Fan::in ? fans.in : fans.out;
  return gain * gain / static_cast<double>(std::max<std::int64_t>(1, count));
}

/// Seeds of further draws for one tensor.
std::uint64_t next_seed(std::uint64_t seed) {
  return seed * 6364136223846793005u + 1442695040888963407u;
}

/// Makes the rows of a matrix (rows, columns), rows ≤ columns, orthonormal. Gram-Schmidt is done
/// twice, after which rounding errors do not grow (Giraud et al., 2005).
void orthonormalize(std::vector<double>& matrix, std::size_t rows, std::size_t columns) {
  for (std::size_t i = 0; i < rows; ++i) {
    double* const row = &matrix[i * columns];
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        const double* const other = &matrix[j * columns];
        double product = 0;
        for (std::size_t k = 0; k < columns; ++k) product += row[k] * other[k];
        for (std::size_t k = 0; k < columns; ++k) row[k] -= product * other[k];
      }
    }
    double square = 0;
    for (std::size_t k = 0; k < columns; ++k) square += row[k] * row[k];
    const double norm = std::sqrt(square);
    for (std::size_t k = 0; k < columns; ++k) row[k] /= norm;
  }
}

}  // namespace

Initializer constant(double value) {
  return [value](const ValueType& type, const Fans&, std::uint64_t) {
    return Tensor::full(type.shape, value, type.dtype);
  };
}

Initializer uniform(double low, double high) {
  if (!(low < high)) {
    throw ArgumentError("[initializer] the range [" + number_text(low) + ", " + number_text(high) +
                        ") is empty; give low < high");
  }
  return [low, high](const ValueType& type, const Fans&, std::uint64_t seed) {
    return drawn(type,
                 [&](DType dtype) { return Tensor::uniform(type.shape, seed, low, high, dtype); });
  };
}

Initializer normal(double deviation, double mean) {
  require_gain(deviation, "deviation");
  return [deviation, mean](const ValueType& type, const Fans&, std::uint64_t seed) {
    return draw_normal(type, deviation, mean, seed);
  };
}

Initializer truncated_normal(double deviation, double mean, double cut) {
  require_gain(deviation, "deviation");
  if (!(cut >= 0.5)) {
    throw ArgumentError("[initializer] the cut is " + number_text(cut) +
                        " deviations; give 0.5 or more, since values are drawn until they lie "
                        "within it");
  }
  return [=](const ValueType& type, const Fans&, std::uint64_t seed) {
    return drawn(type, [&](DType dtype) {
      const Tensor made = Tensor::normal(type.shape, seed, 0, 1, dtype);
      visit_floating(dtype, [&]<class T>(T) {
        const auto elements = made.data<T>();
        for (std::uint64_t again = next_seed(seed);; again = next_seed(again)) {
          std::vector<std::size_t> outside;
          for (std::size_t i = 0; i < elements.size(); ++i) {
            if (std::abs(static_cast<double>(elements[i])) > cut) outside.push_back(i);
          }
          if (outside.empty()) break;
          const auto count = static_cast<std::int64_t>(outside.size());
          const Tensor others = Tensor::normal({count}, again, 0, 1, dtype);
          for (std::size_t i = 0; i < outside.size(); ++i) {
            elements[outside[i]] = others.data<T>()[i];
          }
        }
        for (T& each : elements) {
          each = static_cast<T>(mean + deviation * static_cast<double>(each));
        }
      });
      return made;
    });
  };
}

Initializer fan_in_uniform() {
  return [](const ValueType& type, const Fans& fans, std::uint64_t seed) {
    return draw_uniform(
        type, 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, fans.in))), seed);
  };
}

Initializer xavier_uniform(double gain) {
  require_gain(gain, "gain");
  return [gain](const ValueType& type, const Fans& fans, std::uint64_t seed) {
    return draw_uniform(type, std::sqrt(3 * xavier_variance(gain, fans)), seed);
  };
}

Initializer xavier_normal(double gain) {
  require_gain(gain, "gain");
  return [gain](const ValueType& type, const Fans& fans, std::uint64_t seed) {
    return draw_normal(type, std::sqrt(xavier_variance(gain, fans)), 0, seed);
  };
}

Initializer kaiming_uniform(double gain, Fan fan) {
  require_gain(gain, "gain");
  require_enumerator(fan, {Fan::in, Fan::out}, "[initializer] the fan");
  return [gain, fan](const ValueType& type, const Fans& fans, std::uint64_t seed) {
    return draw_uniform(type, std::sqrt(3 * kaiming_variance(gain, fans, fan)), seed);
  };
}

Initializer kaiming_normal(double gain, Fan fan) {
  require_gain(gain, "gain");
  require_enumerator(fan, {Fan::in, Fan::out}, "[initializer] the fan");
  return [gain, fan](const ValueType& type, const Fans& fans, std::uint64_t seed) {
    return draw_normal(type, std::sqrt(kaiming_variance(gain, fans, fan)), 0, seed);
  };
}

Initializer orthogonal(double gain) {
  require_gain(gain, "gain");
  return [gain](const ValueType& type, const Fans&, std::uint64_t seed) {
    if (type.shape.rank() < 2) {
      throw ShapeError("[initializer] orthogonal() makes matrices, not " + to_string(type) +
                       "; give a shape of two or more axes");
    }
    const auto rows = static_cast<std::size_t>(type.shape[0]);
    const auto elements = static_cast<std::size_t>(type.shape.elements());
    if (elements == 0) return Tensor::zeros(type.shape, type.dtype);
    const std::size_t columns = elements / rows;
    const bool is_tall = rows > columns;
    const Tensor random = Tensor::normal(type.shape, seed, 0, 1, DType::f64);
    std::vector<double> matrix(random.data<double>().begin(), random.data<double>().end());
    const std::size_t shorter = std::min(rows, columns);
    const std::size_t longer = std::max(rows, columns);
    orthonormalize(matrix, shorter, longer);
    const Tensor made(type.shape, DType::f64);
    for (std::size_t i = 0; i < shorter; ++i) {
      for (std::size_t k = 0; k < longer; ++k) {
        made.data<double>()[is_tall ? k * shorter + i : i * longer + k] =
            gain * matrix[i * longer + k];
      }
    }
    return made.to(type.dtype);
  };
}

}  // namespace palimpsest::nn::init
