#pragma once

#include <map>
#include <string>

#include "autodiff/tensor.h"

namespace palimpsest {

/// Tensors by name, in the order of their names.
using NamedTensors = std::map<std::string, Tensor>;

/// Writes a safetensors file: dtypes f64, f32, bf16, f16, i64, i32, bool. A file of the same name
/// is replaced only when all of the new one is written. Throws `FileError`, and `ArgumentError` for
/// a name that is not UTF-8 or is "__metadata__".
void save_safetensors(const std::string& path, const NamedTensors& tensors);

/// Reads a safetensors file. Throws `FileError` naming the file and the byte offset when it is
/// missing, truncated or malformed: a header that does not fit or is not JSON, a dtype that is not
/// one of ours, data that overlaps, leaves gaps, has the wrong length for its shape or ends early.
NamedTensors load_safetensors(const std::string& path);

}  // namespace palimpsest
