#include "strategy/loops/step_program.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "strategy/compile/forms.h"

namespace palimpsest {

StepProgram::StepProgram(std::shared_ptr<const Tape> tape, const Wanted& wanted,
                         const RunOptions& options, int threads, KeptPlannings* plannings)
    : tape_(std::move(tape)),
      threads_(threads),
      anomaly_(options.anomaly),
      profile_(options.profile) {
  std::vector<ValueId> targets = wanted.results;
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  LoweredStore::Request request{targets, wanted.backward_begins, {},
                                threads, options.machine,        options.costs.get()};
  request.results_elsewhere = true;
  Planned planned = plan_tape(*tape_, request, options, plannings);
  const Plan& plan = planned.plan;
  seconds_ = plan.simulation.cost;
  computed_ = plan.simulation.computed;
  live_peak_ = plan.simulation.peak;
  const Graph& graph = planned.lowered->graph();
  std::vector<double> ends(graph.node_count());
  for (NodeId unit = 0; unit < graph.node_count(); ++unit) {
    double start = 0;
    for (const ValueId input : graph.inputs(unit)) {
      start = std::max(start, ends[graph.producer(input)]);
    }
    ends[unit] = start + graph.cost(unit);
    longest_seconds_ = std::max(longest_seconds_, graph.cost(unit));
    serial_seconds_ = std::max(serial_seconds_, ends[unit]);
  }
  compute_overhead_ = plan.compute_overhead();
  instructions_ = std::make_shared<const Instructions>(*tape_, std::move(planned.lowered), plan);

  const std::span<const ValueId> sources = instructions_->sources();
  for (const ValueId argument : wanted.arguments) {
    const auto source = std::find(sources.begin(), sources.end(), argument);
    arguments_.push_back(
        source == sources.end() ? unread : static_cast<std::size_t>(source - sources.begin()));
  }
  for (const ValueId value : wanted.results) results_.push_back(find(value));
}

Bytes StepProgram::bytes() const {
  // What a node takes beside the tape: instructions, places in memory, names and attributes.
  constexpr Bytes bytes_of_node = 1'024;
  return tape_->metadata_bytes() + bytes_of_node * tape_->node_count();
}

StepProgram::Result StepProgram::find(ValueId value) const {
  using From = Result::From;
  const auto bytes = static_cast<std::size_t>(tape_->bytes(value));
  const Instructions::Place place =
      std::ranges::find(instructions_->results(), value, &Instructions::Held::value)->place;
  if (!instructions_->is_source(place)) return {From::result, 0, 0};  // without elements
  const std::size_t source = place - instructions_->source_place(0);
  const auto argument = std::find(arguments_.begin(), arguments_.end(), source);
  if (argument != arguments_.end()) {
    return {From::argument, static_cast<std::size_t>(argument - arguments_.begin()), bytes};
  }
  if (tape_->is_leaf(tape_->producer(instructions_->sources()[source]))) {
    return {From::constant, instructions_->sources()[source], bytes};
  }
  for (std::size_t before = 0; before < results_.size(); ++before) {
    if (results_[before].from == From::made && results_[before].place == source) {
      return {From::result, before, bytes};
    }
  }
  return {From::made, source, bytes};
}

StepRunner::StepRunner(std::shared_ptr<const StepProgram> program, std::span<std::byte> memory)
    : program_(std::move(program)),
      arena_(memory.first(static_cast<std::size_t>(program_->workspace()))),
      executor_(program_->instructions_) {
  bind_constants(program_->tape());
}

void StepRunner::bind_constants(const Tape& tape) {
  const std::span<const ValueId> sources = executor_.instructions().sources();
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (tape.has_value(sources[k])) executor_.set_source(k, tape.buffer(sources[k]));
  }
}

void StepRunner::run(std::span<std::byte* const> arguments, std::span<std::byte* const> results,
                     std::uint32_t round) {
  carry_out(program_->tape(), arguments, results, round, std::exchange(has_run_, true));
}

void StepRunner::run(const Tape& tape, std::span<std::byte* const> arguments,
                     std::span<std::byte* const> results, std::uint32_t round) {
  bind_constants(tape);
  carry_out(tape, arguments, results, round, false);
}

void StepRunner::carry_out(const Tape& tape, std::span<std::byte* const> arguments,
                           std::span<std::byte* const> results, std::uint32_t round, bool again) {
  using From = StepProgram::Result::From;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (program_->reads(i)) executor_.set_source(program_->arguments_[i], arguments[i]);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const StepProgram::Result& result = program_->results_[i];
    if (result.from == From::made) executor_.set_source(result.place, results[i]);
  }
  Executor::Settings settings;
  settings.threads = program_->threads();
  settings.anomaly = program_->anomaly_;
  settings.profile = program_->profile_;
  settings.round = round;
  settings.same_tape = again;
  settings.after_step = after_step_;
  if (executor_.instructions().any_long() && settings.threads > 1) {
    // Who waits in a step must not take up other work meanwhile, such as another loop.
    tbb::this_task_arena::isolate([&] { executor_.run(tape, {meter_, &arena_}, settings); });
  } else {
    executor_.run(tape, {meter_, &arena_}, settings);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const StepProgram::Result& result = program_->results_[i];
    const std::byte* from = nullptr;
    if (result.from == From::argument) from = arguments[result.place];
    if (result.from == From::result) from = results[result.place];
    if (result.from == From::constant) {
      from = tape.buffer(static_cast<ValueId>(result.place)).get();
    }
    if (from != nullptr) std::memcpy(results[i], from, result.bytes);
  }
}

}  // namespace palimpsest
