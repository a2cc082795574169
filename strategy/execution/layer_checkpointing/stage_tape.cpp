#include "strategy/execution/layer_checkpointing/stage_tape.h"

#include <algorithm>
#include <map>
#include <set>

#include "autodiff/gradient.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/storage_version.h"
#include "checkpoint/tape_graph.h"
#include "strategy/base/digest.h"
#include "strategy/base/parameters.h"
#include "strategy/compile/fusion/fingerprint.h"
#include "strategy/evaluators/engine.h"
#include "strategy/execution/layer_checkpointing/inner_programs.h"
#include "strategy/execution/precision/precise.h"
#include "strategy/execution/precision/translation.h"
#include "strategy/run/present.h"

namespace palimpsest {
namespace {

std::string recorded_at(const Tape& tape, NodeId node) {
  return " (recorded at " + to_string(tape.where(node)) + ")";
}

/// The evaluator of a tape whose input has no value.
class NoValues : public Evaluator {
 public:
  explicit NoValues(const LayerPrecision& precision) : precision_(precision) {}

  void on_record(Tape&, std::uint32_t) override {}
  void compute(Tape& tape, std::span<const std::uint32_t> values) override {
    const NodeId node = tape.producer(values.front());
    throw ArgumentError("the function reads the value of " + tape.describe(node) +
                        ", but layers are measured without values; make it depend on "
                        "shapes only, or use neither a forecast nor mode dynamic" +
                        (tape.is_leaf(node) ? "" : recorded_at(tape, node)));
  }
  void on_clear(Tape&) noexcept override {}
  InnerRewrite inner() const override { return precision_ ? rewrite_in(*precision_) : nullptr; }

 private:
  LayerPrecision precision_;
};

/// Gives a leaf a value for its lifetime.
class Lent {
 public:
  Lent(Tape& tape, ValueId leaf, const Buffer& buffer) : tape_(tape), leaf_(leaf) {
    tape_.set_buffer(leaf_, buffer);
  }
  ~Lent() { tape_.set_buffer(leaf_, nullptr); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  Tape& tape_;
  ValueId leaf_;
};

/// Drops values of a tape when it is destroyed, also after an exception. Adjoints that stayed would
/// be mistaken for those of the next seed.
class Passing {
 public:
  Passing(Tape& tape, std::span<const ValueId> values) : tape_(tape), values_(values) {}
  ~Passing() {
    for (const ValueId value : values_) tape_.drop(value);
  }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;

 private:
  Tape& tape_;
  std::span<const ValueId> values_;
};

/// Whether a value's storage is made by a node, directly or through a view, and not by a source.
bool is_made(const Graph& graph, ValueId value) {
  return !graph.is_source_value(graph.storage(value));
}

std::set<ValueId> storages_of(const Graph& graph, std::span<const ValueId> values) {
  std::set<ValueId> storages;
  for (const ValueId value : values) storages.insert(graph.storage(value));
  return storages;
}

double cost_from(const Graph& graph, NodeId first) {
  double seconds = 0;
  for (const NodeId node : graph.needed_nodes()) {
    if (node >= first) seconds += graph.cost(node);
  }
  return seconds;
}

std::vector<ValueId> ids_of(std::span<const Var> values) {
  std::vector<ValueId> ids;
  for (const Var& value : values) ids.push_back(value.id());
  return ids;
}

}  // namespace

std::shared_ptr<EngineEvaluator> in_precision_of(const std::shared_ptr<EngineEvaluator>& evaluator,
                                                 const LayerPrecision& precision) {
  return precision ? precise(*precision, evaluator) : evaluator;
}

std::unique_ptr<Tape> tape_from(const Streams& streams, std::shared_ptr<Evaluator> evaluator) {
  auto tape = std::make_unique<Tape>(std::move(evaluator));
  tape->set_seed(streams.seed);
  tape->set_part(streams.part);
  for (std::uint32_t i = 0; i < streams.first; ++i) tape->fresh_stream();
  return tape;
}

void require_outputs_of(const Tape& tape, std::span<const Var> outputs) {
  const auto is_own = [&](const Var& output) {
    return output.defined() && output.belongs_to(tape);
  };
  if (std::ranges::all_of(outputs, is_own)) return;
  throw TapeError(
      "an auxiliary output is not a value on the tape of the function's input; return values that "
      "the function records");
}

void require_parameters(const Tape& tape, std::size_t count) {
  std::size_t found = 0;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.is_parameter(node) || ++found <= count) continue;
    throw ArgumentError("the function records parameter " + tape.describe(node) +
                        ", whose gradient would be lost; list it among the parameters of the "
                        "layer, or record a constant" +
                        recorded_at(tape, node));
  }
}

bool depends_on(const Tape& tape, ValueId value, ValueId source) {
  std::vector<bool> depends(tape.value_count());
  depends[source] = true;
  for (NodeId node = tape.producer(source) + 1; node < tape.node_count(); ++node) {
    const auto inputs = tape.inputs(node);
    if (std::none_of(inputs.begin(), inputs.end(), [&](ValueId input) { return depends[input]; })) {
      continue;
    }
    const ValueId first = tape.first_output(node);
    for (ValueId i = 0; i < tape.output_count(node); ++i) depends[first + i] = true;
  }
  return depends[value];
}

Tensor copy_of(const Tensor& tensor, const Allocate& allocate) {
  const Buffer copy = allocate(tensor.bytes());
  std::copy_n(tensor.raw(), tensor.bytes(), copy.get());
  return Tensor(copy, tensor.shape(), tensor.dtype());
}

StageTape::StageTape(const StageFunction& stage, const Tensor& input, const Streams& streams,
                     std::shared_ptr<EngineEvaluator> evaluator, const LayerPrecision& precision)
    : stage_(stage), evaluator_(std::move(evaluator)) {
  const auto inner = std::make_shared<InnerPrograms>(in_precision_of(evaluator_, precision));
  tape_ = tape_from(streams, inner);
  record([&](Tape& tape) { return tape.constant(input, "input", stage_.where); }, precision);
  inner_ = inner->take();
}

StageTape::StageTape(const StageFunction& stage, const ValueType& input, const Streams& streams,
                     const LayerPrecision& precision)
    : stage_(stage), tape_(tape_from(streams, std::make_shared<NoValues>(precision))) {
  record([&](Tape& tape) { return tape.placeholder(input, stage_.where); }, precision);
}

void StageTape::record(const std::function<Var(Tape&)>& input, const LayerPrecision& precision) {
  naming(stage_.describe(), [&] {
    Tape& tape = *tape_;
    input_ = input(tape);
    for (const Tensor& parameter : stage_.parameters()) {
      parameters_.push_back(tape.parameter(parameter, {}, stage_.where));
    }
    {
      const std::string sublayer = stage_.sublayer != nullptr ? stage_.sublayer : "";
      const auto scope = tape.scope("layer" + std::to_string(stage_.layer) +
                                    (sublayer.empty() ? "" : "/" + sublayer));
      LayerOutput made = stage_.function->forward(input_, parameters_, stage_.layer);
      output_ = made.output;
      outputs_ = std::move(made.outputs);
    }
    if (!output_.defined() || !output_.belongs_to(tape)) {
      throw TapeError(
          "the function did not return a value on the tape of its input; return the layer's "
          "output");
    }
    if (!is_floating(output_.dtype())) {
      throw DTypeError("the function returned " + to_string(output_.type()) +
                       "; return an output of a floating dtype" +
                       recorded_at(tape, output_.node()));
    }
    require_outputs_of(tape, outputs_);
    require_parameters(tape, parameters_.size());
    for (const Tape::Update& update : tape.updates()) {
      updates_.push_back(update);
      outputs_.push_back(tape.var(update.value));
    }
    tape.forget_updates();
    streams_ = tape.fresh_stream().node;
    if (evaluator_ != nullptr) tape.set_evaluator(evaluator_);
    if (!precision) return;
    std::vector<Var> all{output_};
    all.insert(all.end(), outputs_.begin(), outputs_.end());
    all = record_again(*precision, tape, all);
    output_ = all[0];
    outputs_.assign(all.begin() + 1, all.end());
  });
}

std::uint64_t StageTape::structure() const {
  Digest digest;
  digest.put(hash_of_structure(*tape_, 1));
  digest.put(std::uint64_t{output_.id()});
  return digest.value();
}

void StageTape::require_unchanged(std::uint64_t version, const Tensor& model_input) const {
  const auto require = [&](const Tape& tape, NodeId node, std::span<const ValueId> read) {
    const ValueId leaf = tape.first_output(node);
    const StorageVersion last = version_of(tape.buffer(leaf));
    if (last.number <= version) return;
    if (std::ranges::none_of(read, [&](ValueId value) { return depends_on(tape, value, leaf); })) {
      return;
    }
    throw TapeError("[layers] " + std::string(last.call) + " has changed " + tape.describe(node) +
                    " since the forward pass, and " + stage_.describe() +
                    " reads it, so the activations are out of date; call forward() again" +
                    recorded_at(tape, node));
  };
  const ValueId output = output_.id();
  // An input that the checkpointer made may lie where a tensor was that has been written and freed.
  const bool is_given = tape_->buffer(input_.id()).get() == model_input.raw();
  for (NodeId node = 0; node < tape_->node_count(); ++node) {
    if (!tape_->is_leaf(node) || (node == input_.node() && !is_given)) continue;
    require(*tape_, node, {&output, 1});
  }
  for (const InnerProgram& program : inner_) {
    for (NodeId node = 0; node < program.tape->node_count(); ++node) {
      if (program.tape->is_leaf(node)) require(*program.tape, node, program.values);
    }
  }
}

Report StageTape::run(std::span<const ValueId> targets) {
  return naming(stage_.describe(), [&] {
    const RunOptions& options = evaluator_->options();
    return evaluator_->engine().evaluate(*tape_, targets, backward_begins_, options);
  });
}

void StageTape::append_outputs(std::vector<ValueId>& targets) const {
  for (const Var& output : outputs_) {
    const bool is_known = std::ranges::find(targets, output.id()) != targets.end();
    if (!is_known && !tape_->is_leaf(output.node())) targets.push_back(output.id());
  }
}

void StageTape::append_copies(Outputs& outputs) const {
  for (const Var& output : outputs_) outputs.push_back(copy_of(output.value(), allocate_buffer));
}

Tensor StageTape::output(const Allocate& allocate, Outputs* outputs) {
  backward_begins_ = tape_->node_count();
  std::vector<ValueId> targets{output_.id()};
  if (outputs != nullptr) append_outputs(targets);
  run(targets);
  if (outputs != nullptr) append_copies(*outputs);
  return copy_of(output_.value(), allocate);
}

void StageTape::differentiate() {
  naming(stage_.describe(), [&] {
    Tape& tape = *tape_;
    backward_begins_ = tape.node_count();
    std::vector<Var> variables = parameters_;
    if (is_floating(input_.dtype())) variables.push_back(input_);
    seed_ = tape.placeholder(output_.type(), stage_.where);
    gradients_ = vjp({&output_, 1}, variables, {&seed_, 1}, stage_.where);
    if (flows() && !depends_on(tape, gradients_.back().id(), seed_.id())) gradients_.pop_back();

    const Graph graph = graph_of(tape, ids_of(gradients_), 1, backward_begins_);
    std::vector<bool> read(tape.value_count());
    for (const NodeId node : graph.needed_nodes()) {
      if (node < backward_begins_) continue;
      for (const ValueId value : tape.inputs(node)) read[value] = true;
    }
    for (NodeId node = 0; node < backward_begins_; ++node) {
      const ValueId first = tape.first_output(node);
      const ValueId last = first + tape.output_count(node);
      // Constant fills are recomputed where they are read.
      if (tape.is_leaf(node) || &tape.operation(node) == &full_operation) continue;
      // A run makes all outputs of a node or none, so they are saved together.
      if (std::find(read.begin() + first, read.begin() + last, true) == read.begin() + last)
        continue;
      for (ValueId value = first; value < last; ++value) {
        if (is_made(graph, value)) saved_.push_back(value);
      }
    }
  });
}

LayerStage StageTape::sizes(const Machine& machine) const {
  const Graph graph = graph_of(*tape_, ids_of(gradients_), 1, backward_begins_, machine);
  LayerStage stage{.input = input_.type().bytes(), .saves = saves(), .flows = flows()};
  const std::set<ValueId> saved = storages_of(graph, saved_);
  for (const ValueId storage : saved) stage.saved += graph.bytes(storage);
  for (const ValueId storage : storages_of(graph, outputs_of_its_node(graph))) {
    if (!saved.contains(storage)) stage.output += graph.bytes(storage);
  }
  const auto seconds = [&](std::span<const ValueId> targets) {
    return graph_of(*tape_, targets, 1, backward_begins_, machine).one_pass_cost();
  };
  std::vector<ValueId> targets = saved_;
  stage.save = seconds(targets);
  targets.push_back(output_.id());
  stage.record = seconds(targets);
  stage.pass = seconds({&targets.back(), 1});
  stage.backward = cost_from(graph, backward_begins_);
  return stage;
}

/// The output, with the other outputs of its node: a run makes all of them or none.
std::vector<ValueId> StageTape::outputs_of_its_node(const Graph& graph) const {
  std::vector<ValueId> values;
  const ValueId first = tape_->first_output(output_.node());
  for (ValueId value = first; value < first + tape_->output_count(output_.node()); ++value) {
    if (value == output_.id() || is_made(graph, value)) values.push_back(value);
  }
  return values;
}

StageTape::Held StageTape::hold(const Allocate& allocate, Output output, Outputs* outputs) {
  const Graph graph = graph_of(*tape_, {}, 1, backward_begins_);
  std::vector<ValueId> values = saved_;
  if (output == Output::held) {
    const std::vector<ValueId> outputs = outputs_of_its_node(graph);
    values.insert(values.end(), outputs.begin(), outputs.end());
  }
  std::vector<ValueId> targets = values;
  if (output == Output::returned) targets.push_back(output_.id());
  if (outputs != nullptr) append_outputs(targets);
  Held held;
  if (!targets.empty()) held.run = run(targets);
  if (outputs != nullptr) append_copies(*outputs);
  if (output == Output::returned) held.output = copy_of(output_.value(), allocate_buffer);
  settle(graph, values, allocate);
  return held;
}

/// Moves values that a run made into storage that is held, and drops all others.
void StageTape::settle(const Graph& graph, std::span<const ValueId> values,
                       const Allocate& allocate) {
  std::map<ValueId, Buffer> own;  // by storage
  for (const ValueId value : values) {
    if (!is_made(graph, value)) continue;
    Buffer& storage = own[graph.storage(value)];
    if (storage == nullptr) {
      storage = copy_of(tape_->value(value), allocate).buffer();
      held_.push_back(storage);
    }
    tape_->set_buffer(value, storage);
  }
  std::vector<ValueId> present;
  append_present(*tape_, present);
  for (const ValueId value : present) {
    if (std::find(values.begin(), values.end(), value) == values.end()) tape_->drop(value);
  }
}

StageTape::Adjoints StageTape::reverse(const Tensor& adjoint) {
  if (adjoint.type() != output_.type()) {
    throw ArgumentError("[layers] " + stage_.describe() + ": the recomputed output is " +
                        to_string(output_.type()) + ", but the first output was " +
                        to_string(adjoint.type()) +
                        "; make the function record the same for the same input" +
                        recorded_at(*tape_, output_.node()));
  }
  Adjoints adjoints;
  const Lent lent(*tape_, seed_.id(), adjoint.buffer());
  const std::vector<ValueId> targets = ids_of(gradients_);
  const Passing passing(*tape_, targets);
  if (!targets.empty()) adjoints.run = run(targets);
  for (const Var& gradient : gradients_) {
    adjoints.parameters.push_back(copy_of(gradient.value(), allocate_buffer));
  }
  if (flows()) {
    adjoints.input = std::move(adjoints.parameters.back());
    adjoints.parameters.pop_back();
  }
  return adjoints;
}

}  // namespace palimpsest
