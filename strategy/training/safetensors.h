#pragma once

#include <map>
#include <string>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Tensors by name, ordered by name.
using NamedTensors = std::map<std::string, Tensor>;

/// Texts by name, which a safetensors file can hold besides its tensors.
using Metadata = std::map<std::string, std::string>;

/// Writes a safetensors file, with tensors of any dtype. An existing file is replaced only when the
/// new one is complete. Throws `FileError` when the file cannot be
/// written. Throws `ArgumentError` for an undefined tensor, the name `__metadata__`, and text
/// that is not UTF-8.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata = {});

/// Reads a safetensors file. Throws `FileError` with the file and the byte offset when it is
/// missing, truncated or malformed. That includes a header that does not fit or is not JSON and an
/// unsupported dtype. It also includes data that overlaps, leaves gaps, ends early, or has the
/// wrong length for its shape.
///
/// With `names`, reads only the tensors of these names. The others may have a dtype that tensors
/// lack. Throws `ArgumentError` for a name that the file does not have.
NamedTensors load_safetensors(const std::string& path, const std::vector<std::string>& names = {});

struct SafetensorsFile {
  NamedTensors tensors;
  Metadata metadata;
};

/// Reads the whole file, with the metadata. Also throws `FileError` when these are not texts by
/// name.
SafetensorsFile load_safetensors_file(const std::string& path);

/// Like `load_safetensors`, but maps the file: elements are read when they are first accessed. The
/// tensors share the mapping, which lasts as long as one of them. Writes to them stay in this
/// process. Read at once are tensors of bool, and tensors that are not aligned in the file. While
/// it is mapped, the file must not be changed in place; replacing it by another file is safe, as
/// `save_safetensors` does.
NamedTensors map_safetensors(const std::string& path, const std::vector<std::string>& names = {});

}  // namespace palimpsest
