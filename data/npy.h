#pragma once

#include <string>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Reads the array of a `.npy` file of version 1 to 3, as NumPy's `save` writes it. Elements in
/// Fortran order are put in C order, and those of big-endian machines in this machine's order.
///
/// Every dtype of a `Tensor` but bf16 is read as it is. uint16 becomes i32, and uint32 and uint64
/// become i64. Throws `FileError` with the file and the byte when the file cannot be opened, is
/// truncated or malformed, or has another type. It does so too for more than 8 axes, a bool that is
/// neither 0 nor 1, and a uint64 that i64 cannot hold.
Tensor load_npy(const std::string& path);

/// Writes a `.npy` file of version 1, in C order, which `numpy.load` reads. An existing file is
/// replaced only when the new one is complete. Throws `FileError` when the file cannot be written,
/// `DTypeError` for bf16, which NumPy lacks, and `ArgumentError` for an undefined tensor.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace palimpsest
