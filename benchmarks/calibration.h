#pragma once

#include "benchmarks/claims.h"

namespace palimpsest::benchmarks {

/// Registers the benchmark `calibration`: a fixed loop that makes, finds, orders and frees small
/// objects, as bookkeeping does. A limit of time in such objects holds on fast and slow processors
/// alike, where one in seconds does not.
void register_calibration();

/// Wall time in objects of the loop, each of about 0.3 µs; NaN where the loop was left out.
double in_calibration_objects(double seconds, const Results& results);

inline constexpr const char* calibration_unit = "objects of the calibration loop";

}  // namespace palimpsest::benchmarks
