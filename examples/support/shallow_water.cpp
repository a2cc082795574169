#include "examples/support/shallow_water.h"

namespace examples {

using palimpsest::Var;

namespace {

constexpr double step_length = 0.25;
constexpr double viscosity = 0.01;

Var east(const Var& x) { return roll(x, -1, 1); }
Var west(const Var& x) { return roll(x, 1, 1); }
Var north(const Var& x) { return roll(x, -1, 0); }
Var south(const Var& x) { return roll(x, 1, 0); }

}  // namespace

Var laplacian(const Var& x) { return east(x) + west(x) + north(x) + south(x) - 4.0 * x; }

Water shallow_water_step(std::span<const Var> water) {
  const Var &h = water[0], &u = water[1], &v = water[2];
  const Var flow_east = u * (1.0 + 0.5 * (h + east(h)));
  const Var flow_north = v * (1.0 + 0.5 * (h + north(h)));
  const Var height =
      h - step_length * (flow_east - west(flow_east) + flow_north - south(flow_north));

  // Vorticity at the north-east corner, and kinetic energy with the new height. Gravity waves are
  // stable because the speeds use the height of the same step.
  const Var vorticity = water_rotation + east(v) - v - north(u) + u;
  const Var squares = u * u + v * v;
  const Var head = height + 0.25 * (squares + west(u * u) + south(v * v));
  const Var v_there = 0.25 * (v + east(v) + south(v + east(v)));
  const Var u_next = u + step_length * (0.5 * (vorticity + south(vorticity)) * v_there -
                                        east(head) + head + viscosity * laplacian(u));
  const Var u_there = 0.25 * (u_next + west(u_next) + north(u_next + west(u_next)));
  const Var v_next = v + step_length * (-0.5 * (vorticity + west(vorticity)) * u_there -
                                        north(head) + head + viscosity * laplacian(v));
  return {height, u_next, v_next};
}

}  // namespace examples
