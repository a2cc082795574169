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

/// Messages between stages that are ranks, stage s being rank s: one for all that a piece makes for
/// those of another rank that first read it in one piece, straight from ring to ring. A message
/// without bytes says that its sender has nothing to send any more. Messages are asked for as early
/// as there is room for them, and MPI goes on with them while it is called: between the steps of
/// pieces, by whoever comes by.
class StageExchange final : public StageMessages {
 public:
  explicit StageExchange(RankLink& link);
  ~StageExchange() override;
  StageExchange(const StageExchange&) = delete;
  StageExchange& operator=(const StageExchange&) = delete;

  /// Before a run: takes the memory that it needs, but for that of MPI itself. The plan outlives
  /// it.
  void prepare(const PipelinePlan& plan, std::span<const MicroBatch> micro_batches);
  void begin(std::byte* block) override;
  bool receive(const PlacedPiece& placed, int micro_batch) override;
  void send(const PlacedPiece& placed, int micro_batch, bool failed) override;
  void progress() override;
  void end() override;

  /// Of the last run: whether a stage failed that something here comes from.
  bool is_cut_off() const { return is_cut_off_; }
  /// Messages sent, and bytes in them.
  int sent() const { return sent_; }
  Bytes sent_bytes() const { return sent_bytes_; }
  /// Seconds in which nothing was computed here since a message had not come, or not been taken.
  double waiting_seconds() const { return waiting_; }

 private:
  /// All messages from one piece to another, one of them here.
  struct Channel {
    PieceId from;
    PieceId to;
    std::vector<const StageMessage*> messages;  // by program; null where there is none
    std::vector<MPI_Request> requests;          // by micro-batch
    int places;     // a micro-batch this much later writes over what is sent
    int begun = 0;  // micro-batches that MPI has been asked for
    int ended = 0;  // that have been waited for
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
  MPI_Datatype line_ = MPI_DATATYPE_NULL;  // of a cache line
  const PipelinePlan* plan_ = nullptr;
  std::vector<std::size_t> program_of_;  // by micro-batch
  std::byte* block_ = nullptr;
  PieceId pieces_ = 0;
  std::vector<int> ended_;  // by piece: micro-batches that it has run for
  std::vector<Channel> incoming_;
  std::vector<Channel> outgoing_;
  std::vector<int> lengths_;      // of a message's parts, in lines
  std::vector<MPI_Aint> places_;  // likewise
  bool is_cut_off_ = false;
  std::mutex mutex_;
  int sent_ = 0;
  Bytes sent_bytes_ = 0;
  double waiting_ = 0;
};

}  // namespace palimpsest
