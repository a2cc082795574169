#pragma once

#include <functional>
#include <optional>
#include <string>

#include "autodiff/bytes.h"

namespace palimpsest {

/// Bytes that this process can take before the system swaps or kills: what the machine has
/// available, and what the control groups (v1 and v2) around the process leave of their limits,
/// cached files that would give way counted as free. `unlimited` where the system says nothing.
/// Reads files under `root`.
Bytes free_memory(const std::string& root = "");

/// Says how many bytes are free.
using FreeMemory = std::function<Bytes()>;

/// The budget for a run that has none and would take `peak` bytes, where it would then leave no
/// sixteenth of the memory free that there is beside the `kept` bytes of runs before; nothing where
/// it would, or where so little is wanted that the question takes longer than the answer is worth.
std::optional<Bytes> budget_of_free_memory(Bytes peak, Bytes kept, const FreeMemory& free);

}  // namespace palimpsest
