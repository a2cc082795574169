#include "strategy/parallel/devices/device_cut.h"

#include <algorithm>
#include <map>

namespace palimpsest {
namespace {

/// Finds the levels of nodes.
class Levels {
 public:
  Levels(const RecordedProgram& program, const Elements& elements, const DevicePlacement& placement,
         std::size_t devices, Sending sending)
      : program_(program),
        elements_(elements),
        graph_(elements.graph()),
        devices_(devices),
        device_(program.tape.node_count(), placement[0]),
        level_(program.tape.node_count(), 0) {
    for (const NodeId node : elements.needed()) {
      device_[node] = placement[elements.of(node)];
    }
    const auto find = [&](NodeId node) {
      for_inputs(node, [&](NodeId producer, ValueId) {
        const std::uint32_t later = device_[producer] == device_[node] ? 0 : 1;
        level_[node] = std::max(level_[node], level_[producer] + later);
      });
    };
    const auto needed = elements.needed();
    const auto backward = std::ranges::lower_bound(needed, program.backward_begins);
    // The nodes of an element stay together: everything it waits for was recorded before all of
    // them.
    for (auto node = needed.begin(); node != backward;) {
      std::uint32_t level = 0;
      const std::size_t element = elements.of(*node);
      auto end = node;
      for (; end != backward && elements.of(*end) == element; ++end) {
        find(*end);
        if (!is_free(program.tape, *end)) level = std::max(level, level_[*end]);
      }
      for (; node != end; ++node) level_[*node] = level;
    }
    for (auto node = backward; node != needed.end(); ++node) find(*node);
    move_adjoints();
    if (sending == Sending::early) split();
  }

  DeviceCut::At at(NodeId node) const { return {device_[node], level_[node]}; }

 private:
  /// Calls f(producer, storage) for each input of a node that is not free.
  template <class F>
  void for_inputs(NodeId node, F f) const {
    if (is_free(program_.tape, node)) return;
    for (const ValueId input : graph_.inputs(node)) {
      const ValueId storage = graph_.storage(input);
      const NodeId producer = graph_.producer(storage);
      if (!is_free(program_.tape, producer)) f(producer, storage);
    }
  }

  void move_adjoints() {
    // By node: the first level in which its own device reads it, and whether other devices read it.
    std::vector<std::uint32_t> read_at(level_.size(), none);
    std::vector<bool> is_sent(level_.size());
    // By storage and device: the last level in which it is read by the nodes visited so far.
    std::vector<std::uint32_t> last(graph_.value_count() * devices_, 0);
    const auto needed = elements_.needed();
    for (auto each = needed.rbegin(); each != needed.rend(); ++each) {
      const NodeId node = *each;
      const auto device = static_cast<std::size_t>(device_[node]);
      const auto last_of = [&](ValueId storage) -> std::uint32_t& {
        return last[storage * devices_ + device];
      };
      const bool may_move = node >= program_.backward_begins && !is_sent[node];
      if (may_move && read_at[node] != none && read_at[node] > level_[node]) {
        const std::uint32_t to = read_at[node];
        Bytes saved = 0;
        const ValueId first = graph_.first_output(node);
        for (ValueId v = first; v < first + graph_.output_count(node); ++v) {
          saved += graph_.bytes(v) * (to - level_[node]);
        }
        for_inputs(node, [&](NodeId, ValueId storage) {
          const std::uint32_t until = std::max(last_of(storage), level_[node]);
          if (until < to) saved -= graph_.bytes(storage) * (to - until);
        });
        if (saved > 0) level_[node] = to;
      }
      for_inputs(node, [&](NodeId producer, ValueId storage) {
        last_of(storage) = std::max(last_of(storage), level_[node]);
        if (device_[producer] == device_[node]) {
          read_at[producer] = std::min(read_at[producer], level_[node]);
        } else {
          is_sent[producer] = true;
        }
      });
    }
  }

  /// Splits each level in two: nodes that other devices wait for, then the rest.
  void split() {
    std::vector<bool> is_awaited(level_.size());
    const auto needed = elements_.needed();
    for (auto each = needed.rbegin(); each != needed.rend(); ++each) {
      const NodeId node = *each;
      // If another piece read the states, the loop would run again.
      if (reads_states(program_.tape, node)) is_awaited[node] = true;
      for_inputs(node, [&](NodeId producer, ValueId) {
        const bool is_sent = device_[producer] != device_[node];
        const bool is_of_piece = !is_sent && level_[producer] == level_[node];
        if (is_sent || (is_of_piece && is_awaited[node])) is_awaited[producer] = true;
      });
    }
    for (const NodeId node : needed) level_[node] = 2 * level_[node] + (is_awaited[node] ? 0 : 1);
  }

  const RecordedProgram& program_;
  const Elements& elements_;
  const Graph& graph_;
  std::size_t devices_;
  std::vector<int> device_;           // by node
  std::vector<std::uint32_t> level_;  // by node
};

}  // namespace

DeviceCut cut_for_devices(const RecordedProgram& program, const Elements& elements,
                          const DevicePlacement& placement, std::size_t devices, Sending sending) {
  const Tape& tape = program.tape;
  const Levels levels(program, elements, placement, devices, sending);
  std::map<std::pair<std::uint32_t, int>, PieceId> pieces;
  for (const NodeId node : elements.needed()) {
    const DeviceCut::At at = levels.at(node);
    if (!is_free(tape, node)) pieces[{at.level, at.device}] = 0;
  }
  if (pieces.empty()) pieces[{0, placement[0]}] = 0;
  DeviceCut cut;
  for (auto& [at, piece] : pieces) {
    piece = static_cast<PieceId>(cut.pieces.size());
    cut.pieces.push_back({at.second, at.first});
  }
  cut.piece_of.assign(tape.node_count(), none);
  cut.has_loop.assign(devices, false);
  for (const NodeId node : elements.needed()) {
    if (is_free(tape, node)) continue;
    const DeviceCut::At at = levels.at(node);
    cut.piece_of[node] = pieces.at({at.level, at.device});
    if (!reads_states(tape, node)) continue;
    for (const ValueId input : tape.inputs(node)) {
      const NodeId producer = tape.producer(input);
      if (tape.operation(producer).has_state_budget &&
          cut.piece_of[producer] != cut.piece_of[node]) {
        cut.has_loop[static_cast<std::size_t>(at.device)] = true;
      }
    }
  }
  return cut;
}

std::vector<Piece> pieces_of(const RecordedProgram& program, const DeviceCut& cut,
                             const std::vector<bool>& computes_again) {
  const Tape& tape = program.tape;
  PieceCut parts;
  parts.piece_of = cut.piece_of;
  parts.nodes.resize(cut.pieces.size());
  for (const DeviceCut::At& at : cut.pieces) parts.pieces.push_back({at.device, false});
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const PieceId piece = cut.piece_of[node];
    if (piece == none) continue;
    parts.nodes[piece].push_back(node);
    if (node >= program.backward_begins) parts.pieces[piece].is_backward = true;
  }
  for (PieceId piece = 0; piece < cut.pieces.size(); ++piece) {
    const int device = cut.pieces[piece].device;
    if (!parts.pieces[piece].is_backward || !computes_again[static_cast<std::size_t>(device)]) {
      continue;
    }
    // A checkpoint recomputes its nodes in the backward part, including loops with states.
    std::vector<bool> has_states(tape.node_count());
    for (const NodeId node : parts.nodes[piece]) {
      if (!reads_states(tape, node)) continue;
      for (const ValueId input : tape.inputs(node)) {
        const NodeId producer = tape.producer(input);
        if (tape.operation(producer).has_state_budget) has_states[producer] = true;
      }
    }
    add_computed_again(tape, parts.nodes[piece], [&](NodeId node) {
      const PieceId made_in = cut.piece_of[node];
      return (node < program.backward_begins || has_states[node]) && made_in < piece &&
             cut.pieces[made_in].device == device;
    });
  }
  return record_pieces(program, parts);
}

}  // namespace palimpsest
