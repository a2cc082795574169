#include "strategy/evaluators/online_evaluator.h"

#include <algorithm>

#include "checkpoint/online_budget.h"
#include "checkpoint/tape_graph.h"
#include "strategy/evaluators/engine.h"

namespace palimpsest {

namespace {

std::string both_ways(Bytes bytes) {
  return format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

}  // namespace

void OnlineEvaluator::on_record(Tape& tape, std::uint32_t node) {
  require_current(tape, tape.inputs(node));
  try {
    decide(tape, [&] { return eviction_->compute(node); });
  } catch (...) {
    tape_ = nullptr;  // the node is removed
    throw;
  }
}

void OnlineEvaluator::compute(Tape& tape, std::span<const ValueId> values) {
  require_current(tape, values);
  reads_.push_back({tape.node_count(), {values.begin(), values.end()}});
  const auto forget_temporary = [&] {
    if (tape.is_temporary()) tape_ = nullptr;
  };
  try {
    decide(tape, [&] { return eviction_->require(values); });
  } catch (...) {
    forget_temporary();
    throw;
  }
  forget_temporary();
}

void OnlineEvaluator::on_clear(Tape& tape) noexcept {
  if (tape_ != &tape) return;
  tape_ = nullptr;
  held_.clear();
  reads_.clear();
}

void OnlineEvaluator::require_current(Tape& tape, std::span<const ValueId> values) {
  tape.notice_writes();
  tape.require_current(values);
  tape.force_out_outdated();
}

RunOptions OnlineEvaluator::prepare(Tape& tape, const RunOptions& asked) {
  tape.notice_writes();
  if (follows(tape)) {
    for (const auto& [root, buffer] : held_) {
      // A run does not treat a part of a node's outputs as a leaf; they would be copied into its
      // budget.
      if (tape.output_count(tape.producer(root)) > 1) continue;
      if (Buffer held = buffer.lock()) tape.set_buffer(root, std::move(held));
    }
  }
  return EngineEvaluator::prepare(tape, asked);
}

/// Catches up with the tape and calls `f`, which may run short of memory.
template <class F>
void OnlineEvaluator::decide(Tape& tape, F f) {
  engine().release_arena();
  const InUse::Use use(engine().in_use(), engine_is_running, "record");
  if (!follows(tape)) start_over(tape);
  const int threads = Engine::threads(options());
  while (graph_.node_count() < tape.node_count())
    append_node(graph_, tape, threads, options().machine);
  const std::optional<OnlineEviction::Shortage> shortage = f();
  changes_ = tape.changes();
  if (shortage) refuse(tape, *shortage);
}

/// The error names a budget within which recording everything again succeeds.
void OnlineEvaluator::refuse(const Tape& tape, const OnlineEviction::Shortage& shortage) const {
  const NodeId node = shortage.node;
  const Bytes budget = options().memory_budget;
  const Bytes smallest = smallest_online_budget(graph_, reads_, shortage.bytes);
  const NodeId last = tape.node_count() - 1;
  throw BudgetError(
      "[" + std::string(tape.operation(node).name) + "] computing " + tape.describe(node) +
          (node == last ? "" : " again") + " needs " + both_ways(shortage.bytes) +
          " at once, including the values that wait for it; the budget of the tape is " +
          both_ways(budget) + "; give eager() " + both_ways(smallest) +
          ", which fits everything recorded so far" +
          (node == last ? "" : ", up to " + tape.describe(last)) + " (recorded at " +
          to_string(tape.where(node)) + ")",
      budget, smallest);
}

bool OnlineEvaluator::follows(const Tape& tape) const {
  return tape_ == &tape && changes_ == tape.changes() && graph_.node_count() <= tape.node_count();
}

/// Discards the state and rebuilds it from the values present on the tape.
void OnlineEvaluator::start_over(Tape& tape) {
  tape_ = nullptr;
  held_.clear();
  graph_ = Graph();
  const int threads = Engine::threads(options());
  while (graph_.node_count() < tape.node_count())
    append_node(graph_, tape, threads, options().machine);
  tape_ = &tape;
  eviction_.emplace(graph_, options().memory_budget, static_cast<OnlineEviction::Host&>(*this));
  try {
    adopt();
    eviction_->set_dropped();
  } catch (...) {
    tape_ = nullptr;
    throw;
  }
}

/// Takes the present values into the budget. Afterwards, if any value of a storage is present, its
/// root is too. All values of the storage share it, and dropping them frees its bytes at the meter.
void OnlineEvaluator::adopt() {
  Tape& tape = *tape_;
  std::set<const std::byte*> adopted;  // merged values get separate storage
  for (ValueId value = 0; value < graph_.value_count(); ++value) {
    if (!tape.has_value(value) || graph_.is_source_value(value)) continue;
    const ValueId root = graph_.storage(value);
    if (!tape.has_value(root)) tape.set_buffer(root, tape.buffer(value));
    if (!eviction_->is_live(root) && !adopt_storage(root, adopted)) {
      drop(root);
      if (value != root) drop(value);
      continue;
    }
    if (value != root) tape.set_buffer(value, tape.buffer(root));
    eviction_->set_live(root);
    eviction_->set_live(value);
  }
}

/// Returns false if the necessary copy does not fit the budget.
bool OnlineEvaluator::adopt_storage(ValueId root, std::set<const std::byte*>& adopted) {
  const Meter& meter = engine().meter();
  const Buffer& buffer = tape_->buffer(root);
  if (meter.allocated(buffer) && adopted.insert(buffer.get()).second) return true;
  const Bytes bytes = graph_.bytes(root);
  if (meter.reserved() + bytes > options().memory_budget) return false;
  Buffer own = meter.allocate(bytes);
  std::copy_n(tape_->buffer(root).get(), bytes, own.get());
  tape_->set_buffer(root, std::move(own));
  return true;
}

// Effects of decisions on the tape ---------------------------------------------------------------

void OnlineEvaluator::compute(NodeId node) { engine().compute_now(*tape_, node, options()); }

void OnlineEvaluator::drop(ValueId value) {
  const ValueId root = graph_.storage(value);
  const std::weak_ptr<std::byte> buffer = tape_->buffer(value);
  tape_->drop(value);
  if (buffer.expired()) {
    held_.erase(root);
  } else {
    held_[root] = buffer;
  }
}

bool OnlineEvaluator::is_held_elsewhere(ValueId value, std::uint32_t values) {
  return tape_->buffer(value).use_count() > static_cast<long>(values);
}

bool OnlineEvaluator::recover(ValueId root) {
  const auto held = held_.find(root);
  if (held == held_.end()) return false;
  Buffer buffer = held->second.lock();
  if (buffer == nullptr) {
    held_.erase(held);
    return false;
  }
  tape_->set_buffer(root, std::move(buffer));
  return true;
}

}  // namespace palimpsest
