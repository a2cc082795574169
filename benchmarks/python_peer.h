#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/process.h"

namespace palimpsest::benchmarks {

/// The command that runs a script in Python. PALIMPSEST_PYTHON names the Python, by default
/// python3.
std::vector<std::string> python_command(const std::string& script,
                                        const std::vector<std::string>& arguments);

/// The version of a package, which the script prints without arguments. Nothing when it is not
/// installed or older than version `least`, which is then said on the standard output.
std::optional<std::string> peer_version(const std::string& script, const std::string& package,
                                        int least);

/// Has the script run its function so many times. Returns the seconds that all calls took.
double seconds_of_calls(Process& script, std::int64_t times);

/// Environment that makes PyTorch fast here: one thread pool, kernels for this processor, and an
/// allocator that keeps memory from step to step.
std::map<std::string, std::string> pytorch_tuning(int threads);

}  // namespace palimpsest::benchmarks
