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
#include <limits>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/unary.h"
#include "autodiff/tape.h"

namespace {

using palimpsest::DType;
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
    {"expm1", [](const Var& x) { return expm1(x); }, [](Real x) { return std::expm1(x); }},
    {"log", [](const Var& x) { return log(x); }, [](Real x) { return std::log(x); }, 0},
    {"log1p", [](const Var& x) { return log1p(x); }, [](Real x) { return std::log1p(x); }, -1},
    {"erf", [](const Var& x) { return erf(x); }, [](Real x) { return std::erf(x); }},
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
