#include "strategy/training/safetensors_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace palimpsest {
namespace {

/// An object's members by name. Remembers a name that was given twice. The JSON library's own map
/// keeps the last of two, and its parser with a callback takes quadratic time.
template <class Key, class T, class Less, class Allocator>
class HeaderMembers : public std::map<Key, T, Less, Allocator> {
 public:
  using Base = std::map<Key, T, Less, Allocator>;
  using Base::Base;

  T& operator[](const Key& key) {
    const auto [member, is_new] = this->try_emplace(key);
    if (!is_new) repeated_ = &member->first;
    return member->second;
  }
  /// A name that was given twice, or null.
  const Key* repeated() const { return repeated_; }

 private:
  const Key* repeated_ = nullptr;
};

using HeaderJson = nlohmann::basic_json<HeaderMembers>;

constexpr std::int64_t longest_header = 100'000'000;  // the limit of the format's reference reader

constexpr std::array<std::pair<DType, const char*>, 10> safetensors_dtypes = {{
    {DType::f64, "F64"},
    {DType::f32, "F32"},
    {DType::bf16, "BF16"},
    {DType::f16, "F16"},
    {DType::i64, "I64"},
    {DType::i32, "I32"},
    {DType::i16, "I16"},
    {DType::i8, "I8"},
    {DType::u8, "U8"},
    {DType::boolean, "BOOL"},
}};

/// Refuses the header of the file at `path`.
[[noreturn]] void refuse_header(const std::string& path, const std::string& what) {
  refuse_safetensors(path, safetensors_length_bytes, what);
}

/// The member of an entry called `key`, of the kind that `is_right` accepts.
const HeaderJson& member_of(const std::string& path, const std::string& name,
                            const HeaderJson& entry, const char* key,
                            bool (HeaderJson::*is_right)() const, const char* kind) {
  const auto found = entry.is_object() ? entry.find(key) : entry.end();
  if (found == entry.end() || !((*found).*is_right)()) {
    refuse_header(path, "the entry of tensor '" + name + "' is malformed: its \"" + key +
                            "\" is not " + kind);
  }
  return *found;
}

/// The numbers of an array. All must be non-negative and representable.
std::vector<std::int64_t> read_counts(const std::string& path, const std::string& name,
                                      const HeaderJson& numbers) {
  std::vector<std::int64_t> counts;
  for (const HeaderJson& number : numbers.get_ref<const HeaderJson::array_t&>()) {
    // The JSON library would silently convert -1 and 1e300.
    if (!number.is_number_unsigned() || static_cast<std::int64_t>(number) < 0) {
      std::string problem = "tensor '" + name + "': ";
      problem += number.is_number() ? number.dump() : number.type_name();
      refuse_header(path, problem + " is not a size or offset");
    }
    counts.push_back(number);
  }
  return counts;
}

/// The shape of a tensor, for which a dtype must be possible too.
Shape read_shape(const std::string& path, const std::string& name, const HeaderJson& value) {
  const std::vector<std::int64_t> sizes = read_counts(path, name, value);
  if (sizes.size() > max_rank) {
    refuse_header(path, "tensor '" + name + "' has " + std::to_string(sizes.size()) +
                            " axes; a tensor has at most " + std::to_string(max_rank));
  }
  const Shape shape(sizes);
  if (!shape.is_possible()) {
    refuse_header(path, "tensor '" + name + "' of shape " + to_string(shape) +
                            " has more elements than any memory can hold");
  }
  return shape;
}

/// The tensor of one entry. `begin` counts from the first byte of the data.
StoredTensor read_entry(const std::string& path, const std::string& name, const HeaderJson& value) {
  const auto member = [&](const char* key, bool (HeaderJson::*is_right)() const,
                          const char* kind) -> const HeaderJson& {
    return member_of(path, name, value, key, is_right, kind);
  };
  const std::vector<std::int64_t> offsets =
      read_counts(path, name, member("data_offsets", &HeaderJson::is_array, "a list"));
  if (offsets.size() != 2) refuse_header(path, "tensor '" + name + "' needs two data offsets");
  StoredTensor tensor{
      .name = name, .type = {}, .bytes = offsets[1] - offsets[0], .begin = offsets[0]};
  tensor.type.shape = read_shape(path, name, member("shape", &HeaderJson::is_array, "a list"));
  const auto dtype =
      member("dtype", &HeaderJson::is_string, "a text").get_ref<const std::string&>();
  const auto known =
      std::ranges::find(safetensors_dtypes, dtype, [](const auto& entry) { return entry.second; });
  if (known == safetensors_dtypes.end()) {
    if (tensor.bytes < 0) refuse_header(path, "tensor '" + name + "' ends before it begins");
    tensor.unknown_dtype = dtype;
    return tensor;
  }
  tensor.type.dtype = known->first;
  if (tensor.bytes != tensor.type.bytes()) {
    refuse_header(path, "tensor '" + name + "' is " + to_string(tensor.type) + " of " +
                            std::to_string(tensor.type.bytes()) + " bytes but has " +
                            std::to_string(tensor.bytes) + " in the file");
  }
  return tensor;
}

Metadata read_metadata(const std::string& path, const HeaderJson& value) {
  const auto refuse = [&](const HeaderJson& wrong) {
    refuse_header(path, std::string("the metadata contain ") + wrong.type_name() +
                            " instead of texts by name");
  };
  if (!value.is_object()) refuse(value);
  Metadata metadata;
  for (const auto& [name, text] : value.items()) {
    if (!text.is_string()) refuse(text);
    metadata.emplace(name, text.get<std::string>());
  }
  return metadata;
}

/// The text of the header.
std::string read_text(const std::string& path, Bytes size, const ReadBytes& read) {
  std::array<char, safetensors_length_bytes> prefix{};
  if (size < safetensors_length_bytes) {
    refuse_safetensors(path, size, "the file ends before the length of its header");
  }
  if (!read(0, prefix)) refuse_safetensors(path, 0, "the header cannot be read");
  std::uint64_t length = 0;
  for (std::size_t byte = prefix.size(); byte-- > 0;) {
    length = (length << 8) | static_cast<unsigned char>(prefix[byte]);
  }
  if (length > longest_header ||
      static_cast<std::int64_t>(length) > size - safetensors_length_bytes) {
    refuse_safetensors(path, 0,
                       "a header of " + std::to_string(length) + " bytes does not fit a file of " +
                           std::to_string(size));
  }
  std::string text(length, '\0');
  if (!read(safetensors_length_bytes, text)) {
    refuse_safetensors(path, 0, "the header cannot be read");
  }
  return text;
}

HeaderJson parse_header(const std::string& path, const std::string& text) {
  try {
    return HeaderJson::parse(text);
  } catch (const HeaderJson::parse_error& error) {
    refuse_safetensors(path, safetensors_length_bytes + static_cast<std::int64_t>(error.byte),
                       "the header is not JSON");
  } catch (const HeaderJson::exception&) {  // all that is left
    refuse_header(path, "the header cannot be read: a number is too large for 64 bits");
  }
}

}  // namespace

std::vector<StoredTensor> read_safetensors_layout(const std::string& path, Bytes size,
                                                  const ReadBytes& read, Metadata* metadata) {
  const std::string text = read_text(path, size, read);
  const HeaderJson header = parse_header(path, text);
  if (!header.is_object()) refuse_header(path, "the header is not a JSON object");
  if (const std::string* name = header.get_ref<const HeaderJson::object_t&>().repeated()) {
    refuse_header(path, "tensor '" + *name + "' occurs twice");
  }
  std::vector<StoredTensor> tensors;
  for (const auto& [name, value] : header.items()) {
    if (name != safetensors_metadata) {
      tensors.push_back(read_entry(path, name, value));
    } else if (metadata != nullptr) {
      *metadata = read_metadata(path, value);
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
  });

  const std::int64_t data = safetensors_length_bytes + std::ssize(text);
  std::int64_t position = 0;
  for (StoredTensor& tensor : tensors) {
    if (tensor.begin != position) {
      refuse_safetensors(path, data + position,
                         "tensor '" + tensor.name + "' begins at byte " +
                             std::to_string(tensor.begin) + " of the data, not at " +
                             std::to_string(position) + ": data overlaps or has gaps");
    }
    if (tensor.bytes > size - data - position) {
      refuse_safetensors(path, size,
                         "the file ends inside tensor '" + tensor.name + "' of " +
                             std::to_string(tensor.bytes) + " bytes, which begins at byte " +
                             std::to_string(data + position));
    }
    tensor.begin = data + position;
    position += tensor.bytes;
  }
  if (data + position != size) {
    refuse_safetensors(path, data + position,
                       std::to_string(size - data - position) +
                           " bytes after the last tensor belong to no tensor");
  }
  return tensors;
}

std::vector<StoredTensor> read_safetensors_layout(const std::string& path, const MappedFile& file) {
  return read_safetensors_layout(path, file.bytes, [&](std::int64_t offset, std::span<char> into) {
    if (!into.empty()) std::memcpy(into.data(), file.content.get() + offset, into.size());
    return true;
  });
}

void require_known_dtype(const std::string& path, const StoredTensor& tensor) {
  if (tensor.unknown_dtype.empty()) return;
  std::string names;
  for (const auto& [supported, text] : safetensors_dtypes) {
    names.append(names.empty() ? "" : ", ").append(text);
  }
  refuse_safetensors(
      path, safetensors_length_bytes,
      "tensor '" + tensor.name + "' has dtype " + tensor.unknown_dtype + ", which is not supported",
      "convert it to one of " + names + ", or name the tensors to read");
}

const StoredTensor& named_tensor(const std::string& file, const std::vector<StoredTensor>& all,
                                 const std::string& name) {
  const auto found = std::ranges::lower_bound(all, name, {}, &StoredTensor::name);
  if (found != all.end() && found->name == name) return *found;
  std::string known;
  for (const StoredTensor& tensor : all)
    known.append(known.empty() ? "" : ", ").append(tensor.name);
  throw ArgumentError(file + " has no tensor '" + name + "'; use one of " + known);
}

const char* safetensors_name(DType dtype) {
  return std::find_if(safetensors_dtypes.begin(), safetensors_dtypes.end(),
                      [&](const auto& entry) { return entry.first == dtype; })
      ->second;
}

void refuse_safetensors(const std::string& path, std::int64_t offset, const std::string& what,
                        const std::string& step) {
  throw FileError("[safetensors] " + path + ", byte " + std::to_string(offset) + ": " + what +
                  "; " + step);
}

void check_safetensors_bools(const std::string& path, const StoredTensor& tensor,
                             std::span<const std::byte> elements) {
  if (tensor.type.dtype != DType::boolean) return;
  const auto wrong = std::ranges::find_if(elements, [](std::byte b) { return b > std::byte{1}; });
  if (wrong == elements.end()) return;
  refuse_safetensors(path, tensor.begin + (wrong - elements.begin()), "a bool is neither 0 nor 1");
}

}  // namespace palimpsest
