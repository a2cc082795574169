#include "strategy/training/training_state.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/stores/hash.h"
#include "strategy/base/digest.h"

namespace palimpsest {
namespace {

constexpr const char* training_format = "palimpsest-training";
constexpr const char* training_version = "1";
constexpr std::string_view integer_prefix = "integer:";
constexpr std::string_view text_prefix = "text:";
constexpr std::string_view checksum_prefix = "xxh3:";
constexpr const char* metadata_checksum = "xxh3";

[[noreturn]] void refuse_position(const std::string& name, const std::string& problem,
                                  const DataPosition& position) {
  std::string names;
  for (const auto& [known, value] : position)
    names.append(names.empty() ? "'" : ", '").append(known).append("'");
  throw ArgumentError("[data position] '" + name + "' " + problem + "; " +
                      (names.empty() ? "the position is empty" : "the position has " + names));
}

[[noreturn]] void refuse_training_file(const std::string& path, const std::string& problem) {
  throw FileError("[training state] " + path + " " + problem);
}

/// The file has a list of names, and names of tensors begin with them.
bool is_part_name(const std::string& name) {
  return !name.empty() && name.find_first_of("/,") == std::string::npos;
}

std::int64_t integer_in(const std::string& path, const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end) {
    refuse_training_file(path, "has '" + text + "' as the number '" + name +
                                   "' of its position; write the file again");
  }
  return value;
}

const std::string& metadata_of(const std::string& path, const Metadata& metadata,
                               const std::string& name) {
  const auto found = metadata.find(name);
  if (found == metadata.end()) {
    refuse_training_file(path, "has no '" + name +
                                   "' in its metadata, so save_training did not write it; "
                                   "load_safetensors reads other files");
  }
  return found->second;
}

std::string digits_of(std::uint64_t hash) {
  std::string digits(16, '0');
  for (std::size_t i = digits.size(); i-- > 0; hash /= 16)
    digits[i] = "0123456789abcdef"[hash % 16];
  return digits;
}

/// A checksum of a tensor's type and elements.
std::string checksum_of(const Tensor& tensor) {
  const std::string type = to_string(tensor.type());
  const std::span elements(tensor.raw(), static_cast<std::size_t>(tensor.bytes()));
  return digits_of(hash_bytes(elements, hash_bytes(std::as_bytes(std::span(type)))));
}

/// A checksum of all metadata but this checksum.
std::string checksum_of(const Metadata& metadata) {
  Digest digest;
  for (const auto& [name, text] : metadata) {
    if (name == metadata_checksum) continue;
    digest.put(name);
    digest.put(text);
  }
  return digits_of(digest.value());
}

/// Refuses a file with metadata or a tensor that its checksum does not fit. Files of earlier
/// versions have no checksums, or none of the metadata.
void require_checksums(const std::string& path, const SafetensorsFile& file) {
  const auto whole = file.metadata.find(metadata_checksum);
  if (whole != file.metadata.end() && whole->second != checksum_of(file.metadata)) {
    refuse_training_file(path,
                         "has a position or list of parts whose checksum is another: the file was "
                         "damaged; load an earlier one");
  }
  const auto is_checksum = [](const auto& entry) {
    return entry.first.starts_with(checksum_prefix);
  };
  const auto count = std::ranges::count_if(file.metadata, is_checksum);
  if (count == 0) return;
  for (const auto& [name, tensor] : file.tensors) {
    const auto known = file.metadata.find(std::string(checksum_prefix) + name);
    if (known != file.metadata.end() && known->second == checksum_of(tensor)) continue;
    refuse_training_file(path, "has tensor '" + name +
                                   "', whose checksum is another: the file was damaged; load an "
                                   "earlier one");
  }
  if (count == std::ssize(file.tensors)) return;
  refuse_training_file(path,
                       "has a checksum of a tensor that is missing: the file was damaged; load an "
                       "earlier one");
}

}  // namespace

std::int64_t integer_at(const DataPosition& position, const std::string& name) {
  const auto found = position.find(name);
  if (found == position.end()) refuse_position(name, "is missing", position);
  if (const auto* value = std::get_if<std::int64_t>(&found->second)) return *value;
  refuse_position(name, "is a text, not a number", position);
}

const std::string& text_at(const DataPosition& position, const std::string& name) {
  const auto found = position.find(name);
  if (found == position.end()) refuse_position(name, "is missing", position);
  if (const auto* value = std::get_if<std::string>(&found->second)) return *value;
  refuse_position(name, "is a number, not a text", position);
}

void write_training_state(const std::string& path, const TrainingState& state) {
  NamedTensors tensors;
  std::string names;
  for (const auto& [name, part] : state.parts) {
    if (!is_part_name(name)) {
      throw ArgumentError("[training state] a part is named '" + name +
                          "'; give a name without '/' and ','");
    }
    names.append(names.empty() ? "" : ",").append(name);
    for (const auto& [entry, tensor] : part) tensors.emplace(name + "/" + entry, tensor);
  }
  Metadata metadata{{"format", training_format}, {"version", training_version}, {"parts", names}};
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;  // which is refused below
    metadata.emplace(std::string(checksum_prefix) + name, checksum_of(tensor));
  }
  for (const auto& [name, value] : state.position) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      metadata.emplace(std::string(integer_prefix) + name, std::to_string(*number));
    } else {
      metadata.emplace(std::string(text_prefix) + name, std::get<std::string>(value));
    }
  }
  metadata.emplace(metadata_checksum, checksum_of(metadata));
  save_safetensors(path, tensors, metadata);
}

TrainingState read_training_state(const std::string& path) {
  SafetensorsFile file = load_safetensors_file(path);
  if (metadata_of(path, file.metadata, "format") != training_format) {
    refuse_training_file(path, "has the format '" + file.metadata.at("format") + "', not '" +
                                   training_format + "'; load_safetensors reads other files");
  }
  const std::string version = metadata_of(path, file.metadata, "version");
  if (version != training_version) {
    refuse_training_file(path, "has version '" + version + "', and this library reads " +
                                   training_version + "; use the library that wrote it");
  }
  require_checksums(path, file);
  TrainingState state;
  const std::string names = metadata_of(path, file.metadata, "parts");
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    if (!is_part_name(name)) {
      refuse_training_file(path, "has a part named '" + name + "'; write the file again");
    }
    state.parts[name];
    begin = end + 1;
  }
  for (auto& [name, tensor] : file.tensors) {
    const std::size_t slash = name.find('/');
    const auto part = state.parts.find(name.substr(0, slash));
    if (slash == std::string::npos || part == state.parts.end()) {
      refuse_training_file(
          path, "has tensor '" + name + "', which belongs to no part; write the file again");
    }
    part->second.emplace(name.substr(slash + 1), std::move(tensor));
  }
  for (const auto& [name, text] : file.metadata) {
    if (name.starts_with(integer_prefix)) {
      const std::string own = name.substr(integer_prefix.size());
      state.position.insert_or_assign(own, integer_in(path, own, text));
    } else if (name.starts_with(text_prefix)) {
      state.position.insert_or_assign(name.substr(text_prefix.size()), text);
    }
  }
  return state;
}

}  // namespace palimpsest
