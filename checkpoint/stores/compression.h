#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "autodiff/bytes.h"

namespace palimpsest {

/// Lossless compression of blocks by zstd at level 1, its fastest regular level. Not thread-safe.
class Compression {
 public:
  /// For blocks of at most so many bytes.
  explicit Compression(Bytes block);
  ~Compression();

  /// Buffer for a block to be compressed.
  std::span<std::byte> plain() { return {plain_.get(), block_}; }
  /// Buffer for a compressed block.
  std::span<std::byte> packed() { return {packed_.get(), block_}; }

  /// Compresses the first `bytes` of `plain` into `packed`. Returns the compressed size; 0 when it
  /// is not smaller.
  std::size_t compress(std::size_t bytes);
  /// Decompresses `packed_bytes` of `packed` into the first `bytes` of `plain`. False when they are
  /// not the result of compressing so many bytes.
  bool decompress(std::size_t packed_bytes, std::size_t bytes);

  /// Bytes that it holds, including zstd's own tables, which exist from the first compression on.
  Bytes memory_bytes() const;

 private:
  struct Contexts;
  std::size_t block_;
  std::unique_ptr<std::byte[]> plain_;
  std::unique_ptr<std::byte[]> packed_;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace palimpsest
