#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "checkpoint/stores/hash.h"

namespace palimpsest {

/// `hash_bytes_128` of bytes that come in pieces. It does not depend on where they are cut.
class HashStream {
 public:
  HashStream();
  ~HashStream();
  HashStream(const HashStream&) = delete;
  HashStream& operator=(const HashStream&) = delete;

  void reset();
  void add(std::span<const std::byte> bytes);
  Hash128 digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
