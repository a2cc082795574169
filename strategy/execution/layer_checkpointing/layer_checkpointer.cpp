#include "strategy/execution/layer_checkpointing/layer_checkpointer.h"

#include <algorithm>
#include <optional>

#include "autodiff/enumerators.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/require_function.h"
#include "autodiff/storage_version.h"
#include "strategy/base/parameters.h"
#include "strategy/base/updates.h"
#include "strategy/evaluators/engine.h"
#include "strategy/evaluators/lazy_evaluator.h"
#include "strategy/execution/layer_checkpointing/dynamic_segments.h"
#include "strategy/execution/layer_checkpointing/layer_run.h"

namespace palimpsest {
namespace {

bool is_given(const LayerFunction& function) {
  return function.forward != nullptr || !function.parameters.empty();
}

void require_layer_function(const LayerFunction& function, std::size_t layers) {
  if (function.forward == nullptr) {
    throw ArgumentError(
        "[layers] a function is missing; give layer, or attention and feed_forward");
  }
  if (function.parameters.size() != layers) {
    throw ArgumentError("[layers] attention has parameters of " + std::to_string(layers) +
                        " layers, but feed_forward of " +
                        std::to_string(function.parameters.size()) + "; give both the same number");
  }
}

std::vector<StageFunction> stages_of(const LayerModel& model, const Where& where) {
  const bool whole = is_given(model.layer);
  if (whole && (is_given(model.attention) || is_given(model.feed_forward))) {
    throw ArgumentError(
        "[layers] the model has both whole layers and sublayers; give only one of them");
  }
  const LayerFunction& first = whole ? model.layer : model.attention;
  const std::size_t layers = first.parameters.size();
  require_layer_function(first, layers);
  if (!whole) require_layer_function(model.feed_forward, layers);
  if (layers == 0) {
    throw ArgumentError("[layers] there are no layers; give the parameters of at least one");
  }
  std::vector<StageFunction> stages;
  for (int layer = 0; layer < static_cast<int>(layers); ++layer) {
    stages.push_back({&first, layer, whole ? nullptr : "attention", where});
    if (!whole) stages.push_back({&model.feed_forward, layer, "feed_forward", where});
  }
  return stages;
}

/// Evaluates a loss, its adjoint and its outputs in one run. Returns copies of the outputs.
std::vector<Tensor> evaluate_loss(const Var& loss, const Var& adjoint, std::span<const Var> outputs,
                                  const RunOptions& options, const Where& where) {
  std::vector<Var> targets{loss, adjoint};
  for (const Var& output : outputs) {
    const bool is_known = std::ranges::find(targets, output) != targets.end();
    if (!is_known && !output.tape().is_leaf(output.node())) targets.push_back(output);
  }
  evaluate(targets, options, where);
  std::vector<Tensor> copies;
  for (const Var& output : outputs) copies.push_back(copy_of(output.value(), allocate_buffer));
  return copies;
}

}  // namespace

struct LayerCheckpointer::State {
  State(LayerModel given_model, LayerCheckpointing given, RunOptions options,
        const LayerPrecision& given_precision, const Where& where)
      : model(std::move(given_model)),
        checkpointing(std::move(given)),
        stages(stages_of(model, where)),
        evaluator(std::make_shared<LazyEvaluator>(std::move(options))),
        precision(given_precision) {
    if (precision) require_valid(*precision, "layers");
    evaluator->engine().share_arena();
    require_valid(checkpointing);
    fixed = fixed_segments(checkpointing, count());
    for (const StageFunction& stage : stages) {
      names.emplace_back();
      naming(stage.describe(), [&] {
        for (const Tensor& parameter : stage.parameters()) {
          if (!is_floating(parameter.dtype())) {
            throw DTypeError("a parameter is " + to_string(parameter.type()) +
                             "; capture non-floating tensors in the function");
          }
          names.back().push_back(parameters.parameter(parameter, {}, where));
        }
      });
    }
  }

  int sublayers() const { return is_given(model.layer) ? 1 : 2; }
  LayerCount count() const { return {static_cast<int>(stages.size()) / sublayers(), sublayers()}; }
  bool is_dynamic() const { return checkpointing.mode == LayerCheckpointing::Mode::dynamic; }

  /// The stage of a sublayer. If `end` is set, `layers()` is valid and gives the number of stages.
  std::size_t stage_of(int layer, Sublayer sublayer, bool end) const;
  /// Finds sizes and segments for an input of this type. Layers may record something else than
  /// before, for example in evaluation; then they are measured again.
  void measure(const ValueType& input);

  LayerRun& last_run() {
    if (!run) throw ArgumentError("[layers] nothing is kept; call forward() first");
    return *run;
  }
  /// Throws `TapeError` if the library has written into a parameter since the forward pass.
  void require_current() const;
  LayerGradients backward(const Tensor& adjoint, Tensor loss, const LayerExtras& of_loss);

  InUse in_use{"LayerCheckpointer"};
  LayerModel model;
  LayerCheckpointing checkpointing;
  std::vector<StageFunction> stages;
  std::shared_ptr<EngineEvaluator> evaluator;
  LayerPrecision precision;
  Meter meter;
  Tape parameters;
  std::vector<std::vector<Var>> names;  // of the parameters, by stage
  std::vector<LayerSegment> fixed;      // of all modes but `dynamic`

  // As measured last.
  std::vector<std::uint64_t> measured;  // structures of stages
  std::vector<LayerStage> sizes;
  std::vector<LayerSegment> segments;

  std::optional<LayerRun> run;
  std::uint64_t version = 0;  // of storages, when `run` began
  bool is_updated = false;    // a backward pass has applied the updates of `run`
};

std::size_t LayerCheckpointer::State::stage_of(int layer, Sublayer sublayer, bool end) const {
  const auto [layers, parts] = count();
  require_enumerator(sublayer, {Sublayer::attention, Sublayer::feed_forward}, "[layers] the part");
  const bool first = sublayer == Sublayer::attention;
  if (layer < 0 || layer > layers || (layer == layers && !(end && first))) {
    throw ArgumentError("[layers] there is no layer " + std::to_string(layer) +
                        "; layers are numbered from 0 to " + std::to_string(layers - 1) +
                        (end ? ", and " + std::to_string(layers) + " means the output" : ""));
  }
  if (!first && parts == 1) {
    throw ArgumentError(
        "[layers] the layers have no feed-forward sublayers; leave the sublayer out");
  }
  return static_cast<std::size_t>(layer * parts + (first ? 0 : 1));
}

void LayerCheckpointer::State::measure(const ValueType& input) {
  std::vector<std::uint64_t> recorded;
  std::vector<LayerStage> found;
  ValueType type = input;
  Streams streams;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    StageTape tape(stages[k], type, streams, precision);
    recorded.push_back(tape.structure());
    streams.first = tape.streams();
    ++streams.part;
    if (k < measured.size() && measured[k] == recorded[k]) {
      found.push_back(sizes[k]);
    } else {
      tape.differentiate();
      found.push_back(tape.sizes(evaluator->options().machine));
      found.back().stored_input = stored_bytes(type.bytes(), type.dtype, checkpointing.codec);
    }
    type = tape.output_type();
  }
  if (recorded == measured) return;
  segments = is_dynamic() ? dynamic_segments(checkpointing, count(), found) : fixed;
  sizes = std::move(found);
  measured = std::move(recorded);
}

void LayerCheckpointer::State::require_current() const {
  if (version == latest_version()) return;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    for (std::size_t i = 0; i < names[k].size(); ++i) {
      const StorageVersion last = version_of(parameters.buffer(names[k][i].id()));
      if (last.number <= version) continue;
      throw TapeError("[layers] " + std::string(last.call) + " has changed parameter " +
                      std::to_string(i) + " of " + stages[k].describe() +
                      " since the forward pass, so the activations are out of date; call forward() "
                      "again");
    }
  }
}

LayerGradients LayerCheckpointer::State::backward(const Tensor& adjoint, Tensor loss,
                                                  const LayerExtras& of_loss) {
  LayerRun& pass = last_run();
  require_current();
  LayerRun::Adjoints found = pass.backward(adjoint);
  std::vector<Gradients::Entry> entries;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    for (std::size_t i = 0; i < names[k].size(); ++i) {
      entries.push_back({names[k][i], std::move(found.parameters[k][i])});
    }
  }
  LayerExtras extras = pass.extras();
  extras.add(of_loss);
  if (!is_updated) {
    apply_updates(extras.updates, extras.values);
    is_updated = true;
  }
  return {Gradients(std::move(loss), std::move(entries), std::move(found.report),
                    std::move(extras.outputs)),
          std::move(found.input)};
}

LayerCheckpointer::LayerCheckpointer(LayerModel model, LayerCheckpointing checkpointing,
                                     RunOptions options, const LayerPrecision& precision,
                                     Where where)
    : state_(std::make_unique<State>(std::move(model), std::move(checkpointing), std::move(options),
                                     precision, where)) {}
LayerCheckpointer::~LayerCheckpointer() = default;
LayerCheckpointer::LayerCheckpointer(LayerCheckpointer&&) noexcept = default;
LayerCheckpointer& LayerCheckpointer::operator=(LayerCheckpointer&&) noexcept = default;

int LayerCheckpointer::layers() const { return state_->count().layers; }
const LayerCheckpointing& LayerCheckpointer::checkpointing() const { return state_->checkpointing; }
const Meter& LayerCheckpointer::meter() const { return state_->meter; }
LayerUse LayerCheckpointer::use() const { return state_->last_run().use(); }

void LayerCheckpointer::release() {
  const InUse::Use use(state_->in_use, call_in_progress, "LayerCheckpointer::release");
  state_->run.reset();
  state_->evaluator->engine().release_arena();
}

Var LayerCheckpointer::parameter(int layer, int index, Sublayer sublayer) const {
  const std::size_t stage = state_->stage_of(layer, sublayer, false);
  const std::vector<Var>& names = state_->names[stage];
  if (index < 0 || index >= std::ssize(names)) {
    throw ArgumentError(
        "[layers] " + state_->stages[stage].describe() + " has no parameter " +
        std::to_string(index) +
        (names.empty() ? "; it has none"
                       : "; they are numbered from 0 to " + std::to_string(names.size() - 1)));
  }
  return names[static_cast<std::size_t>(index)];
}

Tensor LayerCheckpointer::forward(const Tensor& input, std::uint64_t seed) {
  const InUse::Use use(state_->in_use, call_in_progress, "LayerCheckpointer::forward");
  if (!input.defined()) throw ArgumentError("[layers] the input is empty; give a tensor");
  state_->run.reset();
  if (state_->is_dynamic()) state_->measure(input.type());
  const LayerRun::Setting setting{state_->stages, state_->checkpointing.codec, state_->evaluator,
                                  state_->precision, state_->meter};
  state_->is_updated = false;
  state_->version = latest_version();
  state_->run.emplace(setting, state_->is_dynamic() ? state_->segments : state_->fixed, input,
                      seed);
  return state_->run->output();
}

Tensor LayerCheckpointer::activation(int layer, Sublayer sublayer) {
  const InUse::Use use(state_->in_use, call_in_progress, "LayerCheckpointer::activation");
  LayerRun& run = state_->last_run();
  const std::size_t stage = state_->stage_of(layer, sublayer, true);
  if (!run.is_kept(stage)) state_->require_current();
  return run.activation(stage);
}

bool LayerCheckpointer::is_kept(int layer, Sublayer sublayer) const {
  return state_->last_run().is_kept(state_->stage_of(layer, sublayer, true));
}

void LayerCheckpointer::save(int layer, Sublayer sublayer) {
  const InUse::Use use(state_->in_use, call_in_progress, "LayerCheckpointer::save");
  LayerRun& run = state_->last_run();
  const std::size_t stage = state_->stage_of(layer, sublayer, false);
  const std::optional<int> most = state_->checkpointing.max_kept;
  if (most && run.use().kept_activations >= *most && !run.is_kept(stage)) {
    throw ArgumentError("[layers] " + std::to_string(run.use().kept_activations) +
                        " activations are already kept, the most that max_kept = " +
                        std::to_string(*most) + " allows; raise max_kept");
  }
  if (!run.is_kept(stage)) state_->require_current();
  run.save(stage);
}

LayerGradients LayerCheckpointer::backward(const Tensor& adjoint) {
  const InUse::Use use(state_->in_use, call_in_progress, "LayerCheckpointer::backward");
  const ValueType& type = state_->last_run().output().type();
  if (!adjoint.defined() || adjoint.shape() != type.shape) {
    throw ShapeError("[layers] the output is " + to_string(type) +
                     "; give an adjoint of the same shape" +
                     (adjoint.defined() ? ", not " + to_string(adjoint.type()) : ""));
  }
  if (adjoint.dtype() != type.dtype) {
    throw DTypeError("[layers] the output is " + to_string(type) + ", but the adjoint is " +
                     to_string(adjoint.type()) + "; convert it with to()");
  }
  return state_->backward(adjoint, {}, {});
}

LayerGradients LayerCheckpointer::backward(const std::function<LossAndOutputs(const Var&)>& loss,
                                           Where where) {
  const InUse::Use use(state_->in_use, call_in_progress, "LayerCheckpointer::backward");
  const LayerRun& run = state_->last_run();
  detail::require_function(loss, "layers", "the loss", "records a loss of the output", where);
  std::unique_ptr<Tape> tape = run.tape_behind();
  LayerExtras extras;
  const auto [value, adjoint] = naming("the loss", [&] {
    const Var output = tape->constant(run.output(), "output", where);
    LossAndOutputs made = loss(output);
    const Var scalar = made.loss;
    require_value(scalar, "layers", where);
    require_scalar(scalar, where_recorded(scalar));
    require_outputs_of(*tape, made.outputs);
    require_parameters(*tape, 0);
    append_updates(made);
    const Var one = full_like(scalar, 1, where);
    const Var gradient = vjp({&scalar, 1}, {&output, 1}, {&one, 1}, where)[0];
    extras.add(evaluate_loss(scalar, gradient, made.outputs, state_->evaluator->options(), where),
               tape->updates());
    const bool flows = depends_on(*tape, gradient.id(), one.id());
    return std::pair(copy_of(scalar.value(), allocate_buffer),
                     flows ? copy_of(gradient.value(), allocate_buffer) : Tensor());
  });
  tape.reset();  // its memory is free for the runs that follow
  return state_->backward(adjoint, value, extras);
}

LayerForecast LayerCheckpointer::forecast(const ValueType& input) {
  const InUse::Use use(state_->in_use, call_in_progress, "LayerCheckpointer::forecast");
  state_->measure(input);
  return simulate(state_->sizes, state_->segments);
}

}  // namespace palimpsest
