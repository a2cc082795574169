#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace palimpsest {

/// The whole content of a file. Throws `FileError` in the name of `operation`.
std::string read_file(const std::string& path, std::string_view operation);

/// Replaces the content of a file by what `write` puts into the stream, when all of it is written.
/// Until then, and where that fails, the file stays as it was. It keeps its rights, and a link
/// stays one. A process that is killed meanwhile leaves a file behind whose name ends in `.part`.
///
/// The content is written directly where no other file can take the place: in a folder that may not
/// be written, and for pipes and devices. Throws `FileError` in the name of `operation`, and what
/// `write` throws.
void write_file(const std::string& path, const std::function<void(std::ostream& file)>& write,
                std::string_view operation);
void write_file(const std::string& path, std::string_view content, std::string_view operation);

}  // namespace palimpsest
