#pragma once

#include <string>

namespace examples {

/// Whether a command is found.
bool has_command(const std::string& command);
/// Runs a command of the shell and returns what it prints. Throws `palimpsest::FileError` with that
/// text if it fails. Only for commands without foreign text.
std::string output_of(const std::string& command);

}  // namespace examples
