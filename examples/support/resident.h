#pragma once

#include <cstdint>

namespace examples {

/// Largest resident size of this process since `restart_peak_resident` or its start, in bytes.
std::int64_t peak_resident();
/// Starts the measurement anew, after memory that is kept free was given back to the system. Where
/// the system refuses, the peak stays that since the start.
void restart_peak_resident();

}  // namespace examples
