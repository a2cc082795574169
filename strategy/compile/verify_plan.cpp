#include "strategy/compile/verify_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace palimpsest {
namespace {

[[noreturn]] void fail_rule(const char* rule, std::uint32_t step) {
  throw InternalError("a plan breaks a rule: " + std::string(rule) +
                      (step == none ? "" : ", at step " + std::to_string(step)));
}

void require_rule(bool holds, const char* rule, std::uint32_t step = none) {
  if (!holds) fail_rule(rule, step);
}

bool share_bytes(const Interval& a, const Interval& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// The steps that have always ended when a step begins, in any execution order.
class StepOrder {
 public:
  /// Nothing for a program of many steps.
  static std::optional<StepOrder> of(const Dependencies& dependencies) {
    constexpr std::uint32_t most_steps = 1024;
    if (dependencies.step_count() > most_steps) return {};
    return StepOrder(dependencies);
  }
  bool precedes(std::uint32_t first, std::uint32_t second) const {
    return (before_[std::size_t{words_} * second + first / 64] >> first % 64 & 1) != 0;
  }

 private:
  explicit StepOrder(const Dependencies& dependencies)
      : words_((dependencies.step_count() + 63) / 64),
        before_(std::size_t{words_} * dependencies.step_count()) {
    for (std::uint32_t step = 0; step < dependencies.step_count(); ++step) {
      for (const std::uint32_t next : dependencies.successors(step)) {
        require_rule(next > step, "a step waits for a later step of the schedule", next);
        for (std::uint32_t i = 0; i < words_; ++i) row(next)[i] |= row(step)[i];
        row(next)[step / 64] |= std::uint64_t{1} << step % 64;
      }
    }
  }
  std::uint64_t* row(std::uint32_t step) { return before_.data() + std::size_t{words_} * step; }

  std::uint32_t words_;
  std::vector<std::uint64_t> before_;
};

/// Simulates the places of instructions in schedule order.
class InstructionCheck {
 public:
  InstructionCheck(const Instructions& instructions, const Plan& plan)
      : instructions_(instructions),
        plan_(plan),
        graph_(instructions.lowered().graph()),
        storages_(graph_.value_count()),
        touched_(instructions.intervals().size()) {
    order_ = StepOrder::of(instructions.dependencies());
  }

  void check() {
    const std::vector<Step>& steps = plan_.schedule.steps;
    require_rule(instructions_.steps().size() == steps.size(), "steps have no instructions");
    for (std::size_t i = 0; i < instructions_.sources().size(); ++i) {
      sources_[instructions_.sources()[i]] = instructions_.source_place(i);
    }
    find_present();
    for (step_ = 0; step_ < steps.size(); ++step_) {
      if (steps[step_].kind == Step::Kind::compute) compute(steps[step_].id);
      if (steps[step_].kind == Step::Kind::drop) drop();
    }
    step_ = none;
    const auto results = instructions_.lowered().results();
    require_rule(instructions_.results().size() == results.size(),
                 "the results are not the requested targets");
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Instructions::Held& held = instructions_.results()[i];
      require_rule(held.value == results[i].recorded, "a result is another value");
      require_rule(held.place == place(results[i].value), "a result is taken from another place");
    }
  }

 private:
  struct Storage {
    bool is_made = false;
    std::uint32_t interval = none;
    Instructions::Place in_result = none;     // in the buffer of a result
    std::vector<std::uint32_t> touched = {};  // steps that wrote or read it since it was opened
    std::uint32_t writer = none;              // the last
  };

  void require(bool holds, const char* rule) const { require_rule(holds, rule, step_); }

  void find_present() {
    std::uint32_t next = 0;
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      const ValueId root = graph_.storage(value);
      if (graph_.is_source_value(root)) storages_[root].is_made = true;
      if (!graph_.is_present(value) || storages_[root].is_made) continue;
      storages_[root].is_made = true;
      if (graph_.bytes(root) > 0) storages_[root].interval = next++;
    }
    require(next == instructions_.open_at_start(), "the values at the start differ");
    for (std::uint32_t i = 0; i < next; ++i) {
      const ValueId root = instructions_.intervals()[i].storage;
      require(root < storages_.size() && storages_[root].interval != none,
              "an interval that is open at the start belongs to no present value");
      storages_[root].interval = i;
    }
  }

  /// Where a value lies now.
  Instructions::Place place(ValueId value) const {
    const ValueId root = graph_.storage(value);
    require(storages_[root].is_made, "a value is read that nothing has made");
    if (graph_.is_source_value(root) || graph_.is_elsewhere(root)) {
      const auto source = sources_.find(instructions_.lowered().recorded(root));
      require(source != sources_.end(), "a source has no place");
      return source->second;
    }
    if (storages_[root].in_result != none) return storages_[root].in_result;
    if (graph_.bytes(root) == 0) return instructions_.empty_place();
    require(storages_[root].interval != none, "a value has no interval");
    return storages_[root].interval;
  }

  void follows(std::uint32_t before) const {
    if (before == none || before == step_ || !order_) return;
    require(order_->precedes(before, step_), "a step does not wait for one that it needs");
  }

  void check_operand(std::size_t at, ValueId value) const {
    require(at < instructions_.places().size(), "an operand is missing");
    const Instructions::Place where = place(value);
    require(instructions_.places()[at] == where, "an operand is taken from another place");
    if (where >= instructions_.intervals().size()) return;
    require(instructions_.operands()[at].type.bytes() <= instructions_.intervals()[where].bytes,
            "an operand is larger than its place");
  }

  void compute(NodeId unit) {
    const Instructions::Instruction& made = instructions_.steps()[step_];
    require(made.unit == unit, "an instruction belongs to another unit");
    const bool runs = made.operation != nullptr;
    const std::span<const ValueId> inputs = graph_.inputs(unit);
    require(!runs || (made.inputs == inputs.size() && made.outputs == graph_.output_count(unit)),
            "an instruction has other operands than its unit");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Storage& storage = storages_[graph_.storage(inputs[i])];
      if (runs) check_operand(made.first_operand + i, inputs[i]);
      check_buffer(graph_.storage(inputs[i]));
      follows(storage.writer);
      touch(storage);
    }
    for (const std::uint32_t interval : instructions_.dependencies().opened(step_)) {
      open(interval);
      const ValueId root = instructions_.intervals()[interval].storage;
      require(root < storages_.size() && graph_.producer(root) == unit,
              "a step opens another's place");
      storages_[root] = {.interval = interval};
    }
    if (made.workspace != none) {
      open(made.workspace);
      touched_[made.workspace].push_back(step_);
    }
    const Bytes workspace =
        made.workspace == none ? 0 : instructions_.intervals()[made.workspace].bytes;
    require(workspace >= graph_.workspace(unit), "a step has too little workspace");
    for (std::uint32_t i = 0; i < graph_.output_count(unit); ++i) {
      const ValueId output = graph_.first_output(unit) + i;
      if (graph_.storage(output) != output) continue;  // a view, which writes nothing
      Storage& storage = storages_[output];
      storage.is_made = true;
      const std::size_t at = made.first_operand + made.inputs + i;
      if (runs) find_buffer(at, output);
      if (runs) check_operand(at, output);
      for (const std::uint32_t before : storage.touched) follows(before);
      storage.writer = step_;
      touch(storage);
    }
  }

  /// A value may lie in the buffer of a result that replaces it.
  void find_buffer(std::size_t at, ValueId output) {
    require(at < instructions_.places().size(), "an operand is missing");
    const Instructions::Place where = instructions_.places()[at];
    if (!instructions_.is_source(where)) return;
    if (!graph_.is_elsewhere(output)) storages_[output].in_result = where;
    const auto [there, is_first] = buffers_.try_emplace(where, output);
    if (is_first || there->second == output) return;
    for (const std::uint32_t step : storages_[there->second].touched) follows(step);
    there->second = output;
  }

  void check_buffer(ValueId root) const {
    const bool is_in_buffer = graph_.is_elsewhere(root) || storages_[root].in_result != none;
    if (!is_in_buffer) return;
    const auto there = buffers_.find(place(root));
    require(there != buffers_.end() && there->second == root,
            "a value is read after another one was written to its buffer");
  }

  void touch(Storage& storage) {
    storage.touched.push_back(step_);
    if (storage.interval != none) touched_[storage.interval].push_back(step_);
  }

  /// Requires that the earlier users of the interval's bytes have ended.
  void open(std::uint32_t interval) const {
    require(interval < instructions_.intervals().size(), "a step opens no interval");
    const Interval& opened = instructions_.intervals()[interval];
    require(opened.first == step_, "an interval is opened at another step");
    if (!order_) return;
    for (std::uint32_t other = 0; other < instructions_.intervals().size(); ++other) {
      if (other == interval || !share_bytes(opened, instructions_.intervals()[other])) continue;
      for (const std::uint32_t step : touched_[other]) follows(step);
    }
  }

  void drop() {
    const std::uint32_t closed = instructions_.steps()[step_].closed;
    if (closed == none) return;
    require(closed < instructions_.intervals().size(), "a drop closes no interval");
    const ValueId root = graph_.storage(plan_.schedule.steps[step_].id);
    require(instructions_.intervals()[closed].storage == root, "a drop closes another's place");
    for (const std::uint32_t step : touched_[closed]) follows(step);
    touched_[closed].push_back(step_);
    storages_[root] = {};
  }

  const Instructions& instructions_;
  const Plan& plan_;
  const Graph& graph_;
  std::optional<StepOrder> order_;
  std::map<ValueId, Instructions::Place> sources_;   // by value of the tape
  std::map<Instructions::Place, ValueId> buffers_;   // of results: the root there
  std::vector<Storage> storages_;                    // by root
  std::vector<std::vector<std::uint32_t>> touched_;  // by interval, the steps that did
  std::uint32_t step_ = none;
};

}  // namespace

void verify(const Graph& graph, const Plan& plan) {
  try {
    const Simulation simulation = simulate(graph, plan.schedule);
    require_rule(simulation.peak == plan.simulation.peak, "the peak is not the predicted one");
    require_rule(simulation.cost == plan.simulation.cost, "the cost is not the predicted one");
  } catch (const ScheduleError& error) {
    throw InternalError("a plan breaks a rule: " + std::string(error.what()));
  }
  const std::vector<Interval>& intervals = plan.layout.intervals;
  std::vector<std::uint32_t> by_end(intervals.size());
  for (std::uint32_t i = 0; i < by_end.size(); ++i) by_end[i] = i;
  std::ranges::sort(by_end, {}, [&](std::uint32_t i) { return intervals[i].last; });
  std::map<Bytes, std::uint32_t> occupied;  // by offset
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    require_rule(i == 0 || intervals[i - 1].first <= interval.first, "intervals are out of order");
    require_rule(interval.first <= interval.last && interval.offset >= 0 && interval.bytes > 0 &&
                     interval.offset % Bytes{buffer_alignment} == 0 &&
                     interval.offset + interval.bytes <= plan.layout.size,
                 "an interval does not lie in the arena", interval.first);
    for (; ended < by_end.size() && intervals[by_end[ended]].last < interval.first; ++ended) {
      const auto there = occupied.find(intervals[by_end[ended]].offset);
      if (there != occupied.end() && there->second == by_end[ended]) occupied.erase(there);
    }
    const auto overlaps = [&](auto other) {
      return other->second != interval.takes_over &&
             share_bytes(intervals[other->second], interval);
    };
    const auto next = occupied.lower_bound(interval.offset);
    const bool is_free = (next == occupied.end() || !overlaps(next)) &&
                         (next == occupied.begin() || !overlaps(std::prev(next)));
    require_rule(is_free, "two values that are live at once share bytes", interval.first);
    if (interval.takes_over != none) {
      const Interval& before = intervals[interval.takes_over];
      require_rule(before.offset == interval.offset && before.bytes == interval.bytes,
                   "an in-place value is not in its donor's place", interval.first);
    }
    occupied[interval.offset] = i;
  }
}

void verify(const Instructions& instructions, const Plan& plan) {
  InstructionCheck(instructions, plan).check();
}

void verify_replacement(const Instructions& instructions, Instructions::Place argument,
                        Instructions::Place result) {
  const auto reads = [&](const Instructions::Instruction& step) {
    const auto inputs = instructions.places().subspan(step.first_operand, step.inputs);
    return step.operation != nullptr && std::ranges::find(inputs, argument) != inputs.end();
  };
  const auto writes = [&](const Instructions::Instruction& step) {
    const auto outputs =
        instructions.places().subspan(step.first_operand + step.inputs, step.outputs);
    return step.operation != nullptr && std::ranges::find(outputs, result) != outputs.end();
  };
  const std::optional<StepOrder> order = StepOrder::of(instructions.dependencies());
  const auto steps = instructions.steps();
  const auto writer =
      static_cast<std::uint32_t>(std::ranges::find_if(steps, writes) - steps.begin());
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    if (step == writer || !reads(steps[step])) continue;
    require_rule(step < writer && (!order || order->precedes(step, writer)),
                 "an argument is read after a result is written over it", step);
  }
  for (const Instructions::Held& each : instructions.results()) {
    require_rule(each.place != argument, "a result that is an argument is written over");
  }
}

}  // namespace palimpsest
