#include "strategy/mpi/bucket_layout.h"

#include <algorithm>
#include <numeric>

#include "autodiff/parallel.h"

namespace palimpsest {

BucketLayout::BucketLayout(std::span<const ValueType> parameters,
                           std::span<const std::size_t> order, Bytes bucket_bytes)
    : slices_(parameters.size()) {
  constexpr auto line = static_cast<Bytes>(buffer_alignment);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    slices_[i].type = {parameters[i].shape, compute_dtype(parameters[i].dtype)};
  }
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (std::size_t turn = 0; turn < order.size(); ++turn) {
      if (slices_[order[turn]].type.dtype == dtype) {
        place(order[turn], turn, round_up(bucket_bytes, line));
      }
    }
  }
  sequence_.resize(buckets_.size());
  std::iota(sequence_.begin(), sequence_.end(), std::size_t{0});
  std::ranges::stable_sort(sequence_, {}, [&](std::size_t b) { return buckets_[b].turn; });
}

void BucketLayout::place(std::size_t parameter, std::size_t turn, Bytes bucket_bytes) {
  Slice& slice = slices_[parameter];
  const DType dtype = slice.type.dtype;
  const auto size = static_cast<Bytes>(size_of(dtype));
  // No two gradients share a cache line.
  Bytes left = round_up(slice.type.bytes(), static_cast<Bytes>(buffer_alignment));
  slice.offset = bytes_;
  slice.first_bucket = buckets_.size();
  while (left > 0) {
    const bool has_room = !buckets_.empty() && buckets_.back().dtype == dtype &&
                          buckets_.back().elements * size < bucket_bytes;
    if (!has_room) buckets_.push_back({dtype, bytes_, 0, 0, 0});
    Bucket& bucket = buckets_.back();
    if (bytes_ == slice.offset) slice.first_bucket = buckets_.size() - 1;
    const Bytes part = std::min(left, bucket_bytes - bucket.elements * size);
    bucket.elements += part / size;
    bucket.turn = turn;
    ++bucket.slices;
    bytes_ += part;
    left -= part;
  }
  slice.end_bucket = slice.type.bytes() > 0 ? buckets_.size() : slice.first_bucket;
}

Bytes BucketLayout::largest_bucket() const {
  Bytes largest = 0;
  for (const Bucket& bucket : buckets_) {
    largest = std::max(largest, bucket.elements * static_cast<Bytes>(size_of(bucket.dtype)));
  }
  return largest;
}

}  // namespace palimpsest
