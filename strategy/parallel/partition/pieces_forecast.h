#pragma once

#include "autodiff/bytes.h"

namespace palimpsest {

/// The predicted memory and time of a run in pieces.
struct PiecesForecast {
  Bytes peak = 0;  ///< as the report of the run will predict it
  Bytes keep_all_peak = 0;
  double seconds = 0;           ///< on the machine that planners assume
  double compute_overhead = 0;  ///< as `Plan::compute_overhead`
};

}  // namespace palimpsest
