#pragma once

#include <cstdint>

namespace examples {

/// Largest resident size of this process in bytes, since `restart_peak_resident` or the start of
/// the process.
std::int64_t peak_resident();
/// Restarts the measurement, after returning the allocator's free memory to the system. If the
/// system refuses, the peak remains that since the start of the process.
void restart_peak_resident();

}  // namespace examples
