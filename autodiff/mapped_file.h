#pragma once

#include <string>
#include <string_view>

#include "autodiff/bytes.h"
#include "autodiff/tensor.h"

namespace palimpsest {

/// The content of a file as memory. The system reads a page when it is first accessed. Writes
/// change this process's copy of a page, never the file.
///
/// The file must not become shorter while it is mapped: accesses beyond its end end the process
/// (SIGBUS), as do read errors of the disk.
struct MappedFile {
  Buffer content;  ///< unmapped with its last copy; null for an empty file
  Bytes bytes = 0;
};

/// Throws `FileError` naming `operation` when the file cannot be opened or mapped.
MappedFile map_file(const std::string& path, std::string_view operation);

}  // namespace palimpsest
