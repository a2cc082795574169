#include "strategy/mpi/bucket_exchange.h"

#include <algorithm>

#include "autodiff/parallel.h"
#include "strategy/training/gradient_sums.h"

namespace palimpsest {
namespace {

MPI_Datatype mpi_type(DType dtype) { return dtype == DType::f64 ? MPI_DOUBLE : MPI_FLOAT; }

/// A tensor that does not own its storage.
Tensor view(std::byte* data, std::int64_t elements, DType dtype) {
  return Tensor(Buffer(std::shared_ptr<void>(), data), {elements}, dtype);
}

}  // namespace

BucketExchange::BucketExchange(RankLink& link, const BucketLayout& layout, SumOrder order)
    : link_(link),
      layout_(layout),
      order_(order),
      requests_(layout.buckets().size(), MPI_REQUEST_NULL) {
  const int ranks = link.size();
  const auto rank = static_cast<std::size_t>(link.rank());
  for (const BucketLayout::Bucket& bucket : layout.buckets()) {
    Parts& parts = parts_.emplace_back();
    for (int r = 0; r <= ranks; ++r) {
      parts.starts.push_back(static_cast<int>(bucket.elements * r / ranks));
      if (r > 0) parts.counts.push_back(parts.starts.back() - parts.starts.end()[-2]);
    }
    for (int r = 0; r < ranks; ++r) {
      parts.received_counts.push_back(parts.counts[rank]);
      parts.received_starts.push_back(parts.counts[rank] * r);
    }
    // The bytes of the largest part, so that all ranks take the same number of bytes.
    const Bytes bytes = divide_up(bucket.elements, ranks) * ranks * size_of(bucket.dtype);
    if (order == SumOrder::ranks) received_bytes_ = std::max(received_bytes_, bytes);
  }
  // A single rank has nothing to send.
  const Bytes enough = std::max(4 * layout.largest_bucket(), 1_MiB);
  if (ranks > 1) most_open_bytes_ = std::min(enough, layout.bytes());
}

Bytes BucketExchange::bytes() const {
  return order_ == SumOrder::ranks ? received_bytes_ : most_open_bytes_;
}

void BucketExchange::begin(std::byte* block, const RankWeights& weights) {
  if (received_ == nullptr) received_ = allocate_buffer(received_bytes_);
  block_ = block;
  weights_ = &weights;
  ready_.assign(layout_.buckets().size(), 0);
  missing_ = ready_.size();
  next_ = 0;
  open_ = 0;
  open_bytes_ = 0;
  failed_ = false;
  is_running_ = true;
  started_early_ = 0;
  ended_early_ = 0;
  overlapped_ = 0;
  under_way_.reset();
}

void BucketExchange::give(std::size_t bucket) {
  const std::lock_guard lock(mutex_);
  ready_[bucket] = 1;
  --missing_;
  advance(false);
}

void BucketExchange::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && open_ < next_) advance(false);
}

void BucketExchange::end_backward() {
  const std::lock_guard lock(mutex_);
  if (is_running_ && under_way_) overlapped_ += under_way_->seconds();
  is_running_ = false;
}

void BucketExchange::finish() {
  const std::lock_guard lock(mutex_);
  advance(true);
}

void BucketExchange::abandon() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  std::fill(ready_.begin(), ready_.end(), 1);
  advance(true);
}

/// Does what can be done now; with `wait`, everything.
void BucketExchange::advance(bool wait) {
  const std::span<const std::size_t> sequence = layout_.sequence();
  while (true) {
    if (is_receiving_) {
      if (!is_complete(receiving_, wait)) return;
      // If this throws, `abandon` does it again: other ranks wait for the part.
      add_parts(next_ - 1);
      is_receiving_ = false;
    }
    retire();
    if (next_ == sequence.size() || ready_[sequence[next_]] == 0) break;
    if (!has_room()) {
      if (!wait) return;
      is_complete(requests_[open_], true);
      continue;
    }
    if (open_ == next_) under_way_.emplace();
    if (is_running_ && missing_ > 0) ++started_early_;
    start(next_++);
  }
  if (!wait) return;
  check_mpi(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
  open_ = next_;
  open_bytes_ = 0;
  under_way_.reset();
}

/// Whether the next bucket can begin in addition to those in progress.
bool BucketExchange::has_room() const {
  return order_ == SumOrder::ranks || link_.size() == 1 ||
         open_bytes_ + bytes_of_turn(next_) <= most_open_bytes_;
}

Bytes BucketExchange::bytes_of_turn(std::size_t turn) const {
  const BucketLayout::Bucket& bucket = layout_.buckets()[layout_.sequence()[turn]];
  return bucket.elements * static_cast<Bytes>(size_of(bucket.dtype));
}

void BucketExchange::start(std::size_t turn) {
  const std::size_t bucket = layout_.sequence()[turn];
  const auto& [dtype, offset, elements, slices, last] = layout_.buckets()[bucket];
  std::byte* const data = block_ + offset;
  const MPI_Datatype type = mpi_type(dtype);
  open_bytes_ += bytes_of_turn(turn);
  if (order_ == SumOrder::any) {
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(elements), type, MPI_SUM,
                             link_.communicator(), &requests_[turn]),
              "MPI_Iallreduce");
    return;
  }
  const Parts& parts = parts_[bucket];
  check_mpi(MPI_Ialltoallv(data, parts.counts.data(), parts.starts.data(), type, received_.get(),
                           parts.received_counts.data(), parts.received_starts.data(), type,
                           link_.communicator(), &receiving_),
            "MPI_Ialltoallv");
  is_receiving_ = true;
}

/// Sums this rank's part of a bucket over all ranks, as an accumulator would, and sends it to all.
void BucketExchange::add_parts(std::size_t turn) {
  const std::size_t bucket = layout_.sequence()[turn];
  const auto& [dtype, offset, elements, slices, last] = layout_.buckets()[bucket];
  const Parts& parts = parts_[bucket];
  const auto rank = static_cast<std::size_t>(link_.rank());
  const Bytes size = size_of(dtype);
  if (const std::int64_t count = parts.counts[rank]; count > 0 && !failed_) {
    const Tensor sum = view(block_ + offset + parts.starts[rank] * size, count, dtype);
    begin_sum(sum, view(received_.get(), count, dtype));
    for (std::size_t r = 1; r < weights_->weights.size(); ++r) {
      std::byte* const part = received_.get() + parts.received_starts[r] * size;
      add_to_sum(sum, view(part, count, dtype), weights_->weights[r]);
    }
    divide(sum, weights_->divisor);
  }
  check_mpi(
      MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, block_ + offset, parts.counts.data(),
                      parts.starts.data(), mpi_type(dtype), link_.communicator(), &requests_[turn]),
      "MPI_Iallgatherv");
}

/// Counts buckets that have ended.
void BucketExchange::retire() {
  while (open_ < next_ && is_complete(requests_[open_], false)) {
    open_bytes_ -= bytes_of_turn(open_++);
    if (is_running_) ++ended_early_;
    if (open_ < next_) continue;
    if (is_running_) overlapped_ += under_way_->seconds();
    under_way_.reset();
  }
}

bool BucketExchange::is_complete(MPI_Request& request, bool wait) {
  if (wait) {
    check_mpi(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    return true;
  }
  int done = 0;
  check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace palimpsest
