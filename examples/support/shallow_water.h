#pragma once

#include <span>
#include <vector>

#include "palimpsest.h"

namespace examples {

/// The rotating shallow-water equations on n × n cells of a C-grid with periodic edges: the height
/// above the mean depth, and the speeds through the east and the north side of each cell. Lengths
/// are in cells, heights in parts of the mean depth, speeds in those of long waves.
using Water = std::vector<palimpsest::Var>;

constexpr double water_rotation = 0.1;  ///< Coriolis parameter

/// The water a quarter of the time later in which a wave crosses a cell; equations in their
/// vector-invariant form with a little viscosity.
Water shallow_water_step(std::span<const palimpsest::Var> water);

/// Sum over the four neighbours of the differences from a cell.
palimpsest::Var laplacian(const palimpsest::Var& x);

}  // namespace examples
