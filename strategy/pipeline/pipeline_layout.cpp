#include "strategy/pipeline/pipeline_layout.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "autodiff/execute.h"

namespace palimpsest {
namespace {

class Layouter {
 public:
  Layouter(const LayoutRequest& request, std::span<std::vector<PlacedPiece>> programs)
      : request_(request), programs_(programs), pieces_(static_cast<PieceId>(programs[0].size())) {}

  PipelineLayout lay_out() {
    find_taking();
    for (std::vector<PlacedPiece>& pieces : programs_) place(pieces);
    for (Ring& ring : layout_.rings) {
      ring.begin = layout_.bytes;
      layout_.bytes += ring.places * ring.bytes;
    }
    return std::move(layout_);
  }

 private:
  using Use = Piece::Result::Use;
  using Offsets = std::map<std::size_t, Bytes>;  // by ring: bytes used of a place

  int stage_of(PieceId piece) const {
    return static_cast<int>(std::min(piece, pieces_ - 1 - piece));
  }
  bool is_own(PieceId piece) const { return !request_.stage || stage_of(piece) == *request_.stage; }

  /// Finds the piece after which a parameter's gradient is added up: the last that makes it in
  /// some program. And the stages that have what is wanted in the end.
  void find_taking() {
    for (const std::vector<PlacedPiece>& pieces : programs_) {
      for (PieceId piece = 0; piece < pieces_; ++piece) {
        for (const Piece::Result& result : pieces[piece].piece.results) {
          if (result.use == Use::outcome) layout_.outcome_stages.push_back(stage_of(piece));
          if (result.use != Use::gradient) continue;
          if (taking_.size() <= result.parameter) taking_.resize(result.parameter + 1);
          taking_[result.parameter] = std::max(taking_[result.parameter], piece);
        }
      }
    }
    for (const PieceId piece : taking_) layout_.gradient_stages.push_back(stage_of(piece));
  }

  void place(std::vector<PlacedPiece>& pieces) {
    std::map<ValueId, std::vector<PieceId>> readers;
    for (PieceId piece = 0; piece < pieces_; ++piece) {
      for (const ValueId value : pieces[piece].piece.arguments) readers[value].push_back(piece);
    }
    std::map<ValueId, RingPlace> places;
    Offsets used;
    for (PieceId piece = 0; piece < pieces_; ++piece) {
      PlacedPiece& placed = pieces[piece];
      if (is_own(piece)) {
        for (const ValueId value : placed.piece.arguments) {
          placed.arguments.push_back(places.at(value));
        }
      }
      for (std::size_t i = 0; i < placed.piece.results.size(); ++i) {
        const Piece::Result& result = placed.piece.results[i];
        const Bytes bytes = aligned(placed.piece.tape->bytes(placed.piece.wanted.results[i]));
        RingPlace at;
        if (result.use == Use::other_pieces) {
          at = hand_on(pieces, piece, readers.at(result.value), bytes, used);
          places.emplace(result.value, at);
        } else if (result.use == Use::gradient && request_.sums_gradients) {
          const PieceId taking = taking_[result.parameter];
          at = hand_on(pieces, piece, {&taking, 1}, bytes, used);
          if (is_own(taking)) pieces[taking].taken.push_back({result.parameter, at});
        }
        placed.results.push_back(at);
      }
    }
  }

  /// Places what piece `from` makes for `readers`, in order, wherever these run.
  RingPlace hand_on(std::vector<PlacedPiece>& pieces, PieceId from,
                    std::span<const PieceId> readers, Bytes bytes, Offsets& used) {
    std::vector<PieceId> own;
    std::vector<PieceId> first_elsewhere;
    for (const PieceId reader : readers) {
      const auto is_same_stage = [&](PieceId other) { return stage_of(other) == stage_of(reader); };
      if (is_own(reader)) {
        own.push_back(reader);
      } else if (std::ranges::none_of(first_elsewhere, is_same_stage)) {
        first_elsewhere.push_back(reader);
      }
    }
    const PipelineOrder& order = request_.order;
    const int ahead = request_.receives_ahead ? 1 : 0;
    if (!is_own(from)) {
      if (own.empty()) return {};
      const int places = order.places(own.front(), own.back()) + ahead;
      const RingPlace at = take({own.front(), own.back(), at_most_all(places), true}, bytes, used);
      add_part(pieces[own.front()].received, {from, own.front()}, {at, bytes});
      return at;
    }
    const PieceId last = own.empty() ? from : own.back();
    int places = order.places(from, last);
    for (const PieceId reader : first_elsewhere) {
      // So many that nobody waits for ever, though nothing be buffered: if piece p of micro-batch m
      // ran at the time p + 2m, each task would come after those of its stage before it, after
      // those that make what it reads, and after that by which a reader has room for what its place
      // held before, at the latest the one in front of reading it.
      const int sent = static_cast<int>(reader - from + 1) / 2;
      places = std::max(places, at_most_all(sent + ahead));
    }
    const RingPlace at = take({from, last, places, false}, bytes, used);
    for (const PieceId reader : first_elsewhere) {
      add_part(pieces[from].sent, {from, reader}, {at, bytes});
    }
    return at;
  }

  int at_most_all(int places) const { return std::min(places, request_.order.micro_batches()); }

  RingPlace take(const Ring& like, Bytes bytes, Offsets& used) {
    const std::tuple key{like.first, like.last, like.places, like.is_received};
    const auto [found, is_new] = ring_of_.try_emplace(key, layout_.rings.size());
    const std::size_t ring = found->second;
    if (is_new) layout_.rings.push_back(like);
    const Bytes offset = used[ring];
    used[ring] += bytes;
    layout_.rings[ring].bytes = std::max(layout_.rings[ring].bytes, used[ring]);
    return {ring, offset};
  }

  static void add_part(std::vector<StageMessage>& messages, const StageMessage& like,
                       const StageMessage::Part& part) {
    auto message = std::ranges::find_if(messages, [&](const StageMessage& each) {
      return each.from == like.from && each.to == like.to;
    });
    if (message == messages.end()) message = messages.insert(messages.end(), like);
    message->parts.push_back(part);
  }

  const LayoutRequest& request_;
  std::span<std::vector<PlacedPiece>> programs_;
  PieceId pieces_;
  std::vector<PieceId> taking_;  // by parameter
  std::map<std::tuple<PieceId, PieceId, int, bool>, std::size_t> ring_of_;
  PipelineLayout layout_;
};

}  // namespace

PipelineLayout lay_out(const LayoutRequest& request, std::span<std::vector<PlacedPiece>> programs) {
  return Layouter(request, programs).lay_out();
}

}  // namespace palimpsest
