#include "strategy/compile/fusion/verify_lowered.h"

#include <algorithm>
#include <set>
#include <string>

namespace palimpsest {
namespace {

class LoweredCheck {
 public:
  LoweredCheck(const Lowered& lowered, const Tape& tape, const Simplification& simplification)
      : lowered_(lowered),
        graph_(lowered.graph()),
        own_(simplified(tape, simplification)),
        tape_(own_ != nullptr ? *own_ : tape) {}

  void check(std::span<const ValueId> targets, const Simplification& simplification) {
    for (ValueId value = 0; value < graph_.value_count(); ++value) check_value(value);
    for (NodeId unit = 0; unit < graph_.node_count(); ++unit) check_unit(unit);
    std::set<ValueId> asked(targets.begin(), targets.end());
    require(lowered_.results().size() == asked.size(), "the results are not the targets");
    for (const auto& [recorded, value] : lowered_.results()) {
      require(asked.contains(recorded), "a result is not a target");
      require(value < graph_.value_count(), "a target has no place");
      require(lowered_.recorded(value) == simplification.replacement(recorded),
              "a target is given as another value");
      require(graph_.is_target(value), "a target is not kept to the end");
    }
  }

 private:
  void require(bool holds, const char* rule) const {
    if (holds) return;
    std::string message = "a lowered graph breaks a rule: " + std::string(rule);
    if (unit_ != none) message += ", at unit " + std::to_string(unit_) + " (" + describe() + ")";
    throw InternalError(message);
  }

  std::string describe() const { return graph_.describe(unit_); }

  void check_value(ValueId value) {
    unit_ = graph_.producer(value);
    const ValueId recorded = lowered_.recorded(value);
    require(recorded < tape_.value_count(), "a value stands for no value of the tape");
    require(recorded_.insert(recorded).second, "two values stand for the same one");
    const bool has_bytes = graph_.storage(value) == value && !graph_.is_elsewhere(value);
    const Bytes bytes = graph_.bytes(value) + graph_.source_bytes(value);
    require(!has_bytes || bytes == tape_.bytes(recorded), "a value has other bytes than recorded");
  }

  void check_unit(NodeId unit) {
    unit_ = unit;
    members_ = lowered_.members(unit);
    require(!members_.empty(), "a unit runs no node");
    for (const NodeId node : members_) require(node < tape_.node_count(), "a unit runs no node");
    require(is_member(lowered_.node(unit)), "a unit is named after a node that it does not run");
    read_.clear();
    for (const ValueId input : graph_.inputs(unit)) {
      require(input < graph_.first_output(unit), "a unit reads a value that is made later");
      read_.push_back(lowered_.recorded(input));
    }
    for (std::uint32_t i = 0; i < graph_.output_count(unit); ++i) {
      const ValueId output = lowered_.recorded(graph_.first_output(unit) + i);
      require(is_member(tape_.producer(output)), "a unit makes a value of a node it does not run");
    }
    if (graph_.is_source(unit)) return;
    const std::span<const ValueId> own = tape_.inputs(lowered_.node(unit));
    require(lowered_.program(unit) != nullptr ||
                (own.size() <= read_.size() && std::equal(own.begin(), own.end(), read_.begin())),
            "a node reads other values than recorded");
    used_.clear();
    for (const NodeId node : members_) check_inputs(node);
    for (const ValueId value : read_)
      require(used_.contains(value), "a unit reads a value that no member needs");
  }

  /// Checks that the unit or its inputs provide everything that the node reads.
  void check_inputs(NodeId node) {
    struct Read {
      ValueId value;
      bool is_needed;  ///< false for inputs of a value that is already provided
    };
    std::vector<Read> open;
    for (const ValueId input : tape_.inputs(node)) open.push_back({input, true});
    while (!open.empty()) {
      const auto [value, is_needed] = open.back();
      open.pop_back();
      const NodeId maker = tape_.producer(value);
      const bool is_read = std::ranges::find(read_, value) != read_.end();
      if (is_read) used_.insert(value);
      const bool is_there = is_read || is_member(maker);
      const Operation& operation = tape_.operation(maker);
      const bool moves =
          operation.view || operation.access != nullptr || operation.stretches != nullptr;
      const bool is_number = operation.pointwise != nullptr && tape_.inputs(maker).empty();
      if (is_needed && !is_there && !moves && !is_number) {
        throw InternalError("a lowered graph breaks a rule: node " + std::to_string(node) +
                            " reads value " + std::to_string(value) + " of '" +
                            std::string(operation.name) + "', which unit " + std::to_string(unit_) +
                            " (" + graph_.describe(unit_) + ") neither makes nor reads");
      }
      if (!moves) continue;
      for (const ValueId input : moved_by(maker)) {
        open.push_back({input, is_needed && !is_there});
      }
    }
  }

  /// The inputs that the elements of a data movement node come from; empty ranges have none.
  std::vector<ValueId> moved_by(NodeId mover) const {
    const std::span<const ValueId> inputs = tape_.inputs(mover);
    const auto stretches = tape_.operation(mover).stretches;
    if (stretches == nullptr) return {inputs.begin(), inputs.end()};
    std::vector<ValueId> moved_producers;
    for (const Stretch& stretch : stretches(NodeView(tape_.nodes(), mover))) {
      if (stretch.input < 0 || stretch.begin == stretch.end) continue;
      moved_producers.push_back(inputs[static_cast<std::size_t>(stretch.input)]);
    }
    return moved_producers;
  }

  bool is_member(NodeId node) const { return std::ranges::find(members_, node) != members_.end(); }

  const Lowered& lowered_;
  const Graph& graph_;
  std::unique_ptr<Tape> own_;
  const Tape& tape_;
  std::set<ValueId> recorded_;
  NodeId unit_ = none;  // the current unit
  std::span<const NodeId> members_;
  std::vector<ValueId> read_;
  std::set<ValueId> used_;
};

}  // namespace

void verify(const Lowered& lowered, const Tape& tape, std::span<const ValueId> targets,
            const Simplification& simplification) {
  LoweredCheck(lowered, tape, simplification).check(targets, simplification);
}

}  // namespace palimpsest
