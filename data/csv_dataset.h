#pragma once

#include <string>
#include <vector>

#include "autodiff/export.h"
#include "data/dataset.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A tensor that is made of columns of a CSV file.
struct CsvTensor {
  std::string name;
  /// Names of the columns, which become axis 1 of a tensor (rows, columns). By default the column
  /// `name` alone, as a tensor (rows).
  std::vector<std::string> columns = {};
  DType dtype = DType::f32;  ///< f64, f32 or i64
};

struct CsvOptions {
  bool has_header = true;  ///< the first line has the names; without it they are "1", "2" and so on
  char delimiter = ',';
};

/// Reads a CSV file into memory. Each line is an example. Without `tensors`, each column is an f64
/// tensor of its name.
///
/// Fields are decimal numbers, `inf` or `nan`, and integers for i64. They can be in double quotes.
/// Spaces around fields and empty lines are ignored.
///
/// Throws `FileError` that names line and column for a field that is no such number or does not fit
/// the dtype. It does so too for a line with more or fewer fields than columns, wrong quotes, a
/// file without lines, and columns of equal names. Throws `ArgumentError` for a column that the
/// file does not have, and `DTypeError` for other dtypes.
Dataset read_csv(const std::string& path, const std::vector<CsvTensor>& tensors = {},
                 const CsvOptions& options = {});

}  // namespace palimpsest
