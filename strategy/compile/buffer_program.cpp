#include "strategy/compile/buffer_program.h"

#include <algorithm>

#include "strategy/compile/compile.h"

namespace palimpsest {

BufferProgram::BufferProgram(std::shared_ptr<const Tape> tape, const BufferInterface& interface,
                             std::shared_ptr<const CompiledProgram> compiled,
                             const RunOptions& options)
    : tape_(std::move(tape)),
      compiled_(std::move(compiled)),
      threads_(options.threads),
      anomaly_(options.anomaly),
      profile_(options.profile) {
  const Graph& graph = compiled_->lowered->graph();
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
  const std::span<const ValueId> sources = instructions()->sources();
  for (const ValueId argument : interface.arguments) {
    const auto source = std::find(sources.begin(), sources.end(), argument);
    arguments_.push_back(
        source == sources.end() ? unread : static_cast<std::size_t>(source - sources.begin()));
  }
  for (const ValueId value : interface.results) results_.push_back(find(value));
  result_values_ = interface.results;
}

Bytes BufferProgram::bytes() const {
  // The tape's attributes and the lowered graph, in addition to what is counted.
  constexpr Bytes bytes_of_node = 1'024;
  return tape_->metadata_bytes() + bytes_of_node * tape_->node_count();
}

BufferProgram::Result BufferProgram::find(ValueId value) const {
  using From = Result::From;
  const Instructions& made = *instructions();
  const auto bytes = static_cast<std::size_t>(tape_->bytes(value));
  const Instructions::Place place =
      std::ranges::find(made.results(), value, &Instructions::Held::value)->place;
  if (!made.is_source(place)) return {From::result, 0, 0};  // without elements
  const std::size_t source = place - made.source_place(0);
  const auto argument = std::find(arguments_.begin(), arguments_.end(), source);
  if (argument != arguments_.end()) {
    return {From::argument, static_cast<std::size_t>(argument - arguments_.begin()), bytes};
  }
  if (tape_->is_leaf(tape_->producer(made.sources()[source]))) {
    return {From::constant, made.sources()[source], bytes};
  }
  for (std::size_t before = 0; before < results_.size(); ++before) {
    if (results_[before].from == From::made && results_[before].place == source) {
      return {From::result, before, bytes};
    }
  }
  return {From::made, source, bytes};
}

bool BufferProgram::may_write_over(std::size_t result, std::size_t argument) const {
  const auto& [from, place, bytes] = results_[result];
  if (from == Result::From::argument) return place == argument;
  if (from != Result::From::made || !reads(argument)) return false;
  const Lowered& lowered = *compiled_->lowered;
  const Graph& graph = lowered.graph();
  const ValueId value = result_values_[result];
  const ValueId made =
      graph.storage(std::ranges::find(lowered.results(), value, &Lowered::Result::recorded)->value);
  const NodeId unit = graph.producer(made);
  const ValueId given = instructions()->sources()[arguments_[argument]];
  const auto is_given = [&](ValueId each) {
    return lowered.recorded(graph.storage(each)) == given;
  };
  const ValueType before = tape_->type(given);
  const ValueType after = tape_->type(lowered.recorded(made));
  if (before.dtype != after.dtype || before.shape.elements() != after.shape.elements())
    return false;
  if (std::ranges::count(arguments_, arguments_[argument]) != 1) return false;
  if (std::ranges::any_of(graph.targets(), is_given)) return false;
  std::ptrdiff_t reads = 0;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    reads += std::ranges::count_if(graph.inputs(node), is_given);
  }
  const std::ptrdiff_t runs =
      std::ranges::count_if(instructions()->steps(), [&](const Instructions::Instruction& step) {
        return step.unit == unit && step.operation != nullptr;
      });
  const auto inputs = graph.inputs(unit);
  const auto input = std::ranges::find_if(inputs, is_given) - inputs.begin();
  if (reads != 1 || runs != 1 || input == std::ssize(inputs)) return false;
  const FusedKernel* const group = lowered.program(unit);
  if (group == nullptr) return graph.takes_over(made) == input;
  return group->may_write_over(made - graph.first_output(unit), static_cast<std::uint32_t>(input));
}

OrRefusal<BufferProgramPtr> compile_for_buffers(const std::shared_ptr<Tape>& tape,
                                                const BufferInterface& interface,
                                                const RunOptions& options, LoopStateBudgets& loops,
                                                ProgramCache* cache) {
  std::vector<ValueId> targets = interface.results;
  std::ranges::sort(targets);
  targets.erase(std::ranges::unique(targets).begin(), targets.end());
  ProgramSpec spec{targets,         interface.backward_begins, {},
                   options.threads, options.machine,           options.costs.get()};
  spec.results_in_buffers = true;
  ProgramCache own;
  const CompileContext context{
      .cache = cache != nullptr ? *cache : own, .loops = &loops, .fit_caches = false};
  const OrRefusal<Compilation> made = compile(*tape, spec, options, context);
  if (!made) return made.refusal();
  return BufferProgramPtr(
      std::make_shared<const BufferProgram>(tape, interface, made->program, options));
}

}  // namespace palimpsest
