#pragma once

#include <string>
#include <vector>

#include "autodiff/export.h"
#include "data/dataset.h"

namespace palimpsest PALIMPSEST_EXPORT {

// Datasets of files that stay on the disk. These functions map a file and check everything except
// its elements. Rows are read when they are requested, and copied, so they need no alignment.
//
// While a file is mapped, it must not be changed in place. An access beyond its new end would end
// the process. Replacing it by another file is safe.
//
// The functions throw `FileError` when a file cannot be mapped, is truncated or malformed, or has
// an unsupported type. The message names the file, the byte and what to do. `Dataset::rows` throws
// `FileError` for an element of a bool tensor that is neither 0 nor 1.

/// The tensors of a safetensors file, in the order of `names`; all by default, ordered by name.
/// Each has an axis 0 of the same size, for examples. Throws `ArgumentError` for a name that the
/// file does not have.
Dataset mapped_safetensors(const std::string& path, const std::vector<std::string>& names = {});

/// The array of a `.npy` file, with the dtypes and orders that `load_npy` reads. The file of an
/// array in Fortran order has the elements of a row far apart, so reading rows in any order reads
/// most of its pages. `Dataset::rows` throws `FileError` for a uint64 that i64 cannot hold.
Dataset mapped_npy(const std::string& path, const std::string& name = "");

/// The array of an uncompressed IDX file, the format of MNIST. Its elements are u8, i8, or
/// big-endian i16, i32, f32 or f64.
Dataset mapped_idx(const std::string& path, const std::string& name = "");

}  // namespace palimpsest
