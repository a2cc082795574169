#include "strategy/mpi/stage_exchange.h"

#include <algorithm>
#include <limits>

#include "autodiff/parallel.h"
#include "autodiff/tensor.h"
#include "strategy/base/stopwatch.h"

namespace palimpsest {
namespace {

constexpr Bytes line = buffer_alignment;
constexpr Bytes most_lines = std::numeric_limits<int>::max();  // MPI counts in int

/// The number of blocks of lines in the MPI datatype.
std::size_t blocks_of(const StageMessage& message) {
  std::size_t blocks = 0;
  for (const StageMessage::Part& part : message.parts) {
    blocks += static_cast<std::size_t>(divide_up(part.bytes, line * most_lines));
  }
  return blocks;
}

Bytes bytes_of(const StageMessage& message) {
  Bytes bytes = 0;
  for (const StageMessage::Part& part : message.parts) bytes += part.bytes;
  return bytes;
}

}  // namespace

StageExchange::StageExchange(RankLink& link) : link_(link) {
  check_mpi(MPI_Type_contiguous(static_cast<int>(line), MPI_BYTE, &line_), "MPI_Type_contiguous");
  check_mpi(MPI_Type_commit(&line_), "MPI_Type_commit");
}

StageExchange::~StageExchange() { MPI_Type_free(&line_); }

void StageExchange::prepare(const PipelinePlan& plan, std::span<const MicroBatch> micro_batches) {
  plan_ = &plan;
  pieces_ = static_cast<PieceId>(plan.programs[0].size());
  program_of_.clear();
  for (const MicroBatch& batch : micro_batches) program_of_.push_back(batch.program);
  ended_.assign(pieces_, 0);
  incoming_.clear();
  outgoing_.clear();
  for (std::size_t program = 0; program < plan.programs.size(); ++program) {
    for (const PlacedPiece& placed : plan.programs[program]) {
      for (const StageMessage& message : placed.received) add_to(incoming_, message, program);
      for (const StageMessage& message : placed.sent) add_to(outgoing_, message, program);
    }
  }
}

void StageExchange::add_to(std::vector<Channel>& channels, const StageMessage& message,
                           std::size_t program) {
  auto channel = std::ranges::find_if(channels, [&](const Channel& each) {
    return each.from == message.from && each.to == message.to;
  });
  if (channel == channels.end()) {
    const std::vector<MPI_Request> none_yet(program_of_.size(), MPI_REQUEST_NULL);
    channels.push_back({message.from, message.to, {}, none_yet, std::numeric_limits<int>::max()});
    channel = std::prev(channels.end());
    channel->messages.resize(plan_->programs.size());
  }
  channel->messages[program] = &message;
  for (const StageMessage::Part& part : message.parts) {
    channel->places = std::min(channel->places, ring_of(part).places);
  }
  lengths_.reserve(blocks_of(message));
  places_.reserve(blocks_of(message));
}

void StageExchange::begin(std::byte* block) {
  block_ = block;
  is_cut_off_ = false;
  sent_ = 0;
  sent_bytes_ = 0;
  waiting_ = 0;
  ask();
}

/// Whether the places where the message of a micro-batch goes are no longer read.
bool StageExchange::has_room(const StageMessage& message, int micro_batch) const {
  return std::ranges::all_of(message.parts, [&](const StageMessage::Part& part) {
    const Ring& ring = ring_of(part);
    return ended_[ring.last] > micro_batch - ring.places;
  });
}

/// Posts receives for all messages that there is room for.
void StageExchange::ask() {
  for (Channel& channel : incoming_) {
    for (; channel.begun < std::ssize(program_of_); ++channel.begun) {
      const StageMessage* const message = message_of(channel, channel.begun);
      if (message == nullptr) continue;
      if (!has_room(*message, channel.begun)) break;
      MPI_Datatype type = type_of(*message, channel.begun);
      check_mpi(MPI_Irecv(block_, 1, type, stage_of(channel.from), tag_of(channel),
                          link_.communicator(), &request_of(channel, channel.begun)),
                "MPI_Irecv");
      MPI_Type_free(&type);  // takes effect once it has been received
    }
  }
}

/// The MPI datatype of the places of a micro-batch's message in the block.
MPI_Datatype StageExchange::type_of(const StageMessage& message, int micro_batch) {
  lengths_.clear();
  places_.clear();
  for (const StageMessage::Part& part : message.parts) {
    Bytes at = ring_of(part).place_of(micro_batch) + part.place.offset;
    for (Bytes left = part.bytes / line; left > 0; left -= lengths_.back()) {
      lengths_.push_back(static_cast<int>(std::min(left, most_lines)));
      places_.push_back(at);
      at += lengths_.back() * line;
    }
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_create_hindexed(static_cast<int>(lengths_.size()), lengths_.data(),
                                     places_.data(), line_, &type),
            "MPI_Type_create_hindexed");
  check_mpi(MPI_Type_commit(&type), "MPI_Type_commit");
  return type;
}

bool StageExchange::receive(const PlacedPiece& placed, int micro_batch) {
  const Stopwatch observer;
  const PieceId piece = id_of(placed);
  for (Channel& channel : incoming_) {
    if (channel.to == piece && !take(channel, micro_batch)) is_cut_off_ = true;
  }
  for (Channel& channel : outgoing_) {
    if (channel.from != piece) continue;
    for (; channel.ended <= micro_batch - channel.places; ++channel.ended) {
      check_mpi(MPI_Wait(&request_of(channel, channel.ended), MPI_STATUS_IGNORE), "MPI_Wait");
    }
  }
  waiting_ += observer.seconds();
  return !is_cut_off_;
}

/// Waits for the message of a micro-batch, if there is one. False where its sender has failed.
bool StageExchange::take(Channel& channel, int micro_batch) {
  const StageMessage* const message = message_of(channel, micro_batch);
  if (message == nullptr) return true;
  internal_check(channel.begun > micro_batch, "a stage waits for a message it did not ask for");
  MPI_Status status;
  check_mpi(MPI_Wait(&request_of(channel, micro_batch), &status), "MPI_Wait");
  channel.ended = micro_batch + 1;
  int count = 0;  // or undefined, where int cannot hold it
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
  return count != 0 || bytes_of(*message) == 0;
}

void StageExchange::send(const PlacedPiece& placed, int micro_batch, bool failed) {
  const PieceId piece = id_of(placed);
  ++ended_[piece];
  ask();
  for (Channel& channel : outgoing_) {
    if (channel.from != piece) continue;
    const StageMessage* const message = message_of(channel, micro_batch);
    if (message == nullptr) continue;
    channel.begun = micro_batch + 1;
    MPI_Request& request = request_of(channel, micro_batch);
    const int to = stage_of(channel.to);
    if (failed) {
      check_mpi(
          MPI_Isend(nullptr, 0, MPI_BYTE, to, tag_of(channel), link_.communicator(), &request),
          "MPI_Isend");
      continue;
    }
    MPI_Datatype type = type_of(*message, micro_batch);
    check_mpi(MPI_Isend(block_, 1, type, to, tag_of(channel), link_.communicator(), &request),
              "MPI_Isend");
    MPI_Type_free(&type);  // takes effect once it has been sent
    ++sent_;
    sent_bytes_ += bytes_of(*message);
  }
}

void StageExchange::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (std::vector<Channel>* const channels : {&outgoing_, &incoming_}) {
    for (Channel& channel : *channels) {
      for (int m = channel.ended; m < channel.begun; ++m) {
        // Asking about an incomplete request makes MPI progress all of them.
        int done = 0;
        check_mpi(MPI_Request_get_status(request_of(channel, m), &done, MPI_STATUS_IGNORE),
                  "MPI_Request_get_status");
        if (done == 0) return;
      }
    }
  }
}

void StageExchange::end() {
  const Stopwatch observer;
  for (Channel& channel : outgoing_) {
    for (MPI_Request& request : channel.requests) {
      check_mpi(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
  }
  waiting_ += observer.seconds();
}

}  // namespace palimpsest
