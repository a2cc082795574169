#include "strategy/mpi/distributed_execution.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "autodiff/enumerators.h"
#include "strategy/base/enumerators.h"
#include "strategy/mpi/distributed_step.h"
#include "strategy/mpi/rank_parameters.h"
#include "strategy/mpi/rank_pipeline.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

void require_valid(const DistributedOptions& options, bool is_pipeline) {
  require_enumerator(options.reduction, enumerators<LossReduction>, "[ranks] reduction");
  if (options.bucket_bytes < 64 || options.bucket_bytes > 1_GiB) {
    throw ArgumentError("[ranks] bucket_bytes is " + std::to_string(options.bucket_bytes) +
                        "; give 64 B to 1 GiB");
  }
  if (is_pipeline && options.bucket_bytes != DistributedOptions{}.bucket_bytes) {
    throw ArgumentError("[ranks] a pipeline sends no buckets; leave bucket_bytes out");
  }
  if (options.verify_every < 0) {
    throw ArgumentError("[ranks] verify_every is " + std::to_string(options.verify_every) +
                        "; give a number of steps, or 0 for never");
  }
}

/// The strategy of one rank. Ranks that may use the same cores divide them.
ExecutionStrategy for_a_rank(ExecutionStrategy strategy, const RankLink& link) {
  const int ranks = link.size();
  const bool is_pipeline = strategy.parallelism == ParallelMode::pipeline;
  if (is_pipeline && strategy.stages == 0) strategy.stages = ranks;
  require_valid(strategy);
  if (strategy.gradient == GradientMode::none) {
    throw ArgumentError("[ranks] the strategy has gradient = none; choose another gradient");
  }
  if (strategy.parallelism == ParallelMode::data_parallel) {
    throw ArgumentError(
        "[ranks] the strategy is data_parallel, but ranks are too; start more ranks, or choose "
        "parallelism = automatic");
  }
  if (strategy.parallelism == ParallelMode::model_parallel) {
    throw ArgumentError(
        "[ranks] the strategy is model_parallel, but a rank has no devices; choose parallelism = "
        "pipeline for a part of the model on each rank, or automatic");
  }
  if (is_pipeline && strategy.stages != ranks) {
    throw ArgumentError(
        "[ranks] the strategy has " + std::to_string(strategy.stages) + " stages for " +
        std::to_string(ranks) +
        " ranks; each rank runs one stage: start as many ranks as stages, or leave stages out");
  }
  if (strategy.run.threads == 0) {
    const bool is_serial = strategy.parallelism == ParallelMode::none;
    strategy.run.threads = is_serial ? 1 : link.cores();
  }
  return strategy;
}

std::vector<ValueType> types_of(std::span<const Tensor> tensors) {
  std::vector<ValueType> types;
  for (const Tensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

}  // namespace

struct DistributedExecution::State {
  State(RankWorld& of, ExecutionStrategy chosen, const DistributedOptions& own)
      : world(of),
        strategy(for_a_rank(std::move(chosen), of.link())),
        options(own),
        counts(strategy) {
    const bool is_pipeline = strategy.parallelism == ParallelMode::pipeline;
    require_valid(options, is_pipeline);
    if (strategy.precision && strategy.precision->needs_scaling()) scaler.emplace();
    if (is_pipeline) pipeline.emplace(world.link(), strategy, options, strategy.thread_count());
    count.clear();
  }

  /// Makes the state that steps of shards with such parameters reuse.
  void prepare(std::span<const Tensor> parameters) {
    require_parameters(parameters);
    std::vector<ValueType> now = types_of(parameters);
    if (replica && now == types) return;
    replica.reset();
    gradients.reset();
    if (world.size() * strategy.accumulation > 1) {
      gradients.emplace(world.link(), now, options.bucket_bytes,
                        options.deterministic ? SumOrder::ranks : SumOrder::any);
    }
    RunOptions of_rank = strategy.run_options();
    if (strategy.run.memory_budget != unlimited && gradients) {
      of_rank.memory_budget = std::max<Bytes>(0, strategy.run.memory_budget - gradients->bytes());
    }
    counts.set_budget(of_rank.memory_budget);
    replica.emplace(strategy, of_rank, world.ranks_here(), 0);
    arena.emplace(of_rank.threads);
    if (gradients && !loaded_order.empty()) gradients->lay_out(loaded_order);
    loaded_order.clear();
    types = std::move(now);
  }

  bool is_verification_due() const {
    return options.verify_every > 0 && steps > 0 && steps % options.verify_every == 0;
  }

  Gradients step(const DistributedStep::Input& input) {
    if (pipeline && !input.is_whole) refuse_shard();
    if (!is_broadcast) broadcast(input.parameters);
    Gradients made = pipeline ? step_of_pipeline(input) : step_of_shards(input);
    ++steps;
    count.clear();
    return made;
  }

  /// Refuses before parameters are overwritten, in a call that other ranks may wait in.
  void refuse_shard() {
    const ArgumentError refused(
        "[ranks] a pipeline has no shards; give gradients() the whole batch on every rank");
    world.link().meet(is_broadcast ? RankCall::step : RankCall::broadcast, {},
                      std::make_exception_ptr(refused));
  }

  Gradients step_of_pipeline(const DistributedStep::Input& input) {
    Gradients made = pipeline->step({input.loss, input.parameters, input.batch, input.verifies,
                                     count, scaler ? &*scaler : nullptr, input.where});
    reports = pipeline->take_reports();
    return made;
  }

  Gradients step_of_shards(const DistributedStep::Input& input) {
    RankLink& link = world.link();
    std::exception_ptr failure;
    try {
      prepare(input.parameters);
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure != nullptr) link.meet(RankCall::step, {}, failure);
    DistributedStep step({link, strategy, options, *replica, counts, count, *arena,
                          gradients ? &*gradients : nullptr, scaler ? &*scaler : nullptr},
                         input);
    Gradients made = step.run();
    reports = step.take_reports();
    return made;
  }

  void broadcast(std::span<const Tensor> parameters) {
    broadcast_parameters(world.link(), parameters);
    is_broadcast = true;
  }

  InUse in_use{"DistributedExecution"};
  RankWorld& world;
  ExecutionStrategy strategy;
  DistributedOptions options;
  BatchCounts counts;
  bool is_broadcast = false;
  std::vector<ValueType> types;           // of the parameters
  std::vector<std::size_t> loaded_order;  // of gradients, for the next `prepare`
  std::optional<RankGradients> gradients;
  std::optional<Replica> replica;
  // Counts steps: cleared once more than there were steps that all ranks took. So a rank that
  // missed a step, or was in another call, has the same random streams as the others.
  Tape count;
  std::optional<tbb::task_arena> arena;
  std::optional<LossScaler> scaler;
  std::optional<RankPipeline> pipeline;  // only without shards
  std::int64_t steps = 0;
  std::vector<RankReport> reports;
};

DistributedExecution::DistributedExecution(RankWorld& world, ExecutionStrategy strategy,
                                           DistributedOptions options)
    : state_(std::make_unique<State>(world, std::move(strategy), options)) {}
DistributedExecution::~DistributedExecution() = default;
DistributedExecution::DistributedExecution(DistributedExecution&&) noexcept = default;
DistributedExecution& DistributedExecution::operator=(DistributedExecution&&) noexcept = default;

void DistributedExecution::broadcast(std::span<const Tensor> parameters) {
  const InUse::Use use(state_->in_use, call_in_progress, "DistributedExecution::broadcast");
  state_->broadcast(parameters);
}

void DistributedExecution::verify(std::span<const Tensor> parameters) {
  const InUse::Use use(state_->in_use, call_in_progress, "DistributedExecution::verify");
  verify_parameters(state_->world.link(), parameters);
}

Gradients DistributedExecution::gradients(const ModelFunction& loss,
                                          std::span<const Tensor> parameters,
                                          std::span<const Tensor> batch, Where where) {
  const InUse::Use use(state_->in_use, call_in_progress, "DistributedExecution::gradients");
  return state_->step({loss, parameters, batch, true, state_->is_verification_due(), where});
}

Gradients DistributedExecution::gradients_of_shard(const ModelFunction& loss,
                                                   std::span<const Tensor> parameters,
                                                   std::span<const Tensor> shard, Where where) {
  const InUse::Use use(state_->in_use, call_in_progress,
                       "DistributedExecution::gradients_of_shard");
  return state_->step({loss, parameters, shard, false, state_->is_verification_due(), where});
}

namespace {

constexpr std::string_view scaler_entries = "scaler/";

NamedTensors scaler_state_in(const StateEntries& entries, bool has_scaler) {
  return entries.part(scaler_entries, has_scaler, {"steps", "gradient_order"});
}

/// The order of gradients, which names every parameter once; empty for a state without one.
std::vector<std::size_t> order_in(const NamedTensors& state, const StateEntries& entries) {
  const auto found = state.find("gradient_order");
  if (found == state.end()) return {};
  const std::int64_t count = found->second.defined() ? found->second.elements() : 0;
  const Tensor& places = entries.tensor("gradient_order", {Shape{count}, DType::i64});
  const std::span<const std::int64_t> order = places.data<std::int64_t>();
  std::vector<std::size_t> found_order;
  for (std::int64_t parameter = 0; parameter < count; ++parameter) {
    if (std::ranges::find(order, parameter) == order.end()) {
      entries.refuse("gradient_order", "has no place for parameter " + std::to_string(parameter) +
                                           "; load one that was saved by state()");
    }
    found_order.push_back(static_cast<std::size_t>(order[static_cast<std::size_t>(parameter)]));
  }
  return found_order;
}

/// Throws unless a state fits an execution with this scaler.
void require_fits(const NamedTensors& state, const std::optional<LossScaler>& scaler) {
  const StateEntries entries(state, "ranks");
  entries.short_count("steps");
  order_in(state, entries);
  const NamedTensors of_scaler = scaler_state_in(entries, scaler.has_value());
  if (scaler) scaler->check_state(of_scaler);
}

}  // namespace

NamedTensors DistributedExecution::state() const {
  const State& state = *state_;
  NamedTensors all{{"steps", integer_entry(state.steps)}};
  std::span<const std::size_t> order = state.loaded_order;
  if (state.gradients) order = state.gradients->order();
  if (!order.empty()) {
    const std::vector<std::int64_t> places(order.begin(), order.end());
    all.emplace("gradient_order", Tensor::from(places, Shape{std::ssize(places)}));
  }
  if (state.scaler) add_part(all, scaler_entries, state.scaler->state());
  return all;
}

void DistributedExecution::check_state(const NamedTensors& state) const {
  state_->in_use.require(InUse::Level::alone, "DistributedExecution::check_state");
  require_fits(state, state_->scaler);
}

void DistributedExecution::load_state(const NamedTensors& state) {
  const InUse::Use use(state_->in_use, call_in_progress, "DistributedExecution::load_state");
  require_fits(state, state_->scaler);
  const StateEntries entries(state, "ranks");
  if (state_->scaler) state_->scaler->load_state(scaler_state_in(entries, true));
  const std::uint32_t steps = entries.short_count("steps");
  state_->steps = steps;
  state_->count.set_generation(steps + 1);
  state_->loaded_order = order_in(state, entries);
  state_->replica.reset();  // the next step prepares for the loaded order
  state_->gradients.reset();
}

std::span<const RankReport> DistributedExecution::reports() const { return state_->reports; }

}  // namespace palimpsest
