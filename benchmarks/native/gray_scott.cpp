// The adjoint of Gray and Scott's equations by hand, compiled for this processor.
#include <algorithm>

#include "benchmarks/native/periodic.h"
#include "benchmarks/native/reversed.h"
#include "benchmarks/native/time_loops.h"

namespace palimpsest::benchmarks::gray_scott {
namespace {

using by_hand::Cell;
using by_hand::for_cells;

constexpr std::size_t n = cells;

struct State {
  std::vector<double> u = std::vector<double>(n * n);
  std::vector<double> v = std::vector<double>(n * n);
};

double laplacian(const double* x, const Cell& c) {
  return x[c.east()] + x[c.west()] + x[c.north()] + x[c.south()] - 4 * x[c.here()];
}

void advance(const State& state, State& next) {
  const double* const u = state.u.data();
  const double* const v = state.v.data();
  double* __restrict__ const u_next = next.u.data();
  double* __restrict__ const v_next = next.v.data();
  for_cells<n>([=](const Cell& c) {
    const double x = u[c.here()];
    const double y = v[c.here()];
    const double reaction = x * y * y;
    u_next[c.here()] = x + diffusion_u * laplacian(u, c) - reaction + feed * (1 - x);
    v_next[c.here()] = y + diffusion_v * laplacian(v, c) + reaction - (feed + kill) * y;
  });
}

/// Turns the adjoint `a` of the next state into that of `state`, in `made`. Adds to the adjoints of
/// the rates.
void reverse(const State& state, const State& a, State& made, double& of_feed, double& of_kill) {
  const double* const u = state.u.data();
  const double* const v = state.v.data();
  const double* const a_u = a.u.data();
  const double* const a_v = a.v.data();
  double* __restrict__ const made_u = made.u.data();
  double* __restrict__ const made_v = made.v.data();
  for_cells<n>([=](const Cell& c) {
    const double x = u[c.here()];
    const double y = v[c.here()];
    const double of_reaction = y * (a_v[c.here()] - a_u[c.here()]);
    made_u[c.here()] =
        (1 - feed) * a_u[c.here()] + diffusion_u * laplacian(a_u, c) + y * of_reaction;
    made_v[c.here()] =
        (1 - feed - kill) * a_v[c.here()] + diffusion_v * laplacian(a_v, c) + 2 * x * of_reaction;
  });
  // Independent sums, so that no addition waits for the one before it.
  constexpr std::size_t lanes = 32;
  double sums_u[lanes] = {};
  double sums_v[lanes] = {};
  for (std::size_t i = 0; i < n * n; i += lanes) {
    for (std::size_t k = 0; k < lanes; ++k) {
      sums_u[k] += a_u[i + k] * (1 - u[i + k]);
      sums_v[k] += a_v[i + k] * v[i + k];
    }
  }
  for (std::size_t k = 0; k < lanes; ++k) {
    of_feed += sums_u[k] - sums_v[k];
    of_kill -= sums_v[k];
  }
}

Tensor tensor_of(const std::vector<double>& numbers) {
  Tensor made = Tensor::zeros({cells, cells}, DType::f64);
  std::ranges::copy(numbers, made.data<double>().begin());
  return made;
}

}  // namespace

std::vector<Tensor> gradient_by_hand(std::uint32_t steps, std::uint32_t states) {
  State first;
  const Tensor u = start_u();
  const Tensor v = start_v();
  std::ranges::copy(u.data<double>(), first.u.begin());
  std::ranges::copy(v.data<double>(), first.v.begin());
  State adjoint;
  State made;
  double of_feed = 0;
  double of_kill = 0;
  by_hand::reverse_steps<State>(
      steps, states, first,
      [](std::uint32_t, const State& state, State& next) { advance(state, next); },
      [&](std::uint32_t step, const State& state) {
        if (step + 1 == steps) {
          advance(state, made);
          for (std::size_t i = 0; i < n * n; ++i) adjoint.v[i] = 2 * made.v[i];
        }
        reverse(state, adjoint, made, of_feed, of_kill);
        std::swap(adjoint, made);
      });
  return {tensor_of(adjoint.u), tensor_of(adjoint.v), Tensor::scalar(of_feed, DType::f64),
          Tensor::scalar(of_kill, DType::f64)};
}

}  // namespace palimpsest::benchmarks::gray_scott
