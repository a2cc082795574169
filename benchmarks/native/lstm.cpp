// The adjoint of an LSTM cell by hand, compiled for this processor.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "benchmarks/native/reversed.h"
#include "benchmarks/native/time_loops.h"

namespace palimpsest::benchmarks::lstm {
namespace {

constexpr std::size_t H = width;
constexpr std::size_t G = 4 * H;

using Vector = float __attribute__((vector_size(64), aligned(4), may_alias));
constexpr std::size_t lanes = 16;

struct State {
  alignas(64) float h[H] = {};
  alignas(64) float c[H] = {};
};

struct Weights {
  alignas(64) float input[H][G];
  alignas(64) float hidden[H][G];
  alignas(64) float hidden_transposed[G][H];
  alignas(64) float bias[G];
};

/// Results of a step that its adjoint reads.
struct Gates {
  alignas(64) float activated[G];  // σ(i), σ(f), tanh(g), σ(o)
  alignas(64) float tanh_c[H];
};

/// eˣ by a polynomial after Cephes, with an error of about 1e-7; written without branches.
inline float exponential(float x) {
  x = std::min(std::max(x, -87.0F), 88.0F);
  constexpr float shift = 12582912.0F;  // 1.5·2²³: adding it rounds to an integer
  const float k = (x * 1.44269504F + shift) - shift;
  const float r = (x - k * 0.693359375F) + k * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  return p * std::bit_cast<float>((static_cast<std::int32_t>(k) + 127) << 23);
}
inline float sigmoid(float x) { return 1.0F / (1.0F + exponential(-x)); }
inline float hyperbolic_tangent(float x) { return 2.0F / (1.0F + exponential(-2.0F * x)) - 1.0F; }

/// to += Σ xᵢ rowᵢ for rows of N numbers.
template <std::size_t N>
inline void add_products(const float* x, const float (*rows)[N], std::size_t count, float* to) {
  constexpr std::size_t vectors = N / lanes;
  Vector sums[vectors];
  std::memcpy(sums, to, sizeof sums);
  for (std::size_t i = 0; i < count; ++i) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < vectors; ++k) {
      sums[k] += x[i] * *reinterpret_cast<const Vector*>(rows[i] + k * lanes);
    }
  }
  std::memcpy(to, sums, sizeof sums);
}

void advance(const Weights& w, const float* x, const State& s, State& next, Gates& gates) {
  float* const a = gates.activated;
  std::memcpy(a, w.bias, sizeof w.bias);
  add_products<G>(x, w.input, H, a);
  add_products<G>(s.h, w.hidden, H, a);
  for (std::size_t j = 0; j < 2 * H; ++j) a[j] = sigmoid(a[j]);
  for (std::size_t j = 2 * H; j < 3 * H; ++j) a[j] = hyperbolic_tangent(a[j]);
  for (std::size_t j = 3 * H; j < G; ++j) a[j] = sigmoid(a[j]);
  for (std::size_t j = 0; j < H; ++j) {
    const float c = a[H + j] * s.c[j] + a[j] * a[2 * H + j];
    gates.tanh_c[j] = hyperbolic_tangent(c);
    next.c[j] = c;
    next.h[j] = a[3 * H + j] * gates.tanh_c[j];
  }
}

struct Made {
  alignas(64) float input[H][G] = {};
  alignas(64) float hidden[H][G] = {};
  alignas(64) float bias[G] = {};
};

/// Adds xᵢ d to each row.
inline void add_outer(const float* x, const float* d, float (*rows)[G]) {
  constexpr std::size_t vectors = G / lanes;
  Vector values[vectors];
  std::memcpy(values, d, sizeof values);
  for (std::size_t i = 0; i < H; ++i) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < vectors; ++k) {
      *reinterpret_cast<Vector*>(rows[i] + k * lanes) += x[i] * values[k];
    }
  }
}

/// Turns the adjoint `a` of the next state into that of `s`. Adds to the adjoints of the weights.
void reverse(const Weights& w, const float* x, const State& s, State& a, Made& made) {
  State next;
  Gates gates;
  advance(w, x, s, next, gates);
  const float* const g = gates.activated;
  alignas(64) float d[G];
  for (std::size_t j = 0; j < H; ++j) {
    const float in = g[j], kept = g[H + j], fresh = g[2 * H + j], out = g[3 * H + j];
    const float t = gates.tanh_c[j];
    const float of_h = a.h[j] + 2 * next.h[j];
    const float of_c = a.c[j] + of_h * out * (1 - t * t);
    d[j] = of_c * fresh * in * (1 - in);
    d[H + j] = of_c * s.c[j] * kept * (1 - kept);
    d[2 * H + j] = of_c * in * (1 - fresh * fresh);
    d[3 * H + j] = of_h * t * out * (1 - out);
    a.c[j] = of_c * kept;
    a.h[j] = 0;
  }
  add_products<H>(d, w.hidden_transposed, G, a.h);
  add_outer(x, d, made.input);
  add_outer(s.h, d, made.hidden);
  for (std::size_t j = 0; j < G; ++j) made.bias[j] += d[j];
}

Tensor tensor_of(const float* numbers, const Shape& shape) {
  Tensor made = Tensor::zeros(shape, DType::f32);
  std::copy_n(numbers, made.data<float>().size(), made.data<float>().begin());
  return made;
}

Weights weights() {
  Weights made;
  const auto copy = [](const Tensor& from, float* to) {
    std::ranges::copy(from.data<float>(), to);
  };
  copy(input_weight(), made.input[0]);
  copy(hidden_weight(), made.hidden[0]);
  copy(bias(), made.bias);
  for (std::size_t i = 0; i < H; ++i) {
    for (std::size_t j = 0; j < G; ++j) made.hidden_transposed[j][i] = made.hidden[i][j];
  }
  return made;
}

}  // namespace

std::vector<Tensor> gradient_by_hand(std::uint32_t steps, std::uint32_t states) {
  static const Weights w = weights();
  static const Tensor xs = sequence(steps);
  const float* const x = xs.data<float>().data();
  Made made;
  State adjoint;
  Gates gates;
  by_hand::reverse_steps<State>(
      steps, states, {},
      [&](std::uint32_t step, const State& s, State& next) {
        advance(w, x + step * H, s, next, gates);
      },
      [&](std::uint32_t step, const State& s) { reverse(w, x + step * H, s, adjoint, made); });
  return {tensor_of(made.input[0], {width, 4 * width}),
          tensor_of(made.hidden[0], {width, 4 * width}), tensor_of(made.bias, {4 * width})};
}

}  // namespace palimpsest::benchmarks::lstm
