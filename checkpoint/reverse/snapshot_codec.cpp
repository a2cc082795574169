#include "checkpoint/reverse/snapshot_codec.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/stores/codec.h"
#include "checkpoint/stores/compression.h"
#include "checkpoint/stores/shuffle.h"

namespace palimpsest {
namespace {

std::size_t count_of(Bytes bytes) { return static_cast<std::size_t>(bytes); }

/// Blocks of zstd, each after its size. A block that does not shrink is stored as it is.
class ZstdCodec final : public SnapshotCodec {
 public:
  explicit ZstdCodec(DType dtype)
      : width_(static_cast<std::size_t>(size_of(dtype))), compression_(block) {
    // zstd makes its tables when it is first used.
    compression_.decompress(compression_.compress(count_of(block)), count_of(block));
  }

  Bytes most(Bytes bytes) const override {
    return bytes + Bytes{sizeof(Size)} * (2 + bytes / block) + Bytes{sizeof bytes};
  }
  bool is_fixed() const override { return false; }
  bool is_exact() const override { return true; }
  Bytes memory_bytes() const override { return compression_.memory_bytes(); }

  Bytes encode(std::span<const std::byte> state, std::span<std::byte> to) override {
    std::byte* next = to.data();
    const Bytes bytes = std::ssize(state);
    put(next, &bytes, sizeof bytes);
    for (Bytes first = 0; first < bytes; first += block) {
      const auto part = state.subspan(count_of(first), count_of(std::min(block, bytes - first)));
      shuffle(part, width_, compression_.plain().first(part.size()));
      const std::size_t packed = compression_.compress(part.size());
      const auto size = static_cast<Size>(packed > 0 ? packed : part.size());
      put(next, &size, sizeof size);
      put(next, packed > 0 ? compression_.packed().data() : part.data(), size);
    }
    return next - to.data();
  }

  Bytes decoded_bytes(std::span<const std::byte> from) const override {
    Bytes bytes = 0;
    if (from.size() >= sizeof bytes) std::memcpy(&bytes, from.data(), sizeof bytes);
    return bytes;
  }

  bool decode(std::span<const std::byte> from, std::span<std::byte> state) override {
    from = from.subspan(sizeof(Bytes));
    for (Bytes first = 0; first < std::ssize(state); first += block) {
      const auto part =
          state.subspan(count_of(first), count_of(std::min(block, std::ssize(state) - first)));
      Size size = 0;
      if (from.size() < sizeof size) return false;
      std::memcpy(&size, from.data(), sizeof size);
      from = from.subspan(sizeof size);
      if (size > from.size() || size > part.size()) return false;
      if (size == part.size()) {
        std::copy_n(from.begin(), size, part.begin());
      } else {
        std::copy_n(from.begin(), size, compression_.packed().begin());
        if (!compression_.decompress(size, part.size())) return false;
        unshuffle(compression_.plain().first(part.size()), width_, part);
      }
      from = from.subspan(size);
    }
    return from.empty();
  }

 private:
  using Size = std::uint32_t;
  static constexpr Bytes block = 256_KiB;

  static void put(std::byte*& next, const void* from, std::size_t bytes) {
    std::memcpy(next, from, bytes);
    next += bytes;
  }

  std::size_t width_;
  Compression compression_;
};

/// Half the bits of each number.
class HalfCodec final : public SnapshotCodec {
 public:
  HalfCodec(DType dtype, Bytes header, Where where)
      : dtype_(dtype), header_(header), where_(where) {}

  Bytes most(Bytes bytes) const override {
    return header_ + stored_bytes(bytes - header_, dtype_, Codec::half);
  }
  bool is_fixed() const override { return true; }
  bool is_exact() const override { return false; }
  Bytes memory_bytes() const override { return 0; }
  Bytes encode(std::span<const std::byte> state, std::span<std::byte> to) override {
    const std::size_t header = count_of(header_);
    const auto bytes = count_of(most(std::ssize(state)));
    std::copy_n(state.begin(), header, to.begin());
    try {
      palimpsest::encode(state.subspan(header), dtype_, Codec::half,
                         to.first(bytes).subspan(header));
    } catch (const ArgumentError&) {
      reject_reverse_codec(
          "a number of a state is too large for the half of its bits; use ReverseCodec::none or "
          "zstd",
          where_);
    }
    return static_cast<Bytes>(bytes);
  }
  Bytes decoded_bytes(std::span<const std::byte> from) const override {
    return header_ + 2 * (std::ssize(from) - header_);
  }
  bool decode(std::span<const std::byte> from, std::span<std::byte> state) override {
    const std::size_t header = count_of(header_);
    std::copy_n(from.begin(), header, state.begin());
    palimpsest::decode(from.subspan(header), dtype_, Codec::half, state.subspan(header));
    return true;
  }

 private:
  DType dtype_;
  Bytes header_;
  Where where_;
};

}  // namespace

void reject_reverse_codec(const std::string& problem, const Where& where) {
  throw ArgumentError("reverse", problem, where);
}

std::unique_ptr<SnapshotCodec> make_snapshot_codec(const ReverseOptions& options, DType dtype,
                                                   Bytes header, const Where& where) {
  const bool has_numbers = dtype == DType::f64 || dtype == DType::f32;
  switch (options.codec) {
    case ReverseCodec::none:
      return nullptr;
    case ReverseCodec::zstd:
      return std::make_unique<ZstdCodec>(dtype);
    case ReverseCodec::half:
      if (!has_numbers) {
        reject_reverse_codec(
            "ReverseCodec::half needs states that consist of double or of float only; use "
            "ReverseCodec::zstd",
            where);
      }
      return std::make_unique<HalfCodec>(dtype, header, where);
    case ReverseCodec::zfp:
      if (!has_numbers) {
        reject_reverse_codec(
            "ReverseCodec::zfp needs states that consist of double or of float only; use "
            "ReverseCodec::zstd",
            where);
      }
      return make_zfp_codec(options, dtype, header, where);
  }
  throw InternalError("an unknown codec of states");
}

}  // namespace palimpsest
