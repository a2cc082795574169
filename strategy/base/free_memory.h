#pragma once

#include <functional>
#include <optional>
#include <string>

#include "autodiff/bytes.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Bytes that this process can take before the system swaps or kills. It considers the available
/// memory of the machine and the limits of the control groups (v1 and v2) around the process.
/// Cached files that can be evicted count as free. `unlimited` where the system does not report it.
/// Reads files under `root`.
Bytes free_memory(const std::string& root = "");

/// Returns how many bytes are free.
using FreeMemory = std::function<Bytes()>;

/// The budget for a run without one that would take `peak` bytes. It leaves a sixteenth of the free
/// memory unused, and includes the `kept` bytes of earlier runs, which can be reused. Nothing where
/// the run takes no more than that, or so little that querying the free memory is not worth the
/// time.
std::optional<Bytes> budget_of_free_memory(Bytes peak, Bytes kept, const FreeMemory& free);

}  // namespace palimpsest
