#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"
#include "checkpoint/reverse/reverse_options.h"

namespace palimpsest {

/// Encodes the bytes of states. Not thread-safe.
class SnapshotCodec {
 public:
  virtual ~SnapshotCodec() = default;
  /// The most bytes that a state of `bytes` can take, and how many it takes if `is_fixed`.
  virtual Bytes most(Bytes bytes) const = 0;
  /// Whether the number of bytes depends on that of the state only.
  virtual bool is_fixed() const = 0;
  virtual bool is_exact() const = 0;
  /// Bytes of memory that it takes, without the buffers of its callers.
  virtual Bytes memory_bytes() const = 0;
  /// Encodes a state into `to`, which has room for `most`. Returns the number of bytes used.
  virtual Bytes encode(std::span<const std::byte> state, std::span<std::byte> to) = 0;
  /// The bytes of the state that was encoded.
  virtual Bytes decoded_bytes(std::span<const std::byte> from) const = 0;
  /// Decodes into `state`. Returns false if that is not the result of encoding such a state.
  virtual bool decode(std::span<const std::byte> from, std::span<std::byte> state) = 0;
};

/// The codec that the options name; null for none. The numbers of a state follow `header` bytes and
/// have the type `dtype`. Throws `ArgumentError` for states that it cannot encode, and if this
/// library was built without zfp.
std::unique_ptr<SnapshotCodec> make_snapshot_codec(const ReverseOptions& options, DType dtype,
                                                   Bytes header, const Where& where);

/// Parts of `make_snapshot_codec`.
std::unique_ptr<SnapshotCodec> make_zfp_codec(const ReverseOptions& options, DType dtype,
                                              Bytes header, const Where& where);
[[noreturn]] void reject_reverse_codec(const std::string& problem, const Where& where);

}  // namespace palimpsest
