#include "strategy/training/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/files.h"
#include "autodiff/mapped_file.h"
#include "strategy/training/safetensors_layout.h"

namespace palimpsest {

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata) {
  using nlohmann::json;
  json header = json::object();
  if (!metadata.empty()) header[safetensors_metadata] = metadata;
  std::int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == safetensors_metadata) {
      throw ArgumentError("[safetensors] a tensor cannot be named " + name + "; rename it");
    }
    if (!tensor.defined()) {
      throw ArgumentError("[safetensors] tensor '" + name + "' is empty; leave it out");
    }
    header[name] = {
        {"dtype", safetensors_name(tensor.dtype())},
        {"shape", std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end())},
        {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    throw ArgumentError(
        "[safetensors] a tensor's name or a text of the metadata is not UTF-8; change it");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');

  const auto write = [&](std::ostream& file) {
    const std::uint64_t length = text.size();
    for (int byte = 0; byte < safetensors_length_bytes; ++byte) {
      file.put(static_cast<char>((length >> (8 * byte)) & 0xff));
    }
    file << text;
    for (const auto& [name, tensor] : tensors) {
      file.write(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
    }
  };
  write_file(path, write, "safetensors");
}

namespace {

/// The tensors called `names`, or all of them if there are no names.
std::vector<StoredTensor> chosen_tensors(const std::string& path, std::vector<StoredTensor> all,
                                         const std::vector<std::string>& names) {
  if (names.empty()) return all;
  std::ranges::sort(all, {}, &StoredTensor::name);
  std::vector<StoredTensor> chosen;
  for (const std::string& name : names) {
    chosen.push_back(named_tensor("[safetensors] " + path, all, name));
  }
  return chosen;
}

/// A file that is open for reading.
class OpenSafetensors {
 public:
  explicit OpenSafetensors(const std::string& path) : path_(path) {
    require_regular_file(path, "safetensors");
    file_.open(path, std::ios::binary | std::ios::ate);
    if (!file_) {
      throw FileError("[safetensors] cannot open " + path + "; check the name and the permissions");
    }
  }

  std::vector<StoredTensor> layout(Metadata* metadata) {
    const auto size = static_cast<Bytes>(file_.tellg());
    const auto bytes = [&](std::int64_t offset, std::span<char> into) {
      return read(offset, into);
    };
    return read_safetensors_layout(path_, size, bytes, metadata);
  }
  Tensor tensor(const StoredTensor& stored) {
    require_known_dtype(path_, stored);
    Tensor tensor(stored.type.shape, stored.type.dtype);
    const std::span elements(tensor.raw(), static_cast<std::size_t>(tensor.bytes()));
    if (!read(stored.begin, {reinterpret_cast<char*>(elements.data()), elements.size()})) {
      refuse_safetensors(path_, stored.begin, "reading tensor '" + stored.name + "' failed");
    }
    check_safetensors_bools(path_, stored, elements);
    return tensor;
  }

 private:
  bool read(std::int64_t offset, std::span<char> into) {
    return static_cast<bool>(file_.seekg(offset).read(into.data(), std::ssize(into)));
  }

  const std::string& path_;
  std::ifstream file_;
};

}  // namespace

NamedTensors load_wanted_safetensors(const std::string& path,
                                     const std::function<bool(const std::string& name)>& is_wanted,
                                     Metadata* metadata) {
  OpenSafetensors file(path);
  NamedTensors tensors;
  for (const StoredTensor& stored : file.layout(metadata)) {
    tensors.emplace(stored.name, is_wanted(stored.name) ? file.tensor(stored) : Tensor());
  }
  return tensors;
}

NamedTensors load_safetensors(const std::string& path, const std::vector<std::string>& names) {
  OpenSafetensors file(path);
  NamedTensors tensors;
  for (const StoredTensor& stored : chosen_tensors(path, file.layout(nullptr), names)) {
    tensors.emplace(stored.name, file.tensor(stored));
  }
  return tensors;
}

SafetensorsFile load_safetensors_file(const std::string& path) {
  SafetensorsFile file;
  const auto all = [](const std::string&) { return true; };
  file.tensors = load_wanted_safetensors(path, all, &file.metadata);
  return file;
}

NamedTensors map_safetensors(const std::string& path, const std::vector<std::string>& names) {
  const MappedFile file = map_file(path, "safetensors");
  NamedTensors tensors;
  for (const StoredTensor& stored :
       chosen_tensors(path, read_safetensors_layout(path, file), names)) {
    require_known_dtype(path, stored);
    std::byte* const data = file.content.get() + stored.begin;
    const Tensor mapped(Buffer(file.content, data), stored.type.shape, stored.type.dtype);
    check_safetensors_bools(path, stored, {data, static_cast<std::size_t>(mapped.bytes())});
    const auto element = static_cast<std::uintptr_t>(size_of(mapped.dtype()));
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(data) % element == 0;
    tensors.emplace(stored.name, is_aligned ? mapped : mapped.clone());
  }
  return tensors;
}

}  // namespace palimpsest
