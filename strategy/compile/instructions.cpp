#include "strategy/compile/instructions.h"

#include <algorithm>
#include <map>
#include <optional>

#include "autodiff/operations/leaf.h"
#include "checkpoint/lanes.h"
#include "strategy/compile/results_in_place.h"
#include "strategy/compile/verify_plan.h"

namespace palimpsest {

class Instructions::Builder {
 public:
  Builder(Instructions& made, const Tape& tape)
      : made_(made),
        tape_(tape),
        graph_(made.lowered_->graph()),
        places_(graph_.value_count(), none) {}

  void build(const Schedule& schedule) {
    find_sources();
    find_results_in_place(schedule);
    open_present();
    for (std::uint32_t step = 0; step < schedule.steps.size(); ++step) {
      const Step action = schedule.steps[step];
      if (action.kind == Step::Kind::compute) {
        compute(step, action.id);
      } else {
        made_.steps_.push_back({.closed = made_.dependencies_.closed(step)});
      }
    }
    for (const auto& [recorded, value] : made_.lowered_->results()) {
      hold(recorded, value, made_.results_);
    }
    constexpr std::int64_t divided_from = 1 << 14;
    // Nothing is known of the threads that a user's operation takes.
    made_.is_serial_ = !made_.any_long_ &&
                       std::ranges::none_of(made_.steps_, &Instruction::is_of_user) &&
                       std::ranges::all_of(made_.operands_, [](const Operand& operand) {
                         return operand.elements() < divided_from;
                       });
  }

 private:
  void find_sources() {
    std::vector<bool> wanted(graph_.value_count());
    for (const ValueId target : graph_.targets()) wanted[graph_.storage(target)] = true;
    for (NodeId unit = 0; unit < graph_.node_count(); ++unit) {
      for (const ValueId input : graph_.inputs(unit)) wanted[graph_.storage(input)] = true;
    }
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      const bool supplied = graph_.is_source_value(value) && wanted[value];
      if (!supplied && !graph_.is_elsewhere(value)) continue;
      places_[value] = made_.source_place(made_.sources_.size());
      made_.sources_.push_back(made_.lowered_->recorded(value));
    }
  }

  /// The interval of an earlier value in the buffer of a result stays empty.
  void find_results_in_place(const Schedule& schedule) {
    std::optional<ResultsInPlace> in_place;
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if (made_.lowered_->donated_to(value).empty()) continue;
      if (!in_place) in_place.emplace(tape_, *made_.lowered_, schedule);
      for (const ValueId before : in_place->find(value).before) in_result_[before] = places_[value];
    }
  }

  /// The intervals of present values come first.
  void open_present() {
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      const ValueId root = graph_.storage(value);
      if (!graph_.is_present(value) || graph_.is_source_value(root)) continue;
      if (places_[root] == none && graph_.bytes(root) > 0) {
        places_[root] = made_.open_at_start_++;
        made_.present_bytes_ += graph_.bytes(root);
      }
      hold(made_.lowered_->recorded(value), value, made_.present_);
    }
  }

  void hold(ValueId recorded, ValueId value, std::vector<Held>& list) {
    const auto at = static_cast<std::uint32_t>(list.size());
    const Place where = place(value);
    const auto [first, is_new] = first_there_.emplace(std::pair(&list, where), at);
    list.push_back({recorded, where, first->second});
  }

  Place place(ValueId value) const {
    const auto there = in_result_.find(graph_.storage(value));
    if (there != in_result_.end()) return there->second;
    const Place place = places_[graph_.storage(value)];
    if (place != none) return place;
    internal_check(graph_.bytes(graph_.storage(value)) == 0, "a value that is read has no place");
    return made_.empty_place();
  }

  void add_operand(ValueId value) {
    made_.operands_.push_back({nullptr, tape_.type(made_.lowered_->recorded(value))});
    made_.places_.push_back(place(value));
  }

  void compute(std::uint32_t step, NodeId unit) {
    Instruction instruction;
    instruction.unit = unit;
    instruction.node = made_.lowered_->node(unit);
    instruction.first_operand = static_cast<std::uint32_t>(made_.operands_.size());
    instruction.workspace = made_.dependencies_.workspace(step);
    instruction.given = made_.lowered_->folded_constant(instruction.node);
    const Operation& operation =
        instruction.given != nullptr ? full_operation : tape_.operation(instruction.node);
    if (!operation.view) {
      instruction.operation = &operation;
      instruction.group = made_.lowered_->program(unit);
      if (instruction.group != nullptr) {
        instruction.first_number = made_.number_count_;
        made_.number_count_ += instruction.group->number_count();
      }
      instruction.accumulates = made_.lowered_->accumulates(unit);
      instruction.epilogue = made_.lowered_->epilogue(unit);
      instruction.is_of_user = operation.of_user;
      instruction.is_long = graph_.cost(unit) >= handed_over_from || operation.opaque;
      made_.any_long_ = made_.any_long_ || instruction.is_long;
      for (const ValueId input : graph_.inputs(unit)) add_operand(input);
      instruction.inputs = static_cast<std::uint32_t>(graph_.inputs(unit).size());
    }
    for (const std::uint32_t interval : made_.dependencies_.opened(step)) {
      places_[made_.intervals_[interval].storage] = interval;
    }
    if (!operation.view) {
      instruction.outputs = graph_.output_count(unit);
      for (std::uint32_t i = 0; i < instruction.outputs; ++i) {
        add_operand(graph_.first_output(unit) + i);
      }
      // The sum may read the product through views, and an epilogue may use another shape. The
      // kernel uses the product's own shape.
      if (instruction.accumulates || instruction.epilogue != nullptr) {
        made_.operands_.back().type = tape_.type(tape_.first_output(instruction.node));
      }
    }
    made_.steps_.push_back(instruction);
  }

  Instructions& made_;
  const Tape& tape_;
  const Graph& graph_;
  std::vector<Place> places_;           // by root value: its current or last place
  std::map<ValueId, Place> in_result_;  // of values that lie in the buffers of results
  std::map<std::pair<const std::vector<Held>*, Place>, std::uint32_t> first_there_;
};

Instructions::Instructions(const Tape& tape, std::shared_ptr<const Lowered> lowered,
                           const Plan& plan)
    : lowered_(std::move(lowered)),
      dependencies_(lowered_->graph(), plan.schedule, plan.layout),
      intervals_(plan.layout.intervals),
      arena_size_(plan.layout.size) {
  Builder(*this, tape).build(plan.schedule);
#ifndef NDEBUG
  verify(lowered_->graph(), plan);
  verify(*this, plan);
#endif
}

std::shared_ptr<Instructions::Attachment> Instructions::attachment(
    const std::function<std::shared_ptr<Attachment>()>& make) const {
  const std::lock_guard lock(attachment_mutex_);
  if (attachment_ == nullptr) attachment_ = make();
  return attachment_;
}

Bytes Instructions::metadata_bytes() const {
  // Successors and intervals that steps open, in addition to what is counted.
  constexpr std::size_t bytes_of_step = 64;
  const std::size_t bytes = steps_.size() * (sizeof(Instruction) + bytes_of_step) +
                            operands_.size() * sizeof(Operand) + place_count() * sizeof(Interval);
  return static_cast<Bytes>(bytes);
}

}  // namespace palimpsest
