#include "strategy/mpi/bucket_layout.h"

#include <algorithm>
#include <random>

#include "tests/catch.h"
//
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

namespace palimpsest::bucket_layout_test {
namespace {

Bytes bytes_of(const BucketLayout::Bucket& bucket) {
  return bucket.elements * static_cast<Bytes>(size_of(bucket.dtype));
}

TEST_CASE("buckets cover a block in which every gradient has a place of its own") {
  rc::prop("for any parameters, order and bucket size", [] {
    std::vector<ValueType> parameters;
    std::vector<std::size_t> order;
    for (int count = *rc::gen::inRange(0, 12); count > 0; --count) {
      const DType dtype = *rc::gen::element(DType::f64, DType::f32, DType::bf16, DType::f16);
      parameters.push_back({Shape{*rc::gen::inRange<std::int64_t>(0, 300)}, dtype});
      order.push_back(order.size());
    }
    std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
    std::ranges::shuffle(order, random);
    const auto bucket_bytes = *rc::gen::inRange<Bytes>(64, 2000);
    const BucketLayout layout(parameters, order, bucket_bytes);

    Bytes end = 0;
    for (const BucketLayout::Bucket& bucket : layout.buckets()) {
      RC_ASSERT(bucket.offset == end);
      RC_ASSERT(bytes_of(bucket) > 0);
      RC_ASSERT(bytes_of(bucket) < bucket_bytes + 64);
      RC_ASSERT(bytes_of(bucket) <= layout.largest_bucket());
      end += bytes_of(bucket);
    }
    RC_ASSERT(end == layout.bytes());

    std::vector<int> slices(layout.buckets().size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const BucketLayout::Slice& slice = layout.slices()[i];
      RC_ASSERT(slice.type.shape == parameters[i].shape);
      RC_ASSERT(slice.type.dtype == compute_dtype(parameters[i].dtype));
      RC_ASSERT(slice.offset % 64 == 0);
      for (std::size_t b = 0; b < layout.buckets().size(); ++b) {
        const BucketLayout::Bucket& bucket = layout.buckets()[b];
        const bool overlaps = slice.type.bytes() > 0 &&
                              slice.offset < bucket.offset + bytes_of(bucket) &&
                              bucket.offset < slice.offset + slice.type.bytes();
        RC_ASSERT(overlaps == (slice.first_bucket <= b && b < slice.end_bucket));
        if (overlaps) RC_ASSERT(bucket.dtype == slice.type.dtype);
        slices[b] += overlaps ? 1 : 0;
      }
      for (std::size_t j = 0; j < i; ++j) {
        const BucketLayout::Slice& other = layout.slices()[j];
        RC_ASSERT(slice.offset + slice.type.bytes() <= other.offset ||
                  other.offset + other.type.bytes() <= slice.offset);
      }
    }
    std::size_t turn = 0;
    std::vector<std::size_t> sequence(layout.sequence().begin(), layout.sequence().end());
    for (const std::size_t b : sequence) {
      const BucketLayout::Bucket& bucket = layout.buckets()[b];
      RC_ASSERT(bucket.slices == slices[b]);
      RC_ASSERT(bucket.turn >= turn);
      turn = bucket.turn;
      const BucketLayout::Slice& last = layout.slices()[order[turn]];
      RC_ASSERT(last.first_bucket <= b && b < last.end_bucket);
    }
    std::ranges::sort(sequence);
    for (std::size_t b = 0; b < sequence.size(); ++b) RC_ASSERT(sequence[b] == b);
  });
}

}  // namespace
}  // namespace palimpsest::bucket_layout_test
