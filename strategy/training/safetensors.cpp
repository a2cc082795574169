#include "strategy/training/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "autodiff/files.h"

namespace palimpsest {
namespace {

using nlohmann::json;

constexpr std::int64_t length_bytes = 8;
constexpr std::int64_t longest_header = 100'000'000;  // the limit of the format's reference reader

constexpr const char* not_a_tensor = "__metadata__";

constexpr std::array<std::pair<DType, const char*>, 7> dtype_names = {{
    {DType::f64, "F64"},
    {DType::f32, "F32"},
    {DType::bf16, "BF16"},
    {DType::f16, "F16"},
    {DType::i64, "I64"},
    {DType::i32, "I32"},
    {DType::boolean, "BOOL"},
}};

/// `step` says what to do.
[[noreturn]] void fail(const std::string& path, std::int64_t offset, const std::string& what,
                       const std::string& step = "write the file again") {
  throw FileError("[safetensors] " + path + ", byte " + std::to_string(offset) + ": " + what +
                  "; " + step);
}

const char* name_in_file(DType dtype) {
  return std::find_if(dtype_names.begin(), dtype_names.end(),
                      [&](const auto& entry) { return entry.first == dtype; })
      ->second;
}

}  // namespace

void save_safetensors(const std::string& path, const NamedTensors& tensors) {
  json header = json::object();
  std::int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == not_a_tensor) {
      throw ArgumentError("[safetensors] a tensor cannot be named " + name + "; rename it");
    }
    if (!tensor.defined()) {
      throw ArgumentError("[safetensors] tensor '" + name + "' is empty; leave it out");
    }
    header[name] = {
        {"dtype", name_in_file(tensor.dtype())},
        {"shape", std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end())},
        {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    throw ArgumentError("[safetensors] a tensor's name is not UTF-8; rename it");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');

  const auto write = [&](std::ostream& file) {
    const std::uint64_t length = text.size();
    for (int byte = 0; byte < length_bytes; ++byte) {
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

struct Entry {
  std::string name;
  ValueType type;
  std::int64_t begin;
  std::int64_t end;
};

DType read_dtype(const std::string& path, const std::string& name, const std::string& dtype) {
  const auto known = std::find_if(dtype_names.begin(), dtype_names.end(),
                                  [&](const auto& entry) { return dtype == entry.second; });
  if (known == dtype_names.end()) {
    std::string names;
    for (const auto& [supported, text] : dtype_names) {
      names.append(names.empty() ? "" : ", ").append(text);
    }
    fail(path, length_bytes,
         "tensor '" + name + "' has dtype " + dtype + ", which is not supported",
         "convert it to one of " + names);
  }
  return known->first;
}

/// The numbers of an array. All must be non-negative and representable.
std::vector<std::int64_t> read_counts(const std::string& path, const std::string& name,
                                      const json& numbers) {
  std::vector<std::int64_t> counts;
  for (const json& number : numbers.get_ref<const json::array_t&>()) {
    // The JSON library would silently convert -1 and 1e300.
    if (!number.is_number_unsigned() || static_cast<std::int64_t>(number) < 0) {
      std::string problem = "tensor '" + name + "': ";
      problem += number.is_number() ? number.dump() : number.type_name();
      fail(path, length_bytes, problem + " is not a size or offset");
    }
    counts.push_back(number);
  }
  return counts;
}

Entry read_entry(const std::string& path, const std::string& name, const json& value) {
  try {
    const std::vector<std::int64_t> offsets = read_counts(path, name, value.at("data_offsets"));
    if (offsets.size() != 2) {
      fail(path, length_bytes, "tensor '" + name + "' needs two data offsets");
    }
    const ValueType type{Shape(read_counts(path, name, value.at("shape"))),
                         read_dtype(path, name, value.at("dtype").get<std::string>())};
    if (offsets[1] - offsets[0] != type.bytes()) {
      fail(path, length_bytes,
           "tensor '" + name + "' is " + to_string(type) + " of " + std::to_string(type.bytes()) +
               " bytes but has " + std::to_string(offsets[1] - offsets[0]) + " in the file");
    }
    return {name, type, offsets[0], offsets[1]};
  } catch (const json::exception& error) {
    fail(path, length_bytes, "the entry of tensor '" + name + "' is malformed: " + error.what());
  } catch (const ShapeError& error) {
    fail(path, length_bytes, "tensor '" + name + "': " + error.what());
  }
}

/// The JSON library keeps the last of two equal keys; this parser rejects them.
json parse_without_repeats(const std::string& path, const std::string& text) {
  std::set<std::string> names;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth != 1 || event != json::parse_event_t::key) return true;
    const auto& name = parsed.get_ref<const std::string&>();
    if (!names.insert(name).second) fail(path, length_bytes, "tensor '" + name + "' occurs twice");
    return true;
  };
  return json::parse(text, check);
}

std::vector<Entry> read_header(const std::string& path, std::ifstream& file, std::int64_t size) {
  std::array<unsigned char, length_bytes> prefix{};
  if (size < length_bytes) fail(path, size, "the file ends before the length of its header");
  file.read(reinterpret_cast<char*>(prefix.data()), length_bytes);
  std::uint64_t length = 0;
  for (std::size_t byte = prefix.size(); byte-- > 0;) length = (length << 8) | prefix[byte];
  if (length > longest_header || static_cast<std::int64_t>(length) > size - length_bytes) {
    fail(path, 0,
         "a header of " + std::to_string(length) + " bytes does not fit a file of " +
             std::to_string(size));
  }
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  if (!file) fail(path, 0, "the header cannot be read");
  json header;
  try {
    header = parse_without_repeats(path, text);
  } catch (const json::parse_error& error) {
    fail(path, length_bytes + static_cast<std::int64_t>(error.byte), "the header is not JSON");
  } catch (const json::exception& error) {
    fail(path, length_bytes, std::string("the header cannot be read: ") + error.what());
  }
  if (!header.is_object()) fail(path, length_bytes, "the header is not a JSON object");
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != not_a_tensor) entries.push_back(read_entry(path, name, value));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  return entries;
}

}  // namespace

NamedTensors load_safetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw FileError("[safetensors] cannot open " + path + "; check the name and the permissions");
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw FileError("[safetensors] " + path + " is a folder; name a file");
  }
  const auto size = static_cast<std::int64_t>(file.tellg());
  file.seekg(0);
  const std::vector<Entry> entries = read_header(path, file, size);
  const auto data = static_cast<std::int64_t>(file.tellg());

  NamedTensors tensors;
  std::int64_t position = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != position) {
      fail(path, data + position,
           "tensor '" + entry.name + "' begins at byte " + std::to_string(entry.begin) +
               " of the data, not at " + std::to_string(position) + ": data overlaps or has gaps");
    }
    if (entry.end > size - data) {
      fail(path, size,
           "the file ends inside tensor '" + entry.name + "', which extends to byte " +
               std::to_string(data + entry.end));
    }
    Tensor tensor(entry.type.shape, entry.type.dtype);
    file.read(reinterpret_cast<char*>(tensor.raw()), tensor.bytes());
    if (!file) fail(path, data + entry.begin, "reading tensor '" + entry.name + "' failed");
    if (tensor.dtype() == DType::boolean) {
      for (std::int64_t at = 0; at < tensor.bytes(); ++at) {
        if (static_cast<unsigned char>(tensor.raw()[at]) <= 1) continue;
        fail(path, data + entry.begin + at, "a bool is neither 0 nor 1");
      }
    }
    tensors.emplace(entry.name, std::move(tensor));
    position = entry.end;
  }
  if (data + position != size) {
    fail(path, data + position,
         std::to_string(size - data - position) +
             " bytes after the last tensor belong to no tensor");
  }
  return tensors;
}

}  // namespace palimpsest
