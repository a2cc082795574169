#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "strategy/base/stopwatch.h"
#include "strategy/mpi/bucket_layout.h"
#include "strategy/mpi/rank_link.h"

namespace palimpsest {

/// How gradients of ranks are added up.
enum class SumOrder : std::uint8_t {
  any,    ///< as MPI does it, by `MPI_Iallreduce`
  ranks,  ///< rank by rank: each rank makes a part of the sums, and all get all parts
};

/// What the gradients of each rank are multiplied with, and their sum divided by.
struct RankWeights {
  std::vector<double> weights;
  double divisor = 1;
};

/// Adds buckets up over ranks, several of them under way: in any order of sums so many bytes, four
/// buckets or 1 MiB if that is more, since OpenMPI takes as many beside them until they end.
///
/// Ranks start what they do with buckets in one order, that of the layout: a bucket that is ready
/// before its turn waits. MPI goes on only while it is called, here by threads that come by.
class BucketExchange {
 public:
  BucketExchange(RankLink& link, const BucketLayout& layout, SumOrder order);

  /// That it, or MPI, takes beside the block of gradients.
  Bytes bytes() const;

  /// Begins a step whose gradients lie in `block`, laid out, with the weights of the step in
  /// `weights` before the first bucket is ready. In any order they are multiplied and divided
  /// already.
  void begin(std::byte* block, const RankWeights& weights);
  /// This rank's gradients are all in the bucket.
  void give(std::size_t bucket);
  /// Goes on with what is under way, unless another thread does.
  void progress();
  /// Nothing is computed beside the exchange any more.
  void end_backward();
  /// Waits for all buckets, of which each has been given.
  void finish();
  /// Waits for all buckets in a step that failed: those not given are sent as they are, and no sum
  /// is of use.
  void abandon();

  /// Buckets of the last step that began while others had not been given.
  int started_early() const { return started_early_; }
  /// Those that ended before `end_backward`.
  int ended_early() const { return ended_early_; }
  /// Seconds before that in which some bucket was under way.
  double overlapped_seconds() const { return overlapped_; }

 private:
  /// Elements of a bucket that each rank makes the sums of, and those that this one receives.
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
  Bytes most_open_bytes_ = 0;  // of buckets under way, in any order

  std::mutex mutex_;
  std::byte* block_ = nullptr;
  const RankWeights* weights_ = nullptr;
  std::vector<char> ready_;            // by bucket
  std::size_t missing_ = 0;            // buckets that are not
  std::vector<MPI_Request> requests_;  // by turn: what completes a bucket
  MPI_Request receiving_ = MPI_REQUEST_NULL;
  bool is_receiving_ = false;  // parts of the bucket whose turn was last
  std::size_t next_ = 0;       // turn: the first that has not begun
  std::size_t open_ = 0;       // turn: the first that has not ended
  Bytes open_bytes_ = 0;       // of buckets from there to `next_`
  bool failed_ = false;
  bool is_running_ = false;
  int started_early_ = 0;
  int ended_early_ = 0;
  double overlapped_ = 0;
  std::optional<Stopwatch> under_way_;
};

}  // namespace palimpsest
