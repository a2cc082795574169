#include "strategy/execution/choice/dry_engine.h"

#include <algorithm>
#include <map>

#include "autodiff/execute.h"
#include "checkpoint/arena.h"
#include "checkpoint/node_seconds.h"
#include "strategy/base/profile.h"
#include "strategy/compile/fusion/work.h"
#include "strategy/run/present.h"

namespace palimpsest {
namespace {

/// Zeros. Large buffers take no memory until they are accessed.
Buffer zeros(Bytes bytes) {
  constexpr Bytes few = 1024;
  if (bytes > few) return Arena(Meter(), bytes).cut(0, bytes);
  Buffer buffer = allocate_buffer(bytes);
  std::fill_n(buffer.get(), bytes, std::byte{});
  return buffer;
}

/// Zeros that stand for storage of so many bytes, and count at the meter.
Buffer placeholder(const Meter& meter, Bytes bytes) { return meter.count(zeros(bytes), bytes); }

/// The value that owns the storage of a value.
ValueId storage_of(const Tape& tape, ValueId value) {
  while (tape.operation(tape.producer(value)).view) value = tape.inputs(tape.producer(value))[0];
  return value;
}

}  // namespace

Report DryEngine::evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                           const RunOptions& options) {
  const Forecast run = forecast(tape, targets, backward_begins, options, rates_);
  peak_ = std::max(peak_, run.plan.simulation.peak);
  seconds_ += run.seconds;
  cost_ += run.plan.simulation.cost;
  std::map<ValueId, Buffer> wanted;  // by storage
  for (const ValueId target : targets) {
    const ValueId storage = storage_of(tape, target);
    Buffer& buffer = wanted[storage];
    if (buffer == nullptr) buffer = tape.buffer(tape.has_value(target) ? target : storage);
  }
  std::vector<ValueId> present;
  append_present(tape, present);
  for (const ValueId value : present) tape.drop(value);
  for (const ValueId target : targets) {
    Buffer& buffer = wanted[storage_of(tape, target)];
    if (buffer == nullptr) buffer = placeholder(meter(), tape.bytes(storage_of(tape, target)));
    if (!tape.is_leaf(tape.producer(target))) tape.set_buffer(target, buffer);
  }
  return {};
}

void DryEngine::compute_now(Tape& tape, NodeId node, const RunOptions& options) {
  const Operation& operation = tape.operation(node);
  const ValueId first = tape.first_output(node);
  if (operation.view) {
    tape.set_buffer(first, tape.buffer(tape.inputs(node)[0]));
    return;
  }
  const NodeView view(tape.nodes(), node);
  std::vector<Buffer> made;
  for (ValueId i = 0; i < tape.output_count(node); ++i) {
    made.push_back(placeholder(meter(), tape.bytes(first + i)));
  }
  const int threads = Engine::threads(options);
  // The workspace counts only while the node runs.
  meter().count(zeros(0), workspace_of(view, threads));
  for (ValueId i = 0; i < made.size(); ++i) {
    if (!tape.has_value(first + i)) tape.set_buffer(first + i, std::move(made[i]));
  }
  cost_ += seconds_of(view, options.machine);
  std::optional<double> known;
  if (rates_.costs != nullptr) known = rates_.costs->seconds(work_of(tape, node));
  const double alone =
      known ? *known + rates_.machine.seconds_per_node : seconds_of(view, rates_.machine);
  seconds_ += seconds_of_step(alone, operation.serial, threads);
}

}  // namespace palimpsest
