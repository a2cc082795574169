#include "strategy/parallel/pipeline/pipeline_layout.h"

#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <random>
#include <set>

#include "tests/catch.h"

namespace palimpsest::layout_test {
namespace {

/// A value that a piece computes for other pieces.
struct Handed {
  PieceId from;
  std::set<PieceId> readers;
  std::int64_t elements;
};

/// Simulates stages with one process each that pass such values on. Each process decides
/// independently what its backward part reads again. A message arrives at any time after it is sent
/// and requested; its sender learns nothing before that.
class Processes {
 public:
  Processes(int stages, int micro_batches, std::vector<Handed> values, unsigned seed)
      : values_(std::move(values)),
        pieces_(static_cast<PieceId>(2 * stages)),
        order_(one_forward_one_backward(stages, micro_batches)),
        random_(seed) {
    std::vector<std::vector<Piece>> common(1);
    for (PlacedPiece& placed : pieces_for(-1)) common[0].push_back(std::move(placed.piece));
    for (int stage = 0; stage < stages; ++stage) {
      Process& process = processes_.emplace_back();
      process.ended.assign(pieces_, 0);
      for (const PipelineOrder::Task& task : order_.tasks()) {
        if (task.stage == stage) process.tasks.push_back(task.what);
      }
      process.pieces = pieces_for(stage);
      process.layout =
          lay_out({order_, false, stage, common, random_() % 2 == 0}, {&process.pieces, 1});
    }
  }

  /// Whether all processes finish without reading a wrong value.
  bool run() {
    while (true) {
      std::vector<std::function<void()>> possible;
      bool is_done = true;
      for (int stage = 0; stage < std::ssize(processes_); ++stage) {
        Process& process = processes_[static_cast<std::size_t>(stage)];
        is_done = is_done && process.next == process.tasks.size();
        if (process.next < process.tasks.size() && can_run(process, stage)) {
          possible.push_back([this, &process, stage] { run_task(process, stage); });
        }
      }
      for (Message& message : under_way_) {
        if (is_asked_for(message)) possible.push_back([this, &message] { deliver(message); });
      }
      if (possible.empty()) return is_done && under_way_.empty() && is_right_;
      possible[random_() % possible.size()]();
    }
  }

 private:
  struct Process {
    std::vector<PlacedPiece> pieces;
    PipelineLayout layout;
    std::vector<PipelineSchedule::Task> tasks;
    std::size_t next = 0;
    std::vector<int> ended;                               // by piece
    std::map<Bytes, std::pair<std::size_t, int>> memory;  // value and micro-batch, by address
  };
  struct Message {
    StageMessage sent;  // as the sender knows it
    int micro_batch;
  };

  int stage_of(PieceId piece) const {
    return static_cast<int>(std::min(piece, pieces_ - 1 - piece));
  }
  PieceId piece_of(int stage, bool backward) const {
    const auto forward = static_cast<PieceId>(stage);
    return backward ? pieces_ - 1 - forward : forward;
  }

  /// The pieces as the process of `stage` knows them; -1: as all processes do.
  std::vector<PlacedPiece> pieces_for(int stage) {
    std::vector<PlacedPiece> pieces(pieces_);
    const bool runs_again = stage >= 0 && random_() % 3 != 0;
    const bool is_empty = random_() % 2 == 0;  // the forward piece, when it runs again
    for (std::size_t v = 0; v < values_.size(); ++v) {
      std::set<PieceId> readers = values_[v].readers;
      if (runs_again) {
        const PieceId forward = piece_of(stage, false);
        const PieceId backward = piece_of(stage, true);
        // The backward piece reads the incoming values, in addition to or instead of the forward
        // piece, and not the forward piece's own values.
        if (values_[v].from == forward) {
          readers.erase(backward);
        } else if (readers.contains(forward)) {
          readers.insert(backward);
          if (is_empty) readers.erase(forward);
        }
      }
      if (readers.empty()) continue;
      Piece& from = pieces[values_[v].from].piece;
      const Var made =
          from.tape->placeholder({{values_[v].elements}, DType::f32}, Where::current());
      from.wanted.results.push_back(made.id());
      from.results.push_back({Piece::Result::Use::other_pieces, static_cast<ValueId>(v)});
      for (const PieceId reader : readers) {
        pieces[reader].piece.arguments.push_back(static_cast<ValueId>(v));
      }
    }
    return pieces;
  }

  static Bytes address(const Process& process, const RingPlace& place, int micro_batch) {
    return process.layout.rings[place.ring].place_of(micro_batch) + place.offset;
  }

  bool can_run(const Process& process, int stage) const {
    const auto& [backward, m] = process.tasks[process.next];
    const PieceId piece = piece_of(stage, backward);
    const PlacedPiece& placed = process.pieces[piece];
    for (const StageMessage& message : placed.received) {
      if (!arrived_.contains({message.from, message.to, m})) return false;
    }
    for (const StageMessage& message : placed.sent) {
      for (const StageMessage::Part& part : message.parts) {
        const int before = m - process.layout.rings[part.place.ring].places;
        if (before >= 0 && !arrived_.contains({message.from, message.to, before})) return false;
      }
    }
    return true;
  }

  void run_task(Process& process, int stage) {
    const auto& [backward, m] = process.tasks[process.next++];
    const PieceId piece = piece_of(stage, backward);
    const PlacedPiece& placed = process.pieces[piece];
    for (std::size_t i = 0; i < placed.arguments.size(); ++i) {
      const auto found = process.memory.find(address(process, placed.arguments[i], m));
      const std::pair expected{static_cast<std::size_t>(placed.piece.arguments[i]), m};
      is_right_ = is_right_ && found != process.memory.end() && found->second == expected;
    }
    for (std::size_t i = 0; i < placed.results.size(); ++i) {
      process.memory[address(process, placed.results[i], m)] = {placed.piece.results[i].value, m};
    }
    ++process.ended[piece];
    for (const StageMessage& message : placed.sent) under_way_.push_back({message, m});
  }

  const StageMessage& received(const Message& message) const {
    const PlacedPiece& placed = receiver(message).pieces[message.sent.to];
    return *std::ranges::find(placed.received, message.sent.from, &StageMessage::from);
  }
  const Process& receiver(const Message& message) const {
    return processes_[static_cast<std::size_t>(stage_of(message.sent.to))];
  }

  bool is_asked_for(const Message& message) const {
    const Process& process = receiver(message);
    return std::ranges::all_of(received(message).parts, [&](const StageMessage::Part& part) {
      const Ring& ring = process.layout.rings[part.place.ring];
      return process.ended[ring.last] > message.micro_batch - ring.places;
    });
  }

  void deliver(const Message& message) {
    const Process& sender = processes_[static_cast<std::size_t>(stage_of(message.sent.from))];
    Process& to = processes_[static_cast<std::size_t>(stage_of(message.sent.to))];
    const StageMessage& there = received(message);
    const int m = message.micro_batch;
    is_right_ = is_right_ && there.parts.size() == message.sent.parts.size();
    for (std::size_t i = 0; is_right_ && i < there.parts.size(); ++i) {
      is_right_ = there.parts[i].bytes == message.sent.parts[i].bytes;
      to.memory[address(to, there.parts[i].place, m)] =
          sender.memory.at(address(sender, message.sent.parts[i].place, m));
    }
    arrived_.insert({message.sent.from, message.sent.to, m});
    under_way_.remove_if([&](const Message& each) { return &each == &message; });
  }

  std::vector<Handed> values_;
  PieceId pieces_;
  PipelineOrder order_;
  std::mt19937 random_;
  std::vector<Process> processes_;
  std::list<Message> under_way_;
  std::set<std::tuple<PieceId, PieceId, int>> arrived_;
  bool is_right_ = true;
};

TEST_CASE("pipelines: no process waits for ever, whatever they hand to each other") {
  CHECK(rc::check("any values", [] {
    const int stages = *rc::gen::inRange(1, 7);
    const int micro_batches = *rc::gen::inRange(1, 12);
    const auto pieces = static_cast<PieceId>(2 * stages);
    std::vector<Handed> values;
    for (int k = *rc::gen::inRange(1, 12); k > 0; --k) {
      const PieceId from = *rc::gen::inRange<PieceId>(0, pieces - 1);
      std::set<PieceId> readers;
      for (int r = *rc::gen::inRange(1, 4); r > 0; --r) {
        readers.insert(*rc::gen::inRange<PieceId>(from + 1, pieces));
      }
      values.push_back({from, readers, *rc::gen::inRange<std::int64_t>(1, 40)});
    }
    for (unsigned seed = 0; seed < 8; ++seed) {
      RC_ASSERT(Processes(stages, micro_batches, values, seed).run());
    }
  }));
}

TEST_CASE("pipelines: what one process hands on is at hand once, and twice between processes") {
  const PipelineOrder order(one_forward_one_backward(3, 6));
  const auto pieces = [] {
    std::vector<PlacedPiece> all(6);
    const Var made = all[0].piece.tape->placeholder({{10}, DType::f32}, Where::current());
    all[0].piece.wanted.results.push_back(made.id());
    all[0].piece.results.push_back({Piece::Result::Use::other_pieces, 7});
    for (const PieceId reader : {1, 4}) all[reader].piece.arguments.push_back(7);
    return all;
  };
  const auto places = [&](std::optional<int> stage, bool ahead) {
    std::vector<PlacedPiece> all = pieces();
    std::vector<std::vector<Piece>> common(1);
    for (const PlacedPiece& placed : all) common[0].push_back(placed.piece);
    const PipelineLayout layout = lay_out({order, true, stage, common, ahead}, {&all, 1});
    CHECK(layout.bytes == (layout.rings.empty() ? 0 : 64 * layout.rings[0].places));
    return layout.rings.empty() ? 0 : layout.rings[0].places;
  };
  CHECK(places({}, true) == 3);  // in flight from stage 0 until stage 1 runs backward
  CHECK(places(0, false) == 1);  // until it is sent
  CHECK(places(0, true) == 2);   // and another one during the sending
  CHECK(places(1, false) == 2);  // in flight in stage 1
  CHECK(places(1, true) == 3);   // and one that arrives
  CHECK(places(2, true) == 0);
}

}  // namespace
}  // namespace palimpsest::layout_test
