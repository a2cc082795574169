// Measures the error of every function and compares it with docs/accuracy.md. Usage: check_accuracy
// FILE [POINTS]. POINTS is the number of points for each function and dtype, by default 250,000.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/unary.h"
#include "autodiff/tape.h"

namespace {

using palimpsest::Shape;
using palimpsest::Tape;
using palimpsest::Tensor;
using palimpsest::Var;
using Real = long double;

constexpr Real infinity = std::numeric_limits<Real>::infinity();
constexpr Real sqrt_half = 0.707106781186547524400844362104849039L;

Real logistic(Real x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
Real tanh_of_softplus(Real x) {
  const Real n = std::exp(x) * (std::exp(x) + 2);
  return x > 40 ? 1 : n / (n + 2);
}

constexpr Real pi = std::numbers::pi_v<Real>;

/// The derivative of order 0 or 1 of the digamma function, for x > 0.
Real polygamma_of(int order, Real x) {
  Real sum = 0;
  while (x < 40) {
    sum += order == 0 ? -1 / x : 1 / (x * x);
    ++x;
  }
  // B₂ₖ
  constexpr Real numbers[] = {1 / 6.0L,  -1 / 30.0L,     1 / 42.0L, -1 / 30.0L,
                              5 / 66.0L, -691 / 2730.0L, 7 / 6.0L,  -3617 / 510.0L};
  Real tail = 0, power = 1;
  for (int k = 1; k <= 8; ++k) {
    power /= x * x;
    tail += order == 0 ? -numbers[k - 1] / (2 * k) * power : numbers[k - 1] * power / x;
  }
  if (order == 0) return sum + std::log(x) - 1 / (2 * x) + tail;
  return sum + 1 / x + 1 / (2 * x * x) + tail;
}

/// Near its root, by Taylor's series.
Real digamma_of(Real x) {
  constexpr Real terms[] = {
      0.9676722454476211704274L,   -0.4427631689835921060929L,   0.2584997609556510106244L,
      -0.1639427054424065275043L,  0.1078240506912623657572L,    -0.07219956125645471092612L,
      0.04880428816414310722509L,  -0.03316112647484735929226L,  0.02259764823221810465962L,
      -0.0154247659049489591388L,  0.01053879161661217538812L,   -0.00720453438635686824097L,
      0.004926781395729853446354L, -0.003369801655439328082793L, 0.002305126326734927836938L,
      -0.001576936771430197259271L};
  const Real distance = x - 1.461632144968362341263L;
  if (std::abs(distance) > 0.0625L) return polygamma_of(0, x);
  Real sum = 0;
  for (std::size_t k = std::size(terms); k-- > 0;) sum = (sum + terms[k]) * distance;
  return sum;
}

/// exp(−|x|)·Iₙ(x) for n = 0 and 1.
Real scaled_bessel(int n, Real x) {
  const Real z = std::abs(x);
  Real term = 1, sum = 1;
  if (z < 60) {
    for (int k = 1; term > sum * 1e-22L; ++k) sum += term *= z * z / 4 / (k * (k + n));
    sum *= std::exp(-z) * (n == 0 ? 1 : z / 2);
  } else {
    for (int k = 1; std::abs(term) > 1e-22L && k < 60; ++k) {
      const Real odd = 2 * k - 1;
      sum += term *= -(4 * n - odd * odd) / (8 * k * z);
    }
    sum /= std::sqrt(2 * pi * z);
  }
  return n == 1 && x < 0 ? -sum : sum;
}

/// By Newton's method from an approximation.
Real erfinv_of(Real y) {
  const Real magnitude = std::abs(y);
  if (magnitude == 1) return y * infinity;
  // S. Winitzki's approximation
  const Real log_rest = std::log1p(-magnitude * magnitude);
  const Real part = 2 / (pi * 0.147L) + log_rest / 2;
  Real x = std::sqrt(std::sqrt(part * part - log_rest / 0.147L) - part);
  for (int i = 0; i < 6; ++i) {
    const Real error = magnitude < 0.5L ? magnitude - std::erf(x) : std::erfc(x) - (1 - magnitude);
    x += error * std::sqrt(pi) / 2 * std::exp(x * x);
  }
  return magnitude < 1e-10L ? y * std::sqrt(pi) / 2 : std::copysign(x, y);
}

Real sinc_of(Real x) {
  const Real whole = std::nearbyint(x);
  const Real sine = std::sin(pi * (x - whole));
  return x == 0 ? 1 : (std::fmod(whole, 2) == 0 ? sine : -sine) / (pi * x);
}

struct Function {
  const char* name;
  Var (*ours)(const Var&);
  Real (*exact)(Real);
  Real low = -infinity, high = infinity;
};

const Function functions[] = {
    {"reciprocal", [](const Var& x) { return reciprocal(x); }, [](Real x) { return 1 / x; }},
    {"sqrt", [](const Var& x) { return sqrt(x); }, [](Real x) { return std::sqrt(x); }, 0},
    {"rsqrt", [](const Var& x) { return rsqrt(x); }, [](Real x) { return 1 / std::sqrt(x); }, 0},
    {"pow(x, 7)", [](const Var& x) { return pow(x, 7); }, [](Real x) { return std::pow(x, 7.0L); }},
    {"pow(x, -3)", [](const Var& x) { return pow(x, -3); },
     [](Real x) { return std::pow(x, -3.0L); }},
    {"pow(x, 2.5)", [](const Var& x) { return pow(x, 2.5); },
     [](Real x) { return std::pow(x, 2.5L); }, 0},
    {"pow(2.5, x)", [](const Var& x) { return pow(2.5, x); },
     [](Real x) { return std::pow(2.5L, x); }},
    {"exp", [](const Var& x) { return exp(x); }, [](Real x) { return std::exp(x); }},
    {"exp2", [](const Var& x) { return exp2(x); }, [](Real x) { return std::exp2(x); }},
    {"expm1", [](const Var& x) { return expm1(x); }, [](Real x) { return std::expm1(x); }},
    {"log", [](const Var& x) { return log(x); }, [](Real x) { return std::log(x); }, 0},
    {"log2", [](const Var& x) { return log2(x); }, [](Real x) { return std::log2(x); }, 0},
    {"log10", [](const Var& x) { return log10(x); }, [](Real x) { return std::log10(x); }, 0},
    {"log1p", [](const Var& x) { return log1p(x); }, [](Real x) { return std::log1p(x); }, -1},
    {"erf", [](const Var& x) { return erf(x); }, [](Real x) { return std::erf(x); }},
    {"erfc", [](const Var& x) { return erfc(x); }, [](Real x) { return std::erfc(x); }},
    {"logit", [](const Var& x) { return logit(x); },
     [](Real x) { return x > 0.25L ? std::log1p((2 * x - 1) / (1 - x)) : std::log(x / (1 - x)); },
     0, 1},
    {"lgamma", [](const Var& x) { return lgamma(x); }, [](Real x) { return std::lgamma(x); }, 0},
    {"digamma", [](const Var& x) { return digamma(x); }, digamma_of, 0},
    {"polygamma(1, x)", [](const Var& x) { return polygamma(1, x); },
     [](Real x) { return polygamma_of(1, x); }, 0},
    {"erfinv", [](const Var& x) { return erfinv(x); }, erfinv_of, -1, 1},
    {"i0", [](const Var& x) { return i0(x); },
     [](Real x) { return std::exp(std::abs(x)) * scaled_bessel(0, x); }, -700, 700},
    {"i1", [](const Var& x) { return i1(x); },
     [](Real x) { return std::exp(std::abs(x)) * scaled_bessel(1, x); }, -700, 700},
    {"i0e", [](const Var& x) { return i0e(x); }, [](Real x) { return scaled_bessel(0, x); }},
    {"i1e", [](const Var& x) { return i1e(x); }, [](Real x) { return scaled_bessel(1, x); }},
    {"sinc", [](const Var& x) { return sinc(x); }, sinc_of, -1e15L, 1e15L},
    {"sin", [](const Var& x) { return sin(x); }, [](Real x) { return std::sin(x); }, -1e15L, 1e15L},
    {"cos", [](const Var& x) { return cos(x); }, [](Real x) { return std::cos(x); }, -1e15L, 1e15L},
    {"tan", [](const Var& x) { return tan(x); }, [](Real x) { return std::tan(x); }, -1e15L, 1e15L},
    {"asin", [](const Var& x) { return asin(x); }, [](Real x) { return std::asin(x); }, -1, 1},
    {"acos", [](const Var& x) { return acos(x); }, [](Real x) { return std::acos(x); }, -1, 1},
    {"atan", [](const Var& x) { return atan(x); }, [](Real x) { return std::atan(x); }},
    {"sinh", [](const Var& x) { return sinh(x); }, [](Real x) { return std::sinh(x); }},
    {"cosh", [](const Var& x) { return cosh(x); }, [](Real x) { return std::cosh(x); }},
    {"tanh", [](const Var& x) { return tanh(x); }, [](Real x) { return std::tanh(x); }},
    {"asinh", [](const Var& x) { return asinh(x); }, [](Real x) { return std::asinh(x); }},
    {"acosh", [](const Var& x) { return acosh(x); }, [](Real x) { return std::acosh(x); }, 1},
    {"atanh", [](const Var& x) { return atanh(x); }, [](Real x) { return std::atanh(x); }, -1, 1},
    {"elu", [](const Var& x) { return elu(x); }, [](Real x) { return x > 0 ? x : std::expm1(x); }},
    {"sigmoid", [](const Var& x) { return sigmoid(x); }, logistic},
    {"softplus", [](const Var& x) { return softplus(x); },
     [](Real x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))); }},
    {"gelu", [](const Var& x) { return gelu(x); },
     [](Real x) { return x / 2 * std::erfc(-x * sqrt_half); }},
    {"gelu_tanh", [](const Var& x) { return gelu_tanh(x); },
     [](Real x) {
       constexpr Real factor = 0.797884560802865355879892119868763737L;  // √(2/π)
       return x * logistic(2 * factor * (x + static_cast<Real>(0.044715) * x * x * x));
     }},
    {"silu", [](const Var& x) { return silu(x); }, [](Real x) { return x * logistic(x); }},
    {"mish", [](const Var& x) { return mish(x); }, [](Real x) { return x * tanh_of_softplus(x); }},
    {"hypot(x, 3)", [](const Var& x) { return hypot(x, x * 0.0 + 3.0); },
     [](Real x) { return std::hypot(x, 3.0L); }},
    {"logaddexp(x, 1)", [](const Var& x) { return logaddexp(x, x * 0.0 + 1.0); },
     [](Real x) {
       const Real most = x > 1 ? x : 1;
       return most + std::log1p(std::exp(-std::abs(x - 1)));
     }},
    {"atan2(x, 3)", [](const Var& x) { return atan2(x, x * 0.0 + 3.0); },
     [](Real x) { return std::atan2(x, 3.0L); }},
};

/// The distance between neighbouring numbers at `exact`; for subnormal numbers, the smallest one.
template <class T>
Real unit_at(Real exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::ldexp(1.0L, std::max(exponent, std::numeric_limits<T>::min_exponent) -
                              std::numeric_limits<T>::digits);
}

/// Half of the points are random bit patterns, the other half ordinary numbers.
template <class T>
std::vector<T> points(const Function& f, std::size_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::mt19937_64 random(7);
  const double widths[] = {0.25, 4, 40, 220};
  std::vector<T> xs;
  for (std::size_t i = 0; xs.size() < count; ++i) {
    const std::uint64_t bits = random();
    const double unit = static_cast<double>(bits >> 11) * 0x1p-53 - 0.5;
    const T x = i % 2 == 0 ? std::bit_cast<T>(static_cast<Bits>(bits))
                           : static_cast<T>(unit * widths[i / 2 % 4]);
    const auto exact = static_cast<Real>(x);
    if (std::isfinite(x) && exact >= f.low && exact <= f.high) xs.push_back(x);
  }
  return xs;
}

/// The largest error in units in the last place, over points whose exact result is in range.
template <class T>
double error_of(const Function& f, std::size_t count) {
  const std::vector<T> xs = points<T>(f, count);
  Tape tape;
  const Tensor x = Tensor::from(xs, Shape{std::ssize(xs)});
  const Tensor y = f.ours(tape.constant(x)).value();
  const auto ys = y.data<T>();
  Real worst = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Real exact = f.exact(static_cast<Real>(xs[i]));
    if (!(std::abs(exact) <= static_cast<Real>(std::numeric_limits<T>::max()))) continue;
    const Real error = std::abs(static_cast<Real>(ys[i]) - exact) / unit_at<T>(exact);
    if (!(error <= worst)) worst = error;
  }
  return static_cast<double>(worst);
}

struct Stated {
  double f32, f64;
};

/// Reads rows of the form | `name` | f32 | f64 |.
std::map<std::string, Stated> stated_in(const char* path) {
  std::ifstream file(path);
  std::map<std::string, Stated> rows;
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t end = line.find("` | ");
    if (line.rfind("| `", 0) != 0 || end == std::string::npos) continue;
    Stated row{};
    if (std::sscanf(line.c_str() + end, "` | %lf | %lf |", &row.f32, &row.f64) == 2) {
      rows[line.substr(3, end - 3)] = row;
    }
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " FILE [POINTS]\n";
    return 2;
  }
  const std::size_t count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 250'000;
  auto stated = stated_in(argv[1]);
  bool holds = true;
  for (const Function& f : functions) {
    const auto row = stated.find(f.name);
    const double f32 = error_of<float>(f, count);
    const double f64 = error_of<double>(f, count);
    const bool fits = row != stated.end() && f32 <= row->second.f32 && f64 <= row->second.f64;
    std::printf("| `%s` | %.2f | %.2f |%s\n", f.name, f32, f64,
                fits ? "" : " is not what the document states");
    holds = holds && fits;
    if (row != stated.end()) stated.erase(row);
  }
  for (const auto& [name, row] : stated) {
    std::printf("%s is stated and not measured\n", name.c_str());
    holds = false;
  }
  return holds ? 0 : 1;
}
