#pragma once

#include "autodiff/bytes.h"

namespace palimpsest {

/// What a run in pieces would take.
struct PiecesForecast {
  Bytes peak = 0;  ///< as its report will predict it
  Bytes keep_all_peak = 0;
  double seconds = 0;           ///< by the machine that planners go by
  double compute_overhead = 0;  ///< as `Plan::compute_overhead`
};

}  // namespace palimpsest
