#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "autodiff/custom.h"
#include "autodiff/execute.h"
#include "autodiff/operations/counted_mean.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/require_function.h"
#include "autodiff/run_control.h"
#include "autodiff/run_scope.h"
#include "autodiff/trace.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "checkpoint/stores/codec_option.h"
#include "checkpoint/tape_graph.h"

namespace palimpsest {
namespace {

/// Where the values of a sub-program lie when it runs on so many threads: in its workspace, or in
/// one of its outputs.
struct Arrangement {
  struct Place {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  Plan plan;
  std::vector<Place> storages;    // by value, in the workspace
  std::vector<Place> workspaces;  // by node, in the workspace
};

/// A traced function as a program to run, independent of the tape it is recorded on.
class Subprogram {
 public:
  Subprogram(Trace traced, const Where& where)
      : trace(std::move(traced)),
        place_(", in the checkpoint (recorded at " + to_string(where) + ")") {
    const Tape& program = trace.program();
    const Graph graph = graph_of(program, trace.outputs());
    home_.assign(program.value_count(), none);
    storage_.resize(program.value_count());
    for (ValueId value = 0; value < program.value_count(); ++value) {
      storage_[value] = graph.storage(value);
    }
    for (std::uint32_t i = 0; i < trace.outputs().size(); ++i) {
      const ValueId root = storage_[trace.outputs()[i]];
      if (!graph.is_source_value(root) && home_[root] == none) home_[root] = i;
    }
    for (NodeId node = 0; node < program.node_count(); ++node) {
      const Cost cost = cost_of(NodeView(program.nodes(), node));
      cost_.flops += cost.flops;
      cost_.bytes += cost.bytes;
    }
  }

  const Trace trace;

  Cost cost() const { return cost_; }
  Bytes workspace(int threads) const { return arrangement(threads).plan.layout.size; }
  void run(const CustomCall& call) const;

 private:
  const Arrangement& arrangement(int threads) const;
  Graph graph_for(int threads) const;

  std::string place_;                // for messages about its nodes
  std::vector<std::uint32_t> home_;  // by storage: the output it lies in
  std::vector<ValueId> storage_;     // by value
  Cost cost_;
  mutable std::mutex mutex_;
  mutable std::map<int, Arrangement> arrangements_;  // by number of threads
};

/// The program's graph. Values that lie in an output take no bytes.
Graph Subprogram::graph_for(int threads) const {
  const Graph full = graph_of(trace.program(), {}, threads);
  Graph graph;
  for (NodeId node = 0; node < full.node_count(); ++node) {
    std::vector<Graph::Output> outputs(full.output_count(node));
    for (std::uint32_t i = 0; i < outputs.size(); ++i) {
      const ValueId value = full.first_output(node) + i;
      outputs[i].bytes = home_[storage_[value]] == none ? trace.program().bytes(value) : 0;
      if (trace.program().operation(node).view) outputs[i].view_of = 0;
    }
    graph.add_node(full.inputs(node), outputs,
                   {.cost = full.cost(node),
                    .workspace = full.workspace(node),
                    .source = full.is_source(node),
                    .name = full.describe(node)});
  }
  for (const ValueId output : trace.outputs()) graph.add_target(output);
  return graph;
}

const Arrangement& Subprogram::arrangement(int threads) const {
  const std::lock_guard lock(mutex_);
  const auto known = arrangements_.find(threads);
  if (known != arrangements_.end()) return known->second;
  Arrangement made;
  made.plan = make_plan(graph_for(threads), *keep_all());
  made.storages.resize(trace.program().value_count());
  made.workspaces.resize(trace.program().node_count());
  for (const Interval& interval : made.plan.layout.intervals) {
    Arrangement::Place& place = interval.storage == Interval::workspace
                                    ? made.workspaces[made.plan.schedule.steps[interval.first].id]
                                    : made.storages[interval.storage];
    place = {static_cast<std::size_t>(interval.offset), static_cast<std::size_t>(interval.bytes)};
  }
  return arrangements_.emplace(threads, std::move(made)).first->second;
}

void Subprogram::run(const CustomCall& call) const {
  const Tape& program = trace.program();
  const Arrangement& places = arrangement(call.threads);
  internal_check(std::ssize(call.workspace) >= places.plan.layout.size,
                 "a checkpoint runs on more threads than it was planned for");
  alignas(buffer_alignment) std::byte nothing[1];  // for values without elements
  const auto data = [&](ValueId value) -> std::byte* {
    const ValueId root = storage_[value];
    if (root < trace.argument_count()) return call.inputs[root].raw();
    if (program.is_leaf(program.producer(root))) return program.buffer(root).get();
    if (home_[root] != none) return call.outputs[home_[root]].raw();
    return call.workspace.empty() ? nothing : &call.workspace[places.storages[root].offset];
  };
  std::optional<RunScope> scope;
  if (call.scope != nullptr) scope.emplace(*call.scope, RunScope::Of::checkpoint);
  std::vector<Operand> operands;
  for (const Step& step : places.plan.schedule.steps) {
    if (call.control != nullptr) call.control->check();
    if (step.kind != Step::Kind::compute) continue;
    const NodeId node = step.id;
    const Operation& operation = program.operation(node);
    if (operation.view) continue;
    operands.clear();
    for (const ValueId input : program.inputs(node)) {
      operands.push_back({data(input), program.type(input)});
    }
    const std::size_t inputs = operands.size();
    for (ValueId i = 0; i < program.output_count(node); ++i) {
      const ValueId output = program.first_output(node) + i;
      operands.push_back({data(output), program.type(output)});
    }
    const std::span<const Operand> all(operands);
    const Arrangement::Place scratch = places.workspaces[node];
    const std::span<const Operand> read = all.first(inputs);
    const std::span<const Operand> made = all.subspan(inputs);
    const KernelCall kernel{program.attributes(node),
                            read,
                            made,
                            call.workspace.subspan(scratch.offset, scratch.bytes),
                            call.threads,
                            call.round,
                            nullptr,
                            scope ? &*scope : nullptr};
    try {
      execute(operation, kernel);
      if (scope && scope->anomaly) check_finite(program, node, read, made);
    } catch (const AnomalyError& error) {
      throw AnomalyError(error.what() + place_);
    }
  }
  for (std::uint32_t i = 0; i < call.outputs.size(); ++i) {
    const ValueId output = trace.outputs()[i];
    if (home_[storage_[output]] == i) continue;
    // An argument, a constant, or a value returned twice.
    std::memcpy(call.outputs[i].raw(), data(output),
                static_cast<std::size_t>(call.outputs[i].bytes()));
  }
}

struct KeptAttributes {
  Codec codec;
  Where where;  // for messages
  bool operator==(const KeptAttributes& other) const { return codec == other.codec; }
};

void make_copy(const KernelCall& call) {
  const auto& [codec, where] = call.attributes.as<KeptAttributes>();
  const auto bytes_of = [](const Operand& operand) {
    return std::span(operand.data, static_cast<std::size_t>(operand.type.bytes()));
  };
  try {
    encode(bytes_of(call.input()), call.input().dtype(), codec, bytes_of(call.output()));
  } catch (const ArgumentError& error) {
    throw ArgumentError(
        "checkpoint",
        std::string("an input cannot be kept with CheckpointOptions::codec: ") + error.what(),
        where);
  }
}

const Operation kept_operation{
    .name = "kept_input",
    .formula = "y = x, ∂y/∂x = 1",
    .summary = "an input of a checkpoint in fewer bits",
    .compute = make_copy,
    .vjp = [](const Pullback& p) { p.set(0, cast(p.adjoint(), p.input().dtype(), p.where())); },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::recorded,
};

/// Records an input as it is kept with `codec`: a narrow copy, or the input itself.
Var keep(const Var& input, Codec codec, const Where& where) {
  const ValueType stored{input.shape(), stored_dtype(input.dtype(), codec)};
  if (stored.dtype == input.dtype() || input.tape().is_leaf(input.node())) return input;
  return input.tape().record(kept_operation, {&input, 1}, {&stored, 1},
                             KeptAttributes{codec, where}, where);
}

/// The copy that `keep` recorded after the checkpoint that made `output`. A copy of the program may
/// lack it.
Var kept_input(const Var& output, const Var& input, Codec codec, const Where& where) {
  Tape& tape = input.tape();
  for (NodeId node = output.node() + 1; node < tape.node_count(); ++node) {
    if (&tape.operation(node) != &kept_operation) break;
    if (tape.inputs(node)[0] == input.id()) return tape.var(tape.first_output(node));
  }
  return keep(input, codec, where);
}

/// Records a traced function of `arguments`, of which the first `inputs` are kept with `codec`.
std::vector<Var> record_checkpoint(const std::shared_ptr<const Subprogram>& body,
                                   std::span<const Var> arguments, std::size_t inputs, Codec codec,
                                   const Where& where) {
  const CustomOperation operation({
      .name = "checkpoint",
      .types =
          [body](std::span<const ValueType>) {
            std::vector<ValueType> types;
            for (const ValueId output : body->trace.outputs()) {
              types.push_back(body->trace.program().type(output));
            }
            return types;
          },
      .forward = [body](const CustomCall& call) { body->run(call); },
      .vjp =
          [body, inputs, codec](const Pullback& p) {
            std::vector<Var> at;
            for (std::size_t i = 0; i < p.input_count(); ++i) at.push_back(p.input(i));
            for (std::size_t i = 0; i < inputs; ++i) {
              const DType dtype = at[i].dtype();
              at[i] = cast(kept_input(p.output(), at[i], codec, p.where()), dtype, p.where());
            }
            pull_back_through(
                p, [&](std::span<const Var> xs) { return body->trace.replay(xs, p.where()); }, at);
          },
      .cost = [body](const NodeView&) { return body->cost(); },
      .workspace = [body](const NodeView&, int threads) { return body->workspace(threads); },
      .half = HalfSupport::native,
      .narrow =
          [body, inputs, codec](std::span<const Var> xs, const Where& at) {
            std::vector<DType> dtypes;
            for (const Var& x : xs) dtypes.push_back(x.dtype());
            const auto narrow =
                std::make_shared<const Subprogram>(body->trace.narrowed(dtypes), at);
            return record_checkpoint(narrow, xs, inputs, codec, at);
          },
      .shares_threads = true,
  });
  const Var first = operation(arguments, where);
  std::vector<Var> outputs;
  for (std::uint32_t i = 0; i < body->trace.outputs().size(); ++i) {
    outputs.push_back(first.output(i));
  }
  // They are no inputs of the node, so that it runs without them.
  for (const Var& input : arguments.first(inputs)) keep(input, codec, where);
  return outputs;
}

}  // namespace

std::vector<Var> checkpoint(const Composition& f, std::span<const Var> inputs, Where where) {
  return checkpoint(CheckpointOptions(), f, inputs, where);
}

std::vector<Var> checkpoint(const CheckpointOptions& options, const Composition& f,
                            std::span<const Var> inputs, Where where) {
  detail::require_function(f, "checkpoint", "the argument", "records values", where);
  require_codec(options.codec, "[checkpoint] CheckpointOptions::codec");
  std::vector<Tape::Update> updates;  // by the values that are outputs after those of f
  std::size_t counts = 0;             // that means in f divide by; the last outputs
  // Updates by values from outside stay on the tape as they are.
  const ValueId first_inside =
      inputs.empty() ? 0 : common_tape(inputs, "checkpoint", where).value_count();
  const Composition with_further_results = [&](std::span<const Var> xs) {
    Tape& tape = common_tape(xs, "checkpoint", where);
    const std::size_t before = tape.updates().size();
    const NodeId first = tape.node_count();
    std::vector<Var> results = f(xs);
    if (results.empty()) return results;
    for (const Tape::Update& update : tape.updates().subspan(before)) {
      if (update.value < first_inside) continue;
      results.push_back(tape.var(update.value));
      updates.push_back(update);
    }
    for (NodeId node = first; node < tape.node_count(); ++node) {
      if (count_mark(tape, node) != CountMark::own) continue;
      results.push_back(tape.var(tape.first_output(node)));
      ++counts;
    }
    return results;
  };
  const auto body = std::make_shared<const Subprogram>(
      Trace(with_further_results, inputs, where, "checkpoint"), where);
  std::vector<Var> arguments(inputs.begin(), inputs.end());
  const auto captured = body->trace.captured();
  arguments.insert(arguments.end(), captured.begin(), captured.end());
  std::vector<Var> outputs =
      record_checkpoint(body, arguments, inputs.size(), options.codec, where);
  const std::size_t returned = outputs.size() - updates.size() - counts;
  for (const Var& count : std::span(outputs).last(counts)) marked(count, CountMark::own, where);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    outputs[0].tape().update_after_run(updates[i].target, outputs[returned + i], updates[i].weight,
                                       where);
  }
  outputs.resize(returned);
  return outputs;
}

}  // namespace palimpsest
