#pragma once

#include <string>
#include <string_view>

namespace palimpsest {

/// The whole content of a file. Throws `FileError` in the name of `operation`.
std::string read_file(const std::string& path, std::string_view operation);

/// Replaces the content of a file. Throws `FileError` in the name of `operation`.
void write_file(const std::string& path, std::string_view content, std::string_view operation);

}  // namespace palimpsest
