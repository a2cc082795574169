#include "data/dataset.h"

#include <algorithm>
#include <set>

#include "autodiff/require_function.h"
#include "data/stored_column.h"

namespace palimpsest {

struct Dataset::State {
  std::int64_t size = 0;
  std::vector<DatasetColumn> columns;
  Rows rows;
};

namespace {

/// How messages call a column.
std::string label_of(const DatasetColumn& column, std::size_t position) {
  return column.name.empty() ? "column " + std::to_string(position)
                             : "column '" + column.name + "'";
}

void check_names(std::span<const DatasetColumn> columns) {
  std::set<std::string_view> names;
  for (const DatasetColumn& column : columns) {
    if (column.name.empty() || names.insert(column.name).second) continue;
    throw ArgumentError("[dataset] two columns are called '" + column.name + "'; rename one");
  }
}

/// `example` with a first axis of `count` rows.
Shape with_rows(const Shape& example, std::int64_t count) {
  Shape shape = example;
  shape.insert(0, count);
  return shape;
}

/// Checks a tensor that the function of a dataset returned.
void check_rows(const Tensor& rows, const DatasetColumn& column, std::size_t position,
                std::int64_t count) {
  const ValueType expected{with_rows(column.example.shape, count), column.example.dtype};
  if (rows.defined() && rows.type() == expected) return;
  const std::string problem = "[dataset] the rows of " + label_of(column, position) + " are " +
                              (rows.defined() ? to_string(rows.type()) : "an empty Tensor") +
                              ", not " + to_string(expected) +
                              "; return what the columns of the dataset state";
  if (rows.defined() && rows.shape() == expected.shape) throw DTypeError(problem);
  throw ShapeError(problem);
}

}  // namespace

Dataset::Dataset(std::int64_t size, std::vector<DatasetColumn> columns, Rows rows, Where where) {
  if (size < 0) {
    throw ArgumentError("[dataset] a dataset cannot have " + std::to_string(size) +
                        " examples; give 0 or more");
  }
  if (columns.empty()) throw ArgumentError("[dataset] a dataset needs a column; give one or more");
  detail::require_function(rows, "dataset", "rows", "returns examples", where);
  check_names(columns);
  // Refuses examples that leave no axis for the rows.
  for (const DatasetColumn& column : columns) with_rows(column.example.shape, size);
  state_ = std::make_shared<const State>(State{size, std::move(columns), std::move(rows)});
}

std::int64_t Dataset::size() const { return state_->size; }

std::span<const DatasetColumn> Dataset::columns() const { return state_->columns; }

std::size_t Dataset::position(std::string_view name) const {
  const auto found = std::ranges::find(state_->columns, name, &DatasetColumn::name);
  if (found != state_->columns.end()) {
    return static_cast<std::size_t>(found - state_->columns.begin());
  }
  std::string names;
  for (const DatasetColumn& column : state_->columns) {
    names.append(names.empty() ? "" : ", ").append(column.name);
  }
  throw ArgumentError("[dataset] there is no column '" + std::string(name) + "'; use one of " +
                      names);
}

Bytes Dataset::example_bytes() const {
  Bytes bytes = 0;
  for (const DatasetColumn& column : state_->columns) bytes += column.example.bytes();
  return bytes;
}

std::vector<Tensor> Dataset::rows(std::span<const std::int64_t> indices) const {
  for (const std::int64_t index : indices) {
    if (index >= 0 && index < size()) continue;
    throw ArgumentError("[dataset] there is no example " + std::to_string(index) +
                        "; give indices from 0 to " + std::to_string(size() - 1));
  }
  std::vector<Tensor> tensors = state_->rows(indices);
  if (tensors.size() != state_->columns.size()) {
    throw ShapeError("[dataset] the function returned " + std::to_string(tensors.size()) +
                     " tensors; return one for each of the " +
                     std::to_string(state_->columns.size()) + " columns");
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check_rows(tensors[i], state_->columns[i], i, std::ssize(indices));
  }
  return tensors;
}

Dataset Dataset::slice(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > size() || count > size() - first) {
    throw ArgumentError("[dataset] examples " + std::to_string(first) + " to " +
                        std::to_string(add_sizes(first, count)) + " are not in a dataset of " +
                        std::to_string(size()) + "; give a part of it");
  }
  const auto rows = [all = *this, first](std::span<const std::int64_t> indices) {
    std::vector<std::int64_t> moved(indices.begin(), indices.end());
    for (std::int64_t& index : moved) index += first;
    return all.state_->rows(moved);
  };
  return {count, state_->columns, rows};
}

Dataset in_memory(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<StoredColumn> columns;
  std::int64_t size = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || tensor.shape().rank() == 0) {
      throw ShapeError("[in_memory] tensor '" + name + "' is " +
                       (tensor.defined() ? "a scalar" : "empty") +
                       "; give tensors with a row for each example");
    }
    if (columns.empty()) size = tensor.shape()[0];
    if (tensor.shape()[0] != size) {
      throw ShapeError("[in_memory] tensor '" + name + "' of shape " + to_string(tensor.shape()) +
                       " has not the " + std::to_string(size) + " rows of tensor '" +
                       tensors.front().first + "'; give tensors with equal axis 0");
    }
    ValueType example = tensor.type();
    example.shape.erase(0);
    columns.push_back(
        {.column = {name, example}, .memory = tensor.buffer(), .first = tensor.raw()});
  }
  return stored_dataset(size, std::move(columns));
}

Dataset joined(std::vector<Dataset> datasets) {
  if (datasets.empty()) throw ArgumentError("[joined] there are no datasets; give one or more");
  const std::int64_t size = datasets.front().size();
  std::vector<DatasetColumn> columns;
  for (const Dataset& dataset : datasets) {
    if (dataset.size() != size) {
      throw ArgumentError("[joined] datasets have " + std::to_string(size) + " and " +
                          std::to_string(dataset.size()) +
                          " examples; give datasets of equal size, or slices");
    }
    columns.insert(columns.end(), dataset.columns().begin(), dataset.columns().end());
  }
  const auto rows = [parts = std::move(datasets)](std::span<const std::int64_t> indices) {
    std::vector<Tensor> tensors;
    for (const Dataset& part : parts) {
      for (Tensor& tensor : part.rows(indices)) tensors.push_back(std::move(tensor));
    }
    return tensors;
  };
  return {size, std::move(columns), rows};
}

}  // namespace palimpsest
