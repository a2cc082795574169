#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace palimpsest {

/// The header of a `.npy` file, as NumPy's format document (NEP 1) describes it.
struct NpyHeader {
  std::string element;  ///< NumPy's name of the dtype, as in `<f4`
  bool is_fortran_order = false;
  std::vector<std::int64_t> sizes;
  std::int64_t element_at = 0;  ///< bytes of the file at which these are stated
  std::int64_t order_at = 0;
  std::int64_t sizes_at = 0;
  std::int64_t data = 0;  ///< byte at which the elements begin
};

/// The bytes that a file begins with.
inline constexpr std::string_view npy_mark = "\x93NUMPY";

/// Reads the header from the content of a file. Throws `FileError` that begins with `file`.
NpyHeader read_npy_header(const std::string& file, std::string_view content);

}  // namespace palimpsest
