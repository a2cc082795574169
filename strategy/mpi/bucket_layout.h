#pragma once

#include <span>
#include <vector>

#include "autodiff/tensor.h"

namespace palimpsest {

/// Where gradients are stored that are added up over ranks: contiguously in one block, grouped by
/// dtype. The block is cut into buckets, which need not coincide with the bounds of gradients. A
/// bucket can be reduced when all gradients in it are final.
class BucketLayout {
 public:
  struct Slice {
    ValueType type;  ///< of the sum: f64 for f64 and f32 otherwise
    Bytes offset = 0;
    std::size_t first_bucket = 0;
    std::size_t end_bucket = 0;  ///< one past the last; `first_bucket` for a gradient without
                                 ///< elements
  };
  struct Bucket {
    DType dtype;
    Bytes offset;
    std::int64_t elements;
    int slices;        ///< number of slices in it
    std::size_t turn;  ///< index in `order` of the last of them
  };

  BucketLayout() = default;
  /// `order` contains each parameter once, in the order in which gradients are expected to be
  /// final. Buckets have at most `bucket_bytes`, rounded up to whole cache lines.
  BucketLayout(std::span<const ValueType> parameters, std::span<const std::size_t> order,
               Bytes bucket_bytes);

  /// By parameter.
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
