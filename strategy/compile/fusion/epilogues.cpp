#include "strategy/compile/fusion/epilogues.h"

namespace palimpsest {
namespace {

class FinishSearch {
 public:
  FinishSearch(const Tape& tape, const KnownOfTape& known)
      : tape_(tape),
        known_(known),
        readers_(count_readers(tape, known)),
        read_by_group_(tape.value_count()) {
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      if (!known.pointwise[node]) continue;
      for (const ValueId input : tape.inputs(node)) read_by_group_[behind_views(input)] = true;
    }
  }

  std::vector<Epilogue> found() const {
    std::vector<Epilogue> found;
    for (NodeId node = 0; node < tape_.node_count(); ++node) {
      if (!known_.needed[node] || !known_.pointwise[node]) continue;
      const ValueId output = tape_.first_output(node);
      if (read_by_group_[output] && !known_.read_whole[output]) continue;
      for (std::uint32_t i = 0; i < tape_.inputs(node).size(); ++i) {
        const NodeId maker = maker_of(node, i);
        if (maker == none) continue;
        found.push_back({node, maker, i});
        break;
      }
    }
    return found;
  }

 private:
  /// The node that makes input `made`, if it can run this node as its epilogue.
  NodeId maker_of(NodeId node, std::uint32_t made) const {
    const auto inputs = tape_.inputs(node);
    const ValueId value = inputs[made];
    const ValueType type = tape_.type(value);
    const ValueType result = tape_.type(tape_.first_output(node));
    const NodeId maker = tape_.producer(value);
    if (!tape_.operation(maker).fuses_epilogues || readers_[value] != 1) return none;
    if (known_.present[value] || known_.read_whole[value]) return none;
    // A maker of 16-bit types accumulates in f32 and rounds only at the end.
    if (type.dtype != result.dtype || is_half(type.dtype)) return none;
    for (std::uint32_t i = 0; i < inputs.size(); ++i) {
      if (tape_.shape(inputs[i]).elements() != result.shape.elements()) return none;
      if (i == made) continue;
      const ValueId base = behind_views(inputs[i]);
      if (!known_.present[base] && !known_.read_whole[base]) return none;
    }
    return maker;
  }

  ValueId behind_views(ValueId value) const {
    return palimpsest::behind_views(tape_, known_.present, value);
  }

  const Tape& tape_;
  const KnownOfTape& known_;
  std::vector<std::uint32_t> readers_;  // by value
  std::vector<bool> read_by_group_;     // by value
};

}  // namespace

std::vector<Epilogue> find_epilogues(const Tape& tape, const KnownOfTape& known) {
  return FinishSearch(tape, known).found();
}

}  // namespace palimpsest
