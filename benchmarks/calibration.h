#pragma once

#include "benchmarks/claims.h"

namespace palimpsest::benchmarks {

/// Registers the benchmark `calibration`: a fixed loop that creates, looks up, sorts and frees
/// small objects, as bookkeeping code does. A time limit in units of such objects holds on fast and
/// slow processors alike; a limit in seconds does not.
void register_calibration();

/// Converts wall time to objects of the loop, about 0.3 µs each. NaN when the loop was left out.
double in_calibration_objects(double seconds, const Results& results);

inline constexpr const char* calibration_unit = "objects of the calibration loop";

}  // namespace palimpsest::benchmarks
