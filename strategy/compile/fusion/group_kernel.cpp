#include "strategy/compile/fusion/group_kernel.h"

#include <algorithm>
#include <array>

namespace palimpsest {
namespace {

class Builder {
 public:
  Builder(const Tape& tape, const AccessMaps& access_maps, std::int64_t elements)
      : tape_(tape),
        access_maps_(access_maps),
        elements_(elements),
        group_{FusedKernel(elements), {}, {}, {}, {}} {}

  void add(NodeId node, bool written) {
    const NodeView view(tape_.nodes(), node);
    const ValueId value = tape_.first_output(node);
    std::array<FusedKernel::Slot, 3> operands{};
    for (std::size_t i = 0; i < view.input_count(); ++i) operands[i] = input_slot(node, i);
    std::uint32_t output = none;
    if (written) {
      output = static_cast<std::uint32_t>(group_.outputs.size());
      group_.outputs.push_back(value);
      group_.cost.bytes += static_cast<double>(tape_.bytes(value));
    }
    slots_.emplace_back(value, compute(view, operands, output));
  }

  /// Appends a reduction of a value of the group.
  void fold(NodeId node) {
    const NodeView view(tape_.nodes(), node);
    const ValueId input = access_maps_.links(node)[0].value;
    const auto found = std::find_if(slots_.begin(), slots_.end(),
                                    [&](const auto& entry) { return entry.first == input; });
    internal_check(found != slots_.end(), "a group folds a value that it does not produce");
    group_.program.fold(node, tape_.operation(node).fold(view), found->second,
                        static_cast<std::uint32_t>(group_.outputs.size()));
    group_.outputs.push_back(tape_.first_output(node));
    group_.cost.bytes += static_cast<double>(view.output().bytes());
    note(view);
  }

  GroupKernel finish() {
    group_.program.finish();
    return std::move(group_);
  }

 private:
  void note(const NodeView& node) {
    group_.computed.push_back(node.id());
    group_.cost.flops += cost_of(node).flops;
  }

  /// The slot of input `i` of a node. A value that is read in its own shape is loaded only once.
  FusedKernel::Slot input_slot(NodeId node, std::size_t i) {
    const ValueId input = tape_.inputs(node)[i];
    const bool whole = tape_.have_one_shape(input, tape_.first_output(node));
    if (whole) {
      const auto known = std::ranges::find(loaded_, input, &Loaded::first);
      if (known != loaded_.end()) return known->second;
    }
    const AccessMap reading = access_maps_.of(node, i);
    const MovedProducers* const moved_producers = access_maps_.moved_producers(input);
    const FusedKernel::Slot slot = moved_producers != nullptr
                                       ? run_moved(*moved_producers, reading)
                                       : slot_of(reading, tape_.dtype(input));
    if (whole) loaded_.emplace_back(input, slot);
    return slot;
  }

  /// Runs moved nodes on inputs at the positions of the reading.
  FusedKernel::Slot run_moved(const MovedProducers& moved_producers, const AccessMap& reading) {
    std::vector<Loaded> made;
    for (const NodeId node : moved_producers.nodes) {
      const NodeView view(tape_.nodes(), node);
      std::array<FusedKernel::Slot, 3> operands{};
      for (std::size_t i = 0; i < view.input_count(); ++i) {
        AccessMap own = access_maps_.of(node, i);
        const ValueId value = own.value();
        const auto known = std::ranges::find(made, value, &Loaded::first);
        if (known != made.end()) {
          operands[i] = known->second;
          continue;
        }
        if (own.in_order && !access_maps_.is_number(value)) {
          own = reading;
          for (ReadPart& part : own.parts) part.value = value;
        }
        operands[i] = slot_of(own, view.input(i).dtype);
        made.emplace_back(value, operands[i]);
      }
      made.emplace_back(tape_.first_output(node), compute(view, operands, none));
    }
    return made.back().second;
  }

  FusedKernel::Slot compute(const NodeView& node, const std::array<FusedKernel::Slot, 3>& operands,
                            std::uint32_t output) {
    note(node);
    return group_.program.compute(node.id(), node.operation().pointwise(node),
                                  node.operation().half, node.output().dtype,
                                  std::span(operands).first(node.input_count()), output);
  }

  FusedKernel::Slot slot_of(const AccessMap& reading, DType dtype) {
    const ValueId value = reading.value();
    if (access_maps_.is_number(value)) return number_slot(value);
    if (reading.in_order) {
      const auto known = std::ranges::find(slots_, value, &Loaded::first);
      if (known != slots_.end()) return known->second;
    }
    std::vector<FusedKernel::Part> parts;
    for (const ReadPart& part : reading.parts) parts.push_back(part_of(part));
    const FusedKernel::Slot slot = group_.program.load(std::move(parts), reading.period, dtype);
    if (reading.in_order) slots_.emplace_back(value, slot);
    return slot;
  }

  /// The slot of a constant.
  FusedKernel::Slot number_slot(ValueId value) {
    const auto known = std::ranges::find(slots_, value, &Loaded::first);
    if (known != slots_.end()) return known->second;
    const NodeView node(tape_.nodes(), tape_.producer(value));
    const FusedKernel::Slot slot =
        group_.program.compute(node.id(), node.operation().pointwise(node), node.operation().half,
                               node.output().dtype, {}, none);
    slots_.emplace_back(value, slot);
    return slot;
  }

  FusedKernel::Part part_of(const ReadPart& part) {
    FusedKernel::Part made{part.begin, part.end, none, part.from, part.number};
    if (access_maps_.is_number(part.value)) {
      made.made = number_slot(part.value);
    } else if (part.value != none) {
      made.input = input_of(part.value);
    }
    return made;
  }

  std::uint32_t input_of(ValueId value) {
    const auto known = std::find(group_.inputs.begin(), group_.inputs.end(), value);
    if (known == group_.inputs.end()) {
      group_.inputs.push_back(value);
      // A group that reads a part of a value reads as many elements as it makes.
      group_.cost.bytes += static_cast<double>(
          std::min(tape_.bytes(value), elements_ * size_of(tape_.dtype(value))));
      return static_cast<std::uint32_t>(group_.inputs.size() - 1);
    }
    return static_cast<std::uint32_t>(known - group_.inputs.begin());
  }

  const Tape& tape_;
  const AccessMaps& access_maps_;
  std::int64_t elements_;
  GroupKernel group_;
  using Loaded = std::pair<ValueId, FusedKernel::Slot>;
  std::vector<Loaded> slots_;   // values as they are, in order
  std::vector<Loaded> loaded_;  // values as nodes read them, in their shape
};

}  // namespace

GroupKernel program_of(const Tape& tape, const AccessMaps& access_maps, const Unit& unit,
                       const std::vector<bool>& read) {
  Builder builder(tape, access_maps, tape.shape(tape.first_output(unit.own[0])).elements());
  for (const NodeId node : unit.nodes()) {
    const bool is_read = read[tape.first_output(node)];
    const bool own = std::binary_search(unit.own.begin(), unit.own.end(), node);
    if (!access_maps.is_fold(node)) {
      builder.add(node, own && is_read);
    } else if (is_read) {
      builder.fold(node);
    }
  }
  return builder.finish();
}

}  // namespace palimpsest
