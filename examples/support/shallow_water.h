#pragma once

#include <span>
#include <vector>

#include "palimpsest.h"

namespace examples {

/// The state of the rotating shallow-water equations on n × n cells of a C-grid with periodic
/// edges. It consists of the height above the mean depth, and of the speeds through the east and
/// the north side of each cell. Units: cells for lengths, the mean depth for heights, the speed of
/// long waves for speeds.
using Water = std::vector<palimpsest::Var>;

constexpr double water_rotation = 0.1;  ///< Coriolis parameter

/// Advances the water by a quarter of the time that a long wave takes to cross a cell. Uses the
/// vector-invariant form of the equations with a little viscosity.
Water shallow_water_step(std::span<const palimpsest::Var> water);

/// The sum of the differences between the four neighbours and a cell.
palimpsest::Var laplacian(const palimpsest::Var& x);

}  // namespace examples
