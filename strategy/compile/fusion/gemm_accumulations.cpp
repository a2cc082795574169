#include "strategy/compile/fusion/gemm_accumulations.h"

#include "autodiff/operations/binary.h"

namespace palimpsest {
namespace {

class AccumulationSearch {
 public:
  AccumulationSearch(const Tape& tape, const KnownOfTape& known)
      : tape_(tape),
        known_(known),
        readers_(count_readers(tape, known)),
        candidates_(tape.node_count(), {none, none, none}),
        read_by_group_(tape.value_count()),
        is_accumulated_(tape.node_count()) {
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      if (!known.pointwise[node]) continue;
      candidates_[node] = candidate(node);
      if (candidates_[node].product != none) continue;
      for (const ValueId input : tape.inputs(node)) read_by_group_[behind_views(input)] = true;
    }
  }

  std::vector<GemmAccumulation> found() {
    std::vector<GemmAccumulation> found;
    for (const GemmAccumulation& candidate : candidates_) {
      if (candidate.product == none || !is_worth_it(candidate)) continue;
      is_accumulated_[candidate.sum] = true;
      found.push_back(candidate);
    }
    return found;
  }

 private:
  GemmAccumulation candidate(NodeId sum) const {
    constexpr std::size_t add = functions::position<functions::Add, functions::Binary>;
    if (&tape_.operation(sum) != &binary_operation(add)) return {sum, none, none};
    // A product of 16-bit types is rounded before it is added.
    if (is_half(tape_.dtype(tape_.first_output(sum)))) return {sum, none, none};
    const std::int64_t elements = tape_.shape(tape_.first_output(sum)).elements();
    for (const std::size_t i : {0, 1}) {
      const ValueId addend = tape_.inputs(sum)[1 - i];
      const NodeId product = only_read_product(tape_.inputs(sum)[i]);
      if (product == none || product < tape_.producer(behind_views(addend))) continue;
      if (tape_.shape(tape_.first_output(product)).elements() != elements) continue;
      if (tape_.shape(addend).elements() == elements) return {sum, product, addend};
    }
    return {sum, none, none};
  }

  /// The product that makes `value`, if only one node reads it and it is no target.
  NodeId only_read_product(ValueId value) const {
    while (!known_.present[value] && !known_.read_whole[value] && readers_[value] == 1) {
      const NodeId node = tape_.producer(value);
      const Operation& operation = tape_.operation(node);
      if (!operation.view) return operation.accumulate != nullptr ? node : none;
      value = tape_.inputs(node)[0];
    }
    return none;
  }

  ValueId behind_views(ValueId value) const {
    return palimpsest::behind_views(tape_, known_.present, value);
  }

  bool is_worth_it(const GemmAccumulation& candidate) const {
    const ValueId addend = behind_views(candidate.addend);
    const NodeId node = tape_.producer(addend);
    if (known_.present[addend] || known_.read_whole[addend] || is_accumulated_[node]) return true;
    const Operation& operation = tape_.operation(node);
    if (operation.access != nullptr || operation.stretches != nullptr) return false;
    if (!known_.pointwise[node]) return true;
    return !tape_.inputs(node).empty() && !read_by_group_[tape_.first_output(candidate.sum)];
  }

  const Tape& tape_;
  const KnownOfTape& known_;
  std::vector<std::uint32_t> readers_;        // by value
  std::vector<GemmAccumulation> candidates_;  // by sum; without a product where there is none
  std::vector<bool> read_by_group_;           // by value
  std::vector<bool> is_accumulated_;          // by node
};

}  // namespace

std::vector<GemmAccumulation> find_accumulations(const Tape& tape, const KnownOfTape& known) {
  return AccumulationSearch(tape, known).found();
}

}  // namespace palimpsest
