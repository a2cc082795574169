#include "checkpoint/stores/compression.h"

#include <zstd.h>

#include <new>

namespace palimpsest {

struct Compression::Contexts {
  ZSTD_CCtx* compress = ZSTD_createCCtx();
  ZSTD_DCtx* decompress = ZSTD_createDCtx();

  Contexts() {
    if (compress == nullptr || decompress == nullptr) {
      release();
      throw std::bad_alloc();
    }
  }
  ~Contexts() { release(); }
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;

 private:
  void release() {
    ZSTD_freeCCtx(compress);
    ZSTD_freeDCtx(decompress);
  }
};

Compression::Compression(Bytes block)
    : block_(static_cast<std::size_t>(block)),
      plain_(std::make_unique<std::byte[]>(block_)),
      packed_(std::make_unique<std::byte[]>(block_)),
      contexts_(std::make_unique<Contexts>()) {
  ZSTD_CCtx_setParameter(contexts_->compress, ZSTD_c_compressionLevel, 1);
}

Compression::~Compression() = default;

std::size_t Compression::compress(std::size_t bytes) {
  const std::size_t made =
      ZSTD_compress2(contexts_->compress, packed_.get(), bytes, plain_.get(), bytes);
  // zstd reports an error when the result does not fit.
  return ZSTD_isError(made) || made >= bytes ? 0 : made;
}

bool Compression::decompress(std::size_t packed_bytes, std::size_t bytes) {
  return ZSTD_decompressDCtx(contexts_->decompress, plain_.get(), bytes, packed_.get(),
                             packed_bytes) == bytes;
}

Bytes Compression::memory_bytes() const {
  return static_cast<Bytes>(2 * block_ + sizeof(Contexts) + ZSTD_sizeof_CCtx(contexts_->compress) +
                            ZSTD_sizeof_DCtx(contexts_->decompress));
}

}  // namespace palimpsest
