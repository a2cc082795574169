#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "autodiff/shape.h"
#include "checkpoint/stores/hash.h"

namespace palimpsest {

/// Hashes a sequence of words.
class Digest {
 public:
  void put(std::uint64_t word) { words_.push_back(word); }
  void put(std::string_view text) { put(hash_bytes(std::as_bytes(std::span(text)))); }
  void put(const Shape& shape) {
    put(static_cast<std::uint64_t>(shape.rank()));
    for (const std::int64_t size : shape) put(static_cast<std::uint64_t>(size));
  }
  std::uint64_t value() const { return hash_bytes(std::as_bytes(std::span(words_))); }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace palimpsest
