#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace palimpsest {

/// Exports exact programs (tests/programs/exact_program.h) as C, half of them with as much memory
/// as they like, half within the smallest budget. Compiles them by each build of `c_builds`.
/// Returns the first result that is not the engine's; nothing if there is none.
std::optional<std::string> problem_of_exported_builds(std::uint64_t from, std::uint64_t count);

/// Likewise, of native code: its text is compiled by each build, with the options of native code.
std::optional<std::string> problem_of_native_builds(std::uint64_t from, std::uint64_t count);

}  // namespace palimpsest
