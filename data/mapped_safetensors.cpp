#include <algorithm>

#include "autodiff/mapped_file.h"
#include "data/mapped_dataset.h"
#include "data/stored_column.h"
#include "strategy/training/safetensors_layout.h"

namespace palimpsest {
namespace {

/// A column of the mapped file.
StoredColumn column_of(const StoredTensor& tensor, const MappedFile& file,
                       const std::string& named) {
  const std::string tensor_of_file = named + ", tensor '" + tensor.name + "'";
  return {.column = {tensor.name, example_in_file(tensor_of_file, tensor.type, tensor.begin)},
          .memory = file.content,
          .first = file.content.get() + tensor.begin,
          .file = named,
          .offset = tensor.begin};
}

/// The tensors called `names`, or all, ordered by name.
std::vector<StoredTensor> chosen_tensors(const std::string& file, std::vector<StoredTensor> all,
                                         const std::vector<std::string>& names) {
  std::ranges::sort(all, {}, &StoredTensor::name);
  if (names.empty()) return all;
  std::vector<StoredTensor> chosen;
  for (const std::string& name : names) chosen.push_back(named_tensor(file, all, name));
  return chosen;
}

}  // namespace

Dataset mapped_safetensors(const std::string& path, const std::vector<std::string>& names) {
  const MappedFile file = map_file(path, "mapped_safetensors");
  const std::string named = "[mapped_safetensors] " + path;
  const std::vector<StoredTensor> tensors =
      chosen_tensors(named, read_safetensors_layout(path, file), names);
  if (tensors.empty()) {
    refuse_file(named, 0, "the file has no tensors", "save tensors with a row for each example");
  }
  std::vector<StoredColumn> columns;
  for (const StoredTensor& tensor : tensors) {
    require_known_dtype(path, tensor);
    columns.push_back(column_of(tensor, file, named));
  }
  const StoredTensor& first = tensors.front();
  const std::int64_t size = first.type.shape[0];
  for (const StoredTensor& each : tensors) {
    if (each.type.shape[0] == size) continue;
    refuse_file(named, each.begin,
                "tensor '" + each.name + "' has " + std::to_string(each.type.shape[0]) +
                    " rows, but '" + first.name + "' has " + std::to_string(size),
                "name tensors with equal axis 0");
  }
  return stored_dataset(size, std::move(columns));
}

}  // namespace palimpsest
