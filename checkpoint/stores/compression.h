#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "autodiff/bytes.h"

namespace palimpsest {

/// Compresses blocks by zstd at its fastest usual level, 1, without loss. Not for two threads at
/// once.
class Compression {
 public:
  /// For blocks of so many bytes at most.
  explicit Compression(Bytes block);
  ~Compression();

  /// Room for a block to be compressed.
  std::span<std::byte> plain() { return {plain_.get(), block_}; }
  /// Room for a compressed block.
  std::span<std::byte> packed() { return {packed_.get(), block_}; }

  /// Compresses the first `bytes` of `plain` into `packed` and returns how many it made of them; 0
  /// when they are not fewer.
  std::size_t compress(std::size_t bytes);
  /// Undoes that: `packed_bytes` of `packed` become the first `bytes` of `plain`. False where they
  /// are not what `compress` made of so many.
  bool decompress(std::size_t packed_bytes, std::size_t bytes);

  /// What it holds, zstd's own tables among it, from its first compression on.
  Bytes memory_bytes() const;

 private:
  struct Contexts;
  std::size_t block_;
  std::unique_ptr<std::byte[]> plain_;
  std::unique_ptr<std::byte[]> packed_;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace palimpsest
