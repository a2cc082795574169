#include "strategy/parallel/pipeline/pipeline_layout.h"

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
    for (std::size_t program = 0; program < programs_.size(); ++program) place(program);
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

  /// Finds the piece after which each parameter's gradient is added up: the last that makes it in
  /// any program. Also finds the stages that have the results at the end.
  void find_taking() {
    for (const std::vector<PlacedPiece>& pieces : programs_) {
      std::vector<int>& output_stages = layout_.output_stages.emplace_back();
      for (PieceId piece = 0; piece < pieces_; ++piece) {
        for (const Piece::Result& result : pieces[piece].piece.results) {
          if (result.use == Use::outcome) layout_.outcome_stages.push_back(stage_of(piece));
          if (result.use == Use::output) {
            output_stages.resize(std::max(output_stages.size(), result.index + 1));
            output_stages[result.index] = stage_of(piece);
          }
          if (result.use != Use::gradient) continue;
          if (taking_.size() <= result.index) taking_.resize(result.index + 1);
          taking_[result.index] = std::max(taking_[result.index], piece);
        }
      }
    }
    for (const PieceId piece : taking_) layout_.gradient_stages.push_back(stage_of(piece));
  }

  using Readers = std::map<ValueId, std::vector<PieceId>>;

  /// The pieces that read each passed value, in order: pieces of this process as planned, others as
  /// all processes know them.
  Readers readers_in(std::size_t program) const {
    Readers readers;
    for (PieceId piece = 0; piece < pieces_; ++piece) {
      for (const ValueId value : known(program, piece).arguments) readers[value].push_back(piece);
    }
    return readers;
  }

  const Piece& known(std::size_t program, PieceId piece) const {
    return is_own(piece) ? programs_[program][piece].piece : request_.common[program][piece];
  }

  /// The values that this process receives, with the first piece that all processes know to read
  /// them.
  std::map<ValueId, PieceId> incoming_in(std::size_t program) const {
    std::map<ValueId, PieceId> incoming;
    for (PieceId piece = 0; request_.stage && piece < pieces_; ++piece) {
      if (!is_own(piece)) continue;
      for (const ValueId value : request_.common[program][piece].arguments) {
        incoming.emplace(value, piece);
      }
    }
    return incoming;
  }

  void place(std::size_t program) {
    std::vector<PlacedPiece>& pieces = programs_[program];
    const Readers readers = readers_in(program);
    const std::map<ValueId, PieceId> incoming = incoming_in(program);
    std::map<ValueId, RingPlace> places;
    Offsets used;
    for (PieceId piece = 0; piece < pieces_; ++piece) {
      const Piece& made = known(program, piece);
      if (is_own(piece)) {
        for (const ValueId value : made.arguments) {
          pieces[piece].arguments.push_back(places.at(value));
        }
      }
      for (std::size_t i = 0; i < made.results.size(); ++i) {
        const Piece::Result& result = made.results[i];
        const Bytes bytes = aligned(made.tape->bytes(made.wanted.results[i]));
        RingPlace at;
        if (result.use == Use::other_pieces) {
          const auto found = readers.find(result.value);
          const std::vector<PieceId> nobody;
          const std::vector<PieceId>& by = found != readers.end() ? found->second : nobody;
          if (is_own(piece)) {
            at = hand_on(pieces, piece, by, bytes, used);
          } else if (const auto first = incoming.find(result.value); first != incoming.end()) {
            at = receive(pieces, piece, first->second, by, bytes, used);
          }
          places.emplace(result.value, at);
        } else if (result.use == Use::gradient && request_.sums_gradients) {
          const PieceId taking = taking_[result.index];
          if (is_own(piece)) {
            at = hand_on(pieces, piece, {&taking, 1}, bytes, used);
          } else if (is_own(taking)) {
            at = receive(pieces, piece, taking, {}, bytes, used);
          }
          if (is_own(taking)) pieces[taking].taken.push_back({result.index, at});
        }
        if (is_own(piece)) pieces[piece].results.push_back(at);
      }
    }
    if (request_.stage) check_sent(program, readers, places);
  }

  /// Checks that this process makes what others wait for, whatever it decided.
  void check_sent(std::size_t program, const Readers& readers,
                  const std::map<ValueId, RingPlace>& places) const {
    const auto is_elsewhere = [&](PieceId reader) { return !is_own(reader); };
    for (PieceId piece = 0; piece < pieces_; ++piece) {
      if (!is_own(piece)) continue;
      for (const Piece::Result& result : request_.common[program][piece].results) {
        const auto found = readers.find(result.value);
        const bool is_sent = result.use == Use::other_pieces && found != readers.end() &&
                             std::ranges::any_of(found->second, is_elsewhere);
        internal_check(!is_sent || places.contains(result.value),
                       "a stage does not make a value that others wait for");
      }
    }
  }

  /// Assigns a place to a value that piece `from` of this process makes for `readers`, given in
  /// order, in any process.
  RingPlace hand_on(std::vector<PlacedPiece>& pieces, PieceId from,
                    std::span<const PieceId> readers, Bytes bytes, Offsets& used) {
    PieceId last = from;
    std::vector<PieceId> first_elsewhere;
    for (const PieceId reader : readers) {
      const auto is_same_stage = [&](PieceId other) { return stage_of(other) == stage_of(reader); };
      if (is_own(reader)) {
        last = reader;
      } else if (std::ranges::none_of(first_elsewhere, is_same_stage)) {
        first_elsewhere.push_back(reader);
      }
    }
    int places = request_.order.places(from, last);
    for (const PieceId reader : first_elsewhere) {
      // Enough places to exclude deadlock even if MPI buffers nothing. Let piece p of micro-batch m
      // run at time p + 2m. Then each task comes after the earlier tasks of its stage, and after
      // those that make what it reads. It also comes after the task by which a reader has room for
      // the previous content of its place. At the latest that is the task just before the one that
      // reads it.
      const int sent = static_cast<int>(reader - from + 1) / 2;
      places = std::max(places, at_most_all(sent + ahead()));
    }
    const RingPlace at = take({from, last, places, false}, bytes, used);
    for (const PieceId reader : first_elsewhere) {
      add_part(pieces[from].sent, {from, reader}, {at, bytes});
    }
    return at;
  }

  /// Assigns a place to a value that piece `from` of another process makes. `from` comes before
  /// `first`. The last of `readers` in this process, if any, reads the value last.
  RingPlace receive(std::vector<PlacedPiece>& pieces, PieceId from, PieceId first,
                    std::span<const PieceId> readers, Bytes bytes, Offsets& used) {
    PieceId last = first;
    for (const PieceId reader : readers) {
      if (is_own(reader)) last = std::max(last, reader);
    }
    const int places = at_most_all(request_.order.places(first, last) + ahead());
    const RingPlace at = take({first, last, places, true}, bytes, used);
    add_part(pieces[first].received, {from, first}, {at, bytes});
    return at;
  }

  int ahead() const { return request_.receives_ahead ? 1 : 0; }
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
