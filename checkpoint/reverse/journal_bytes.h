#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/stores/hash.h"

namespace palimpsest {

/// Puts numbers, texts and structs of numbers one after another.
class JournalWriter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void value(const T& value) {
    add(std::as_bytes(std::span(&value, 1)));
  }
  void number(std::uint64_t number) { value(number); }
  void text(std::string_view text) {
    number(text.size());
    add(std::as_bytes(std::span(text)));
  }
  /// All of it, followed by its hash.
  std::vector<std::byte> with_hash() const {
    std::vector<std::byte> all = bytes_;
    const Hash128 hash = hash_bytes_128(bytes_);
    const auto end = std::as_bytes(std::span(&hash, 1));
    all.insert(all.end(), end.begin(), end.end());
    return all;
  }

 private:
  void add(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> bytes_;
};

/// Takes them out again.
class JournalReader {
 public:
  explicit JournalReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  T value() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t number() { return value<std::uint64_t>(); }
  std::string text() {
    const std::span<const std::byte> bytes = take(number());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> take(std::uint64_t bytes) {
    internal_check(bytes <= bytes_.size(), "a record of a journal ends too soon");
    const auto taken = bytes_.first(static_cast<std::size_t>(bytes));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  std::span<const std::byte> bytes_;
};

}  // namespace palimpsest
