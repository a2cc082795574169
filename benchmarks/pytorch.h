#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace palimpsest::benchmarks {

/// The command that runs a script with PyTorch. PALIMPSEST_PYTHON names the Python that has it, by
/// default python3.
std::vector<std::string> pytorch_command(const std::string& script,
                                         const std::vector<std::string>& arguments);

/// PyTorch's version, which the script prints without arguments; nothing when it is not installed
/// or older than version 2, which is then said on the standard output.
std::optional<std::string> pytorch_version(const std::string& script);

/// Environment that makes PyTorch fast here: one thread pool, kernels for this processor, and an
/// allocator that keeps memory from step to step.
std::map<std::string, std::string> pytorch_tuning(int threads);

}  // namespace palimpsest::benchmarks
