#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "strategy/base/stopwatch.h"
#include "strategy/mpi/bucket_layout.h"
#include "strategy/mpi/rank_link.h"

namespace palimpsest {

/// The order in which gradients of ranks are added up.
enum class SumOrder : std::uint8_t {
  any,    ///< as MPI chooses, by `MPI_Iallreduce`
  ranks,  ///< by rank: each rank sums a part of the elements, and all ranks get all parts
};

/// The factor for the gradients of each rank, and the divisor of their sum.
struct RankWeights {
  std::vector<double> weights;
  double divisor = 1;
};

/// Adds buckets up over ranks; several may be in progress. With `SumOrder::any` the buckets in
/// progress have at most the bytes of four buckets, or 1 MiB if that is more. OpenMPI takes the
/// same number of bytes for them until they complete.
///
/// All ranks process buckets in one order, that of the layout. A bucket that is ready before its
/// turn waits. MPI makes progress only while it is called, so threads of the computation call it
/// between steps.
class BucketExchange {
 public:
  BucketExchange(RankLink& link, const BucketLayout& layout, SumOrder order);

  /// Bytes that the exchange or MPI takes, in addition to the block of gradients.
  Bytes bytes() const;

  /// Begins a step. The gradients are stored in `block`, according to the layout. `weights` must be
  /// set before the first bucket is ready. With `SumOrder::any` the gradients must already be
  /// multiplied and divided.
  void begin(std::byte* block, const RankWeights& weights);
  /// Call when all of this rank's gradients in the bucket are final.
  void give(std::size_t bucket);
  /// Makes progress, unless another thread is doing so.
  void progress();
  /// Call when the backward part has ended.
  void end_backward();
  /// Waits for all buckets, each of which has been given.
  void finish();
  /// Waits for all buckets in a step that failed. Buckets that were not given are sent as they are.
  /// The sums are of no use.
  void abandon();

  /// Buckets of the last step that began before all others had been given.
  int started_early() const { return started_early_; }
  /// Buckets that ended before `end_backward`.
  int ended_early() const { return ended_early_; }
  /// Seconds before `end_backward` in which some bucket was in progress.
  double overlapped_seconds() const { return overlapped_; }

 private:
  /// How the elements of a bucket are split over ranks that sum them, and what this rank receives.
  struct Parts {
    std::vector<int> counts;
    std::vector<int> starts;
    std::vector<int> received_counts;
    std::vector<int> received_starts;
  };

  void advance(bool wait);
  bool has_room() const;
  Bytes bytes_of_turn(std::size_t turn) const;
  void start(std::size_t turn);
  void add_parts(std::size_t turn);
  void retire();
  bool is_complete(MPI_Request& request, bool wait);

  RankLink& link_;
  const BucketLayout& layout_;
  SumOrder order_;
  std::vector<Parts> parts_;  // by bucket
  Bytes received_bytes_ = 0;
  Buffer received_;            // parts of one bucket, of every rank
  Bytes most_open_bytes_ = 0;  // of buckets in progress, for `SumOrder::any`

  std::mutex mutex_;
  std::byte* block_ = nullptr;
  const RankWeights* weights_ = nullptr;
  std::vector<char> ready_;            // by bucket
  std::size_t missing_ = 0;            // buckets that are not ready
  std::vector<MPI_Request> requests_;  // by turn: the request that completes a bucket
  MPI_Request receiving_ = MPI_REQUEST_NULL;
  bool is_receiving_ = false;  // parts of the bucket of the last turn
  std::size_t next_ = 0;       // turn of the first bucket that has not begun
  std::size_t open_ = 0;       // turn of the first bucket that has not ended
  Bytes open_bytes_ = 0;       // of buckets from `open_` to `next_`
  bool failed_ = false;
  bool is_running_ = false;
  int started_early_ = 0;
  int ended_early_ = 0;
  double overlapped_ = 0;
  std::optional<Stopwatch> under_way_;
};

}  // namespace palimpsest
