#pragma once

#include <algorithm>
#include <mutex>
#include <span>
#include <vector>

#include "strategy/mpi/rank_link.h"
#include "strategy/parallel/pipeline/micro_batch.h"
#include "strategy/parallel/pipeline/pipeline_plan.h"
#include "strategy/parallel/pipeline/stage_messages.h"

namespace palimpsest {

/// Messages between stages that are ranks; stage s is rank s. One message carries everything that a
/// piece makes for the pieces of another rank that first read it in one piece, directly from ring
/// to ring. An empty message says that its sender has no more values to send, because of a failure.
///
/// Receives are posted as early as there is room for them. MPI makes progress only while it is
/// called, so the threads that run pieces call it between steps.
class StageExchange final : public StageMessages {
 public:
  explicit StageExchange(RankLink& link);
  ~StageExchange() override;
  StageExchange(const StageExchange&) = delete;
  StageExchange& operator=(const StageExchange&) = delete;

  /// Call before a run. Allocates the memory that the run needs, except that of MPI itself. The
  /// plan must outlive it.
  void prepare(const PipelinePlan& plan, std::span<const MicroBatch> micro_batches);
  void begin(std::byte* block) override;
  bool receive(const PlacedPiece& placed, int micro_batch) override;
  void send(const PlacedPiece& placed, int micro_batch, bool failed) override;
  void progress() override;
  void end() override;

  /// After a run: whether a stage that this one receives from has failed.
  bool is_cut_off() const { return is_cut_off_; }
  /// Messages sent, and their bytes.
  int sent() const { return sent_; }
  Bytes sent_bytes() const { return sent_bytes_; }
  /// Seconds in which this stage computed nothing because it waited for messages.
  double waiting_seconds() const { return waiting_; }

 private:
  /// All messages from one piece to another, one of which is on this rank.
  struct Channel {
    PieceId from;
    PieceId to;
    std::vector<const StageMessage*> messages;  // by program; null where there is none
    std::vector<MPI_Request> requests;          // by micro-batch
    int places;     // the message of the micro-batch this much later overwrites it
    int begun = 0;  // micro-batches whose messages were posted
    int ended = 0;  // micro-batches whose messages were waited for
  };

  int stage_of(PieceId piece) const {
    return static_cast<int>(std::min(piece, pieces_ - 1 - piece));
  }
  PieceId id_of(const PlacedPiece& placed) const {
    const auto stage = static_cast<PieceId>(placed.piece.stage);
    return placed.piece.is_backward ? pieces_ - 1 - stage : stage;
  }
  int tag_of(const Channel& channel) const {
    return static_cast<int>(channel.from * pieces_ + channel.to);
  }
  static MPI_Request& request_of(Channel& channel, int micro_batch) {
    return channel.requests[static_cast<std::size_t>(micro_batch)];
  }
  const Ring& ring_of(const StageMessage::Part& part) const {
    return plan_->layout.rings[part.place.ring];
  }
  const StageMessage* message_of(const Channel& channel, int micro_batch) const {
    return channel.messages[program_of_[static_cast<std::size_t>(micro_batch)]];
  }
  void add_to(std::vector<Channel>& channels, const StageMessage& message, std::size_t program);
  bool has_room(const StageMessage& message, int micro_batch) const;
  void ask();
  MPI_Datatype type_of(const StageMessage& message, int micro_batch);
  bool take(Channel& channel, int micro_batch);

  RankLink& link_;
  MPI_Datatype line_ = MPI_DATATYPE_NULL;  // a cache line
  const PipelinePlan* plan_ = nullptr;
  std::vector<std::size_t> program_of_;  // by micro-batch
  std::byte* block_ = nullptr;
  PieceId pieces_ = 0;
  std::vector<int> ended_;  // by piece: micro-batches that it has run
  std::vector<Channel> incoming_;
  std::vector<Channel> outgoing_;
  std::vector<int> lengths_;      // of a message's parts, in lines
  std::vector<MPI_Aint> places_;  // of the parts
  bool is_cut_off_ = false;
  std::mutex mutex_;
  int sent_ = 0;
  Bytes sent_bytes_ = 0;
  double waiting_ = 0;
};

}  // namespace palimpsest
