#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::half_derivatives_test {
namespace {

using Function = Var (*)(const Var&);

/// The largest difference between two tensors, relative to the largest element of the second one.
/// NaN when either contains NaN.
double distance(const Tensor& a, const Tensor& b) {
  double most = 0, largest = 0;
  for (std::int64_t i = 0; i < b.elements(); ++i) {
    const double difference = std::abs(a.at(i) - b.at(i));
    if (!(difference <= most)) most = difference;
    largest = std::max(largest, std::abs(b.at(i)));
  }
  return most / largest;
}

/// ∂(v·∂(u·f(x))/∂x)/∂x, where u and v change signs.
Tensor second_derivative(Function f, const Tensor& x) {
  Tape tape;
  const Var at = tape.parameter(x);
  Tensor weight(x.shape(), DType::f32);
  for (std::size_t i = 0; i < weight.data<float>().size(); ++i) {
    weight.data<float>()[i] = i % 3 == 0 ? -1.0F : 0.5F;
  }
  const Var signs = cast(tape.constant(weight), x.dtype());
  const Var first = gradient(sum(f(at) * signs), at);
  return gradient(sum(first * signs), at).value();
}

TEST_CASE("second derivatives of f16 are ordinary where their value is", "[half_derivatives]") {
  struct Row {
    const char* name;
    Function f;
    double scale;
  };
  const Row row = GENERATE(values<Row>({
      {"rms_norm", [](const Var& x) { return rms_norm(x, {}, 1e-6); }, 0.03},
      {"rms_norm", [](const Var& x) { return rms_norm(x, {}, 1e-6); }, 1},
      {"rms_norm", [](const Var& x) { return rms_norm(x, {}, 1e-6); }, 150},
      {"layer_norm", [](const Var& x) { return layer_norm(x); }, 0.03},
      {"layer_norm", [](const Var& x) { return layer_norm(x); }, 150},
      {"instance_norm", [](const Var& x) { return instance_norm(x); }, 0.03},
      {"gelu", [](const Var& x) { return gelu(x); }, 1},
      {"gelu_tanh", [](const Var& x) { return gelu_tanh(x); }, 1},
      {"mish", [](const Var& x) { return mish(x); }, 1},
      {"silu", [](const Var& x) { return silu(x); }, 1},
  }));
  const Tensor x = Tensor::normal({2, 4, 4}, 3, 0, row.scale).to(DType::f16);
  const Tensor narrow = second_derivative(row.f, x);
  const Tensor exact = second_derivative(row.f, x.to(DType::f64));
  INFO(row.name << " at " << row.scale);
  CHECK(distance(narrow, exact) < 4e-3);
}

TEST_CASE("second derivatives of f16 where formulas would overflow", "[half_derivatives]") {
  const Function f = GENERATE(values<Function>({
      [](const Var& x) { return gelu_tanh(x); },
      [](const Var& x) { return mish(x); },
      [](const Var& x) { return gelu(x); },
      [](const Var& x) { return silu(x); },
      [](const Var& x) { return elu(x); },
  }));
  const Tensor x = Tensor::from<double>({-300, -60, 60, 300, 60000}, {5}).to(DType::f16);
  const Tensor second = second_derivative(f, x);
  for (std::int64_t i = 0; i < x.elements(); ++i) CHECK(second.at(i) == 0);
}

TEST_CASE("gradients of QR in 16 bits are as accurate as their numbers", "[half_derivatives]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const std::uint64_t seed = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const Tensor a = Tensor::normal({4, 4}, seed, 0, 1).to(dtype);
  const auto gradient_in = [&](DType wide) {
    Tape tape;
    const Var x = tape.parameter(a.to(wide));
    const Qr factors = qr(x);
    const auto weigh = [&](const Var& v) {
      const Tensor weight = Tensor::normal(v.shape(), 5, 0, 1).to(dtype).to(wide);
      return sum(v * tape.constant(weight));
    };
    return gradient(weigh(factors.q) + weigh(factors.r), x).value();
  };
  const double unit = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
  CHECK(distance(gradient_in(dtype), gradient_in(DType::f64)) < unit);
}

TEST_CASE("derivatives of eigenvalues and eigenvectors in 16 bits are as accurate as their numbers",
          "[half_derivatives]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const std::uint64_t seed = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const Tensor a = Tensor::normal({4, 4}, seed, 0, 1).to(dtype);
  const auto second_in = [&](DType wide, bool of_values) {
    Tape tape;
    const Var x = tape.parameter(a.to(wide));
    const auto [w, v] = eigh(x);
    const auto weigh = [&](const Var& y) {
      const Tensor weight = Tensor::normal(y.shape(), 25, 0, 1).to(dtype).to(wide);
      return sum(y * tape.constant(weight));
    };
    const Var first = gradient(of_values ? weigh(w) : weigh(v), x);
    return std::array{first.value(), gradient(weigh(first), x).value()};
  };
  const double unit = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
  for (const bool of_values : {true, false}) {
    const auto narrow = second_in(dtype, of_values);
    const auto exact = second_in(DType::f64, of_values);
    INFO("seed " << seed << ", values " << of_values << ": " << narrow[1] << " for " << exact[1]);
    CHECK(distance(narrow[0], exact[0]) < unit);
    CHECK(distance(narrow[1], exact[1]) < 2 * unit);
  }
}

}  // namespace
}  // namespace palimpsest::half_derivatives_test
