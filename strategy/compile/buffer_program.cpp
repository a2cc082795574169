#include "strategy/compile/buffer_program.h"

#include <algorithm>

#include "strategy/compile/compile.h"
#include "strategy/compile/results_in_place.h"
#include "strategy/compile/verify_passes.h"
#include "strategy/compile/verify_plan.h"

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
  if (!interface.donations.empty()) find_replacements(interface);
}

void BufferProgram::find_replacements(const BufferInterface& interface) {
  const Lowered& lowered = *compiled_->lowered;
  const ResultsInPlace in_place(*tape_, lowered, plan().schedule);
  for (const auto& [argument, result] : interface.donations) {
    const auto at = std::ranges::find(interface.results, result) - interface.results.begin();
    const auto given =
        std::ranges::find(interface.arguments, argument) - interface.arguments.begin();
    const Result& made = results_[static_cast<std::size_t>(at)];
    const std::size_t source = arguments_[static_cast<std::size_t>(given)];
    if (made.from != Result::From::made || std::ranges::count(arguments_, source) != 1) continue;
    const auto found = std::ranges::find(lowered.results(), result, &Lowered::Result::recorded);
    const ValueId root = lowered.graph().storage(found->value);
    const std::vector<ValueId> sources = in_place.find(root).sources;
    const auto is_argument = [&](ValueId each) { return lowered.recorded(each) == argument; };
    if (std::ranges::none_of(sources, is_argument)) continue;
    replacements_.emplace_back(static_cast<std::size_t>(at), static_cast<std::size_t>(given));
    if (verifies_passes()) {
      verify_replacement(*instructions(), instructions()->source_place(source),
                         instructions()->source_place(made.place));
    }
  }
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
  const Result& made = results_[result];
  if (made.from == Result::From::argument) return made.place == argument;
  return std::ranges::find(replacements_, std::pair(result, argument)) != replacements_.end();
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
  spec.donations = interface.donations;
  ProgramCache own;
  const CompileContext context{
      .cache = cache != nullptr ? *cache : own, .loops = &loops, .fit_caches = false};
  const OrRefusal<Compilation> made = compile(*tape, spec, options, context);
  if (!made) return made.refusal();
  return BufferProgramPtr(
      std::make_shared<const BufferProgram>(tape, interface, made->program, options));
}

}  // namespace palimpsest
