#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// One tensor of a dataset.
struct DatasetColumn {
  std::string name;   ///< empty if it has none
  ValueType example;  ///< type of one example: the shape has no axis of examples

  bool operator==(const DatasetColumn&) const = default;
};

/// Examples for training: one or several tensors with a row for each example, along axis 0. Rows
/// are made when they are requested, so a dataset can be larger than memory. A handle: copies are
/// cheap and share the data. It may be used by several threads at once.
class Dataset {
 public:
  /// Makes the rows of some examples: for each column a tensor of shape (number of indices, sizes
  /// of an example …). Every index is in [0, size). It must return the same rows in every call. It
  /// may be called from any thread, and by several at once.
  using Rows = std::function<std::vector<Tensor>(std::span<const std::int64_t> indices)>;

  /// A dataset of your own with `size` examples. Throws `ArgumentError` for a negative size, an
  /// empty function, no columns, or two columns of one name, and `ShapeError` for examples of 8
  /// axes.
  Dataset(std::int64_t size, std::vector<DatasetColumn> columns, Rows rows,
          Where where = Where::current());

  /// Number of examples.
  std::int64_t size() const;
  std::span<const DatasetColumn> columns() const;
  /// Position of a column. Throws `ArgumentError` that lists the columns.
  std::size_t position(std::string_view name) const;
  /// Bytes of one example in all tensors.
  Bytes example_bytes() const;

  /// The rows of the examples `indices`, in this order: a new tensor for each column. Throws
  /// `ArgumentError` for an index outside of [0, size), `ShapeError` or `DTypeError` if the
  /// dataset's function returns other tensors than its columns state, and errors of that function.
  std::vector<Tensor> rows(std::span<const std::int64_t> indices) const;
  std::vector<Tensor> rows(std::initializer_list<std::int64_t> indices) const {
    return rows(std::span(indices.begin(), indices.size()));
  }

  /// The examples [first, first + count). Throws `ArgumentError` if the dataset has not that many.
  Dataset slice(std::int64_t first, std::int64_t count) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// A dataset of tensors in memory, whose axis 0 is the axis of examples. It shares their storage,
/// which must not be written while another thread may read rows, such as that of a loader. Throws
/// `ShapeError` for a scalar and for tensors with different numbers of rows.
Dataset in_memory(const std::vector<std::pair<std::string, Tensor>>& tensors);

/// The columns of several datasets, side by side. Throws `ArgumentError` for datasets of different
/// sizes, no datasets, or two columns of one name.
Dataset joined(std::vector<Dataset> datasets);

}  // namespace palimpsest
