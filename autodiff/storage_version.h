#pragma once

#include <cstdint>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Which call of the library wrote into a storage last.
struct StorageVersion {
  std::uint64_t number = 0;    ///< `latest_version()` of that time; 0 before the first write
  const char* call = nullptr;  ///< as in `Optimizer::step`
};

/// Gives the tensor's storage a new version. Functions of the library that write into a user's
/// tensor call it before they write; `call` is a literal that names them. Tapes then notice which
/// of their values are out of date. Writes through `Tensor::data` are not noted.
void note_write(const Tensor& tensor, const char* call) noexcept;

StorageVersion version_of(const Buffer& storage);

/// Counts the calls of `note_write` in the process. While it stays the same, so do all versions.
std::uint64_t latest_version();

}  // namespace palimpsest
