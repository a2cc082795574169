#pragma once

#include <span>
#include <vector>

#include "autodiff/tensor.h"

namespace palimpsest {

/// Where gradients lie that are added up over ranks: one behind the other in a block, those of one
/// dtype together. The block is cut into buckets, without regard to where gradients end; a bucket
/// can be reduced when all gradients that lie in it are there.
class BucketLayout {
 public:
  struct Slice {
    ValueType type;  ///< of the sum: f64 for f64 and f32 otherwise
    Bytes offset = 0;
    std::size_t first_bucket = 0;
    std::size_t end_bucket = 0;  ///< one behind its last; its first for a gradient of no elements
  };
  struct Bucket {
    DType dtype;
    Bytes offset;
    std::int64_t elements;
    int slices;        ///< that lie in it
    std::size_t turn;  ///< place in `order` of the last of them
  };

  BucketLayout() = default;
  /// `order` names each parameter once, in the order in which gradients are expected to be there.
  /// Buckets take `bucket_bytes`, rounded up to whole cache lines, or less.
  BucketLayout(std::span<const ValueType> parameters, std::span<const std::size_t> order,
               Bytes bucket_bytes);

  /// Of parameters.
  std::span<const Slice> slices() const { return slices_; }
  std::span<const Bucket> buckets() const { return buckets_; }
  /// Each bucket once, in the order in which they are expected to be complete.
  std::span<const std::size_t> sequence() const { return sequence_; }
  Bytes bytes() const { return bytes_; }
  Bytes largest_bucket() const;

 private:
  void place(std::size_t parameter, std::size_t turn, Bytes bucket_bytes);

  std::vector<Slice> slices_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> sequence_;
  Bytes bytes_ = 0;
};

}  // namespace palimpsest
