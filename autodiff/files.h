#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace palimpsest {

/// Throws `FileError` naming `operation` when there is no file at `path`, or something else than a
/// regular file. Opening a pipe without a writer would wait for ever. Call it before every opening
/// for reading.
void require_regular_file(const std::string& path, std::string_view operation);

/// The whole content of a regular file. Throws `FileError` naming `operation`.
std::string read_file(const std::string& path, std::string_view operation);

/// Replaces the content of a file by the data that `write` puts into the stream, once all of it is
/// written. If that fails, the file stays unchanged. The file keeps its permissions, and a symbolic
/// link stays a link. If the process is killed, a file whose name ends in `.part` remains.
///
/// The file is written directly if it cannot be replaced: in a folder that is not writable, and for
/// pipes and devices. Throws `FileError` naming `operation`, and any exception of `write`.
void write_file(const std::string& path, const std::function<void(std::ostream& file)>& write,
                std::string_view operation);
void write_file(const std::string& path, std::string_view content, std::string_view operation);

}  // namespace palimpsest
