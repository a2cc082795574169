// The adjoint of shallow water by hand, compiled for this processor.
#include <algorithm>

#include "benchmarks/native/periodic.h"
#include "benchmarks/native/reversed.h"
#include "benchmarks/native/time_loops.h"

namespace palimpsest::benchmarks::shallow_water {
namespace {

using by_hand::Cell;
using by_hand::for_cells;

constexpr std::size_t n = cells;
constexpr float dt = step_length;
constexpr float quarter_turn = dt * rotation / 4;
constexpr float slowed = 1 - dt * friction;

struct Water {
  std::vector<float> h = std::vector<float>(n * n);
  std::vector<float> u = std::vector<float>(n * n);
  std::vector<float> v = std::vector<float>(n * n);
};

void advance(const Water& water, Water& next) {
  const float* const h = water.h.data();
  const float* const u = water.u.data();
  const float* const v = water.v.data();
  float* __restrict__ const h_next = next.h.data();
  float* __restrict__ const u_next = next.u.data();
  float* __restrict__ const v_next = next.v.data();
  for_cells<n>([=](const Cell& c) {
    const float here = h[c.here()];
    const float east = u[c.here()] * (1 + 0.5F * (here + h[c.east()]));
    const float west = u[c.west()] * (1 + 0.5F * (h[c.west()] + here));
    const float north = v[c.here()] * (1 + 0.5F * (here + h[c.north()]));
    const float south = v[c.south()] * (1 + 0.5F * (h[c.south()] + here));
    h_next[c.here()] = here - dt * (east - west + north - south);
  });
  for_cells<n>([=](const Cell& c) {
    const float there = v[c.here()] + v[c.east()] + v[c.south()] + v[c.south_east()];
    u_next[c.here()] =
        slowed * u[c.here()] + quarter_turn * there + dt * (h_next[c.here()] - h_next[c.east()]);
  });
  for_cells<n>([=](const Cell& c) {
    const float there =
        u_next[c.here()] + u_next[c.west()] + u_next[c.north()] + u_next[c.north_west()];
    v_next[c.here()] =
        slowed * v[c.here()] - quarter_turn * there + dt * (h_next[c.here()] - h_next[c.north()]);
  });
}

/// Turns the adjoint `a` of the next state into that of `water`, in `made`.
void reverse(const Water& water, const Water& a, Water& made, Water& work) {
  const float* const h = water.h.data();
  const float* const u = water.u.data();
  const float* const v = water.v.data();
  const float* const a_h = a.h.data();
  const float* const a_u = a.u.data();
  const float* const a_v = a.v.data();
  // The adjoints of the new u and h in full, and of the flows times the speeds.
  float* __restrict__ const b_h = work.h.data();
  float* __restrict__ const east = work.u.data();
  float* __restrict__ const north = work.v.data();
  float* __restrict__ const made_h = made.h.data();
  float* const b_u = made_h;  // until it is no longer needed
  float* __restrict__ const made_u = made.u.data();
  float* __restrict__ const made_v = made.v.data();
  for_cells<n>([=](const Cell& c) {
    b_u[c.here()] = a_u[c.here()] - quarter_turn * (a_v[c.here()] + a_v[c.east()] + a_v[c.south()] +
                                                    a_v[c.south_east()]);
  });
  for_cells<n>([=](const Cell& c) {
    b_h[c.here()] =
        a_h[c.here()] + dt * (a_v[c.here()] - a_v[c.south()] + b_u[c.here()] - b_u[c.west()]);
  });
  for_cells<n>([=](const Cell& c) {
    const float of_east = dt * (b_h[c.east()] - b_h[c.here()]);
    const float of_north = dt * (b_h[c.north()] - b_h[c.here()]);
    const float there = b_u[c.here()] + b_u[c.west()] + b_u[c.north()] + b_u[c.north_west()];
    made_u[c.here()] = slowed * b_u[c.here()] + of_east * (1 + 0.5F * (h[c.here()] + h[c.east()]));
    made_v[c.here()] = slowed * a_v[c.here()] + quarter_turn * there +
                       of_north * (1 + 0.5F * (h[c.here()] + h[c.north()]));
    east[c.here()] = u[c.here()] * of_east;
    north[c.here()] = v[c.here()] * of_north;
  });
  for_cells<n>([=](const Cell& c) {
    made_h[c.here()] = b_h[c.here()] + 0.5F * (east[c.here()] + east[c.west()] + north[c.here()] +
                                               north[c.south()]);
  });
}

Tensor tensor_of(const std::vector<float>& numbers) {
  Tensor made = Tensor::zeros({cells, cells}, DType::f32);
  std::ranges::copy(numbers, made.data<float>().begin());
  return made;
}

}  // namespace

std::vector<Tensor> gradient_by_hand(std::uint32_t steps, std::uint32_t states) {
  Water first;
  const Tensor heights = start_heights();
  std::ranges::copy(heights.data<float>(), first.h.begin());
  Water adjoint;
  Water made;
  Water work;
  by_hand::reverse_steps<Water>(
      steps, states, first,
      [](std::uint32_t, const Water& water, Water& next) { advance(water, next); },
      [&](std::uint32_t step, const Water& water) {
        if (step + 1 == steps) {
          advance(water, work);
          for (std::size_t i = 0; i < n * n; ++i) adjoint.h[i] = 2 * work.h[i];
        }
        reverse(water, adjoint, made, work);
        std::swap(adjoint, made);
      });
  return {tensor_of(adjoint.h), tensor_of(adjoint.u), tensor_of(adjoint.v)};
}

}  // namespace palimpsest::benchmarks::shallow_water
