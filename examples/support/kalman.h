#pragma once

#include "palimpsest.h"

namespace examples {

/// A Kalman filter that tracks a vehicle in the plane. Its state is position and velocity (4), its
/// measurements are positions (2). Both noises are unknown.
struct Kalman {
  std::int64_t steps = 100;
  double interval = 0.5;  ///< seconds between measurements

  palimpsest::Var noises;        ///< logarithms of the deviations of acceleration and measurement
  palimpsest::Var measurements;  ///< (steps, 2)

  /// Noisy positions of a vehicle that drives a curve, in f64.
  palimpsest::Tensor simulated(std::uint64_t seed) const;
  /// Records the negative log likelihood of the measurements, and sets `noises` and `measurements`.
  palimpsest::Var record(palimpsest::Tape& tape);
  /// Its value and gradient, as a program on one thread.
  palimpsest::Program program();
  /// The exported function `kalman`, within `budget` bytes.
  palimpsest::ExportedC exported(const palimpsest::Program& program,
                                 palimpsest::Bytes budget) const;
};

/// Where the search for the noises starts.
palimpsest::Tensor first_noises();

}  // namespace examples
