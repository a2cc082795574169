#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/mapped_file.h"
#include "autodiff/tensor.h"
#include "strategy/training/safetensors.h"

namespace palimpsest {

/// A file begins with the length of its header, in this many bytes.
inline constexpr std::int64_t safetensors_length_bytes = 8;
/// The member of the header that is not a tensor.
inline constexpr const char* safetensors_metadata = "__metadata__";

/// A tensor of a safetensors file.
struct StoredTensor {
  std::string name;
  ValueType type;
  Bytes bytes = 0;
  std::int64_t begin = 0;  ///< byte of the file at which its elements begin
  /// The dtype in the file, if no tensor has it. Then only the shape of `type` is right.
  std::string unknown_dtype = {};
};

/// Fills `into` with the bytes of a file from `offset` on. Returns false if they cannot be read.
using ReadBytes = std::function<bool(std::int64_t offset, std::span<char> into)>;

/// The tensors of a safetensors file of `size` bytes, in the order of their elements. Checks all of
/// the file except the elements themselves. Reads the metadata too if `metadata` is not null.
/// Throws `FileError` as `load_safetensors_file` does, except for unknown dtypes.
std::vector<StoredTensor> read_safetensors_layout(const std::string& path, Bytes size,
                                                  const ReadBytes& read,
                                                  Metadata* metadata = nullptr);
/// Likewise for a mapped file.
std::vector<StoredTensor> read_safetensors_layout(const std::string& path, const MappedFile& file);

/// Throws `FileError` if no tensor has the dtype of a stored one.
void require_known_dtype(const std::string& path, const StoredTensor& tensor);
/// The tensor called `name` of tensors ordered by name. Throws `ArgumentError` if there is none.
const StoredTensor& named_tensor(const std::string& file, const std::vector<StoredTensor>& all,
                                 const std::string& name);

/// Reads the tensors for which `is_wanted` holds. Others are empty.
NamedTensors load_wanted_safetensors(const std::string& path,
                                     const std::function<bool(const std::string& name)>& is_wanted,
                                     Metadata* metadata = nullptr);

/// The name of a dtype in safetensors files.
const char* safetensors_name(DType dtype);

/// Throws `FileError` naming file and byte. `step` says what to do.
[[noreturn]] void refuse_safetensors(const std::string& path, std::int64_t offset,
                                     const std::string& what,
                                     const std::string& step = "write the file again");

/// Throws `FileError` if an element of a bool tensor, of which `elements` are the bytes, is neither
/// 0 nor 1.
void check_safetensors_bools(const std::string& path, const StoredTensor& tensor,
                             std::span<const std::byte> elements);

}  // namespace palimpsest
