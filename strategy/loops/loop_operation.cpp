#include "strategy/loops/loop_operation.h"

#include <algorithm>
#include <array>

#include "autodiff/gradient.h"
#include "checkpoint/chains/binomial.h"
#include "strategy/loops/active_components.h"
#include "strategy/loops/kept_values.h"
#include "strategy/loops/loop_identity.h"
#include "strategy/loops/loop_run.h"
#include "strategy/loops/loop_tangent.h"

namespace palimpsest {
namespace {

std::array<std::uint64_t, 6> words_of(const Loop& loop) {
  const LoopOptions& options = loop.options();
  return {loop.steps(),
          hash_of_step(loop.step()),
          loop.has_condition() ? hash_of_step(loop.condition()) : 0,
          loop.has_condition() ? options.max_steps : 0,
          static_cast<std::uint64_t>(options.codec),
          static_cast<std::uint64_t>(options.memory_budget)};
}

struct LoopAttributes {
  using IsOfOneTape = void;  // bodies are user functions
  std::shared_ptr<const Loop> loop;
  bool operator==(const LoopAttributes&) const = default;
  /// For the journal of a loop around this one.
  std::array<std::uint64_t, 6> described() const { return words_of(*loop); }
};

struct GradientAttributes {
  using IsOfOneTape = void;
  std::shared_ptr<const LoopGradient> gradient;
  bool operator==(const GradientAttributes&) const = default;
  std::array<std::uint64_t, 7> described() const {
    std::array<std::uint64_t, 7> words{};
    std::ranges::copy(words_of(gradient->loop()), words.begin());
    words.back() = hash_of_requested(gradient->requested());
    return words;
  }
};

const Loop& loop_of(const Attributes& attributes) { return *attributes.as<LoopAttributes>().loop; }
const LoopGradient& gradient_of(const Attributes& attributes) {
  return *attributes.as<GradientAttributes>().gradient;
}

/// The values that the plan set for either operation. A backward part uses the memory of held
/// states up, but only reads that of kept values: then its own is empty.
Bytes room_given(const NodeView& node) { return node.output(node.output_count() - 1).bytes(); }
LoopDivision division_given(const NodeView& node, const Loop& loop, Bytes room) {
  const std::size_t end = node.output_count();
  return division_in(node.output(end - 3), node.output(end - 2), room, loop);
}
const HeldComponents& held_given(const NodeView& node, const Loop& loop) {
  return held_in(node.output(node.output_count() - 3), loop);
}
LoopDivision division_of_forward(const NodeView& node) {
  return division_given(node, loop_of(node.attributes()), room_given(node));
}
LoopDivision division_of_backward(const NodeView& node) {
  const Loop& loop = gradient_of(node.attributes()).loop();
  return division_given(node, loop, node.input(loop.operand_count()).bytes());
}

Cost times(const Cost& cost, double count) { return {cost.flops * count, cost.bytes * count}; }
Cost plus(const Cost& a, const Cost& b) { return {a.flops + b.flops, a.bytes + b.bytes}; }

Cost cost_of_forward(const Loop& loop, const LoopDivision& division) {
  const Cost steps =
      times(loop.forward().cost(division.share), loop.likely_steps() - division.kept);
  if (division.kept == 0) return steps;
  return plus(steps, times(loop.kept(division.values).forward.cost(), division.kept));
}

/// `room` is the memory of held states; 0 if the backward part makes its snapshots itself.
Cost cost_of_backward(const LoopGradient& gradient, const HeldComponents& held,
                      const LoopDivision& division, Bytes room) {
  const Loop& loop = gradient.loop();
  const std::uint32_t steps = loop.likely_steps();
  if (steps == 0) return {};
  const Cost reversed = times(gradient.backward().cost(division.share), steps - division.kept);
  if (division.kept > 0) {
    const StepPrograms& kept = gradient.backward(loop.kept(division.values));
    return plus(reversed, times(kept.cost(), division.kept));
  }
  if (loop.held(gradient.held()).are_none()) return reversed;
  const LoopWork work = work_of(held, room > 0 ? room : snapshot_bytes(loop.snapshots(), held));
  // Running a step for its tape is part of its backward program, and the first sweep is another
  // node.
  double advanced = work.steps() - steps;
  if (room > 0) advanced -= steps - 1;
  return plus(reversed, times(held.cost(division.share), advanced));
}

void pull_back_loop(const Pullback& p);

const Operation scan_operation{
    .name = "scan",
    .formula = "s₀ given, sₙ₊₁, yₙ = f(sₙ, xₙ, c)",
    .summary = "a loop of many steps, as one node",
    .compute = [](const KernelCall& call) { run_forward(loop_of(call.attributes), call); },
    .vjp = pull_back_loop,
    .cost =
        [](const NodeView& node) {
          return cost_of_forward(loop_of(node.attributes()), division_of_forward(node));
        },
    .workspace =
        [](const NodeView& node, int threads) {
          const HeldComponents& held = held_given(node, loop_of(node.attributes()));
          return forward_memory(held, threads, division_of_forward(node));
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::recorded,
    .has_state_budget = true,
    .serial = true,
};

const Operation scan_adjoint_operation{
    .name = "scan_adjoint",
    .formula = "s̄ₙ, x̄ₙ, c̄ from s̄ₙ₊₁, ȳₙ",
    .summary = "adjoints of the inputs of a loop",
    .compute = [](const KernelCall& call) { run_backward(gradient_of(call.attributes), call); },
    .vjp =
        [](const Pullback& p) {
          const Attributes attributes = p.attributes();  // the tape grows below, which would
                                                         // invalidate a reference
          pull_back_gradient(gradient_of(attributes), p);
        },
    .cost =
        [](const NodeView& node) {
          const LoopGradient& gradient = gradient_of(node.attributes());
          return cost_of_backward(gradient, held_given(node, gradient.loop()),
                                  division_of_backward(node), room_given(node));
        },
    .workspace =
        [](const NodeView& node, int threads) {
          const LoopGradient& gradient = gradient_of(node.attributes());
          return backward_workspace(gradient, held_given(node, gradient.loop()), room_given(node),
                                    division_of_backward(node), threads);
        },
    .in_place =
        [](const NodeView& node, std::size_t output) {
          if (output + 1 < node.output_count() || room_given(node) == 0) return -1;
          return static_cast<int>(gradient_of(node.attributes()).loop().operand_count());
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::recorded,
    .has_state_budget = true,
    .serial = true,
};

/// The value that holds a loop's states: the last output of either part.
ValueId room_of(const Tape& tape, NodeId node) {
  return tape.first_output(node) + tape.output_count(node) - 1;
}

void pull_back_loop(const Pullback& p) {
  const Attributes attributes = p.attributes();
  const std::shared_ptr<const Loop>& loop = attributes.as<LoopAttributes>().loop;
  const std::size_t states = loop->state_count();
  const std::size_t inputs = loop->input_count();
  const auto is_wanted = [&](std::size_t i) {
    return p.wants(i) && is_floating(p.input(i).dtype());
  };
  LoopGradient::Requested requested;
  for (std::size_t i = 0; i < states; ++i) {
    requested.next.push_back(p.has_adjoint(i) && is_floating(p.input(i).dtype()));
    requested.state.push_back(is_wanted(i));
  }
  for (std::size_t i = 0; i < loop->output_count(); ++i) {
    requested.outputs.push_back(p.has_adjoint(states + i));
  }
  for (std::size_t i = 0; i < inputs; ++i) requested.inputs.push_back(is_wanted(states + i));
  for (std::size_t i = states + inputs; i < p.input_count(); ++i) {
    requested.captured.push_back(is_wanted(i));
  }

  requested = with_carried(*loop, std::move(requested));
  const auto is_any = [](const std::vector<bool>& chosen) {
    return std::ranges::find(chosen, true) != chosen.end();
  };
  if (!is_any(requested.next) && !is_any(requested.outputs)) return;  // all gradients are zero

  std::vector<Var> operands;
  std::vector<ValueType> types;
  std::vector<std::size_t> returned;
  for (std::size_t i = 0; i < p.input_count(); ++i) {
    operands.push_back(p.input(i));
    if (i < states ? !requested.state[i] : !is_wanted(i)) continue;
    returned.push_back(i);
    types.push_back(p.input(i).type());
  }
  operands.push_back(p.output(p.output_count() - 1));
  if (loop->has_condition()) operands.push_back(p.output(states));
  for (std::size_t i = 0; i < states; ++i) {
    if (requested.next[i]) operands.push_back(p.adjoint(i));
  }
  for (std::size_t i = 0; i < loop->output_count(); ++i) {
    if (requested.outputs[i]) operands.push_back(p.adjoint(states + i));
  }
  if (returned.empty()) return;
  for (const ValueType& type : division_types({})) types.push_back(type);
  types.push_back(p.output(p.output_count() - 1).type());
  const auto gradient = std::make_shared<const LoopGradient>(loop, std::move(requested), p.where());
  const Var first = p.tape().record(scan_adjoint_operation, operands, types,
                                    GradientAttributes{gradient}, p.where());
  for (std::size_t i = 0; i < returned.size(); ++i) {
    p.set(returned[i], first.output(static_cast<std::uint32_t>(i)));
  }
}

}  // namespace

std::vector<Var> record_loop(Tape& tape, const std::shared_ptr<const Loop>& loop,
                             std::span<const Var> inputs, const Where& where) {
  std::vector<ValueType> types = loop->types(loop->step().next);
  for (ValueType type : loop->types(loop->step().outputs)) {
    require_axes(type.shape.rank() + 1, "scan", where);
    Shape shape{std::int64_t{loop->steps()}};
    for (const std::int64_t size : type.shape) shape.push_back(size);
    types.push_back({shape, type.dtype});
  }
  if (loop->has_condition()) types.push_back({Shape{}, DType::i64});
  for (const ValueType& type : division_types({})) types.push_back(type);
  types.push_back(state_budget_type(0));
  const Var first = tape.record(scan_operation, inputs, types, LoopAttributes{loop}, where);
  std::vector<Var> made;
  for (std::uint32_t i = 0; i + 3 < types.size(); ++i) made.push_back(first.output(i));
  return made;
}

std::string_view loop_function(const NodeView& node) {
  if (&node.operation() == &scan_operation) return loop_of(node.attributes()).body().name();
  if (&node.operation() != &scan_adjoint_operation) return {};
  return gradient_of(node.attributes()).loop().body().name();
}

bool holds_operations_of_users(const Tape& tape) {
  std::vector<const Tape*> left{&tape};
  const auto add_steps = [&](const Loop& loop) {
    left.push_back(&loop.tape());
    if (loop.has_condition()) left.push_back(loop.condition().tape.get());
  };
  while (!left.empty()) {
    const Tape& next = *left.back();
    left.pop_back();
    for (NodeId node = 0; node < next.node_count(); ++node) {
      const Operation& operation = next.operation(node);
      if (operation.of_user) return true;
      if (&operation == &scan_operation) add_steps(loop_of(next.attributes(node)));
      if (&operation == &scan_adjoint_operation) {
        add_steps(gradient_of(next.attributes(node)).loop());
      }
    }
  }
  return false;
}

std::vector<RecordedLoop> needed_loops(const Tape& tape, const std::vector<bool>& needed) {
  std::vector<RecordedLoop> loops;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (&tape.operation(node) != &scan_adjoint_operation || !needed[node]) continue;
    const LoopGradient& gradient = gradient_of(tape.attributes(node));
    const NodeId forward = tape.producer(tape.inputs(node)[gradient.loop().operand_count()]);
    auto loop = std::ranges::find(loops, forward, &RecordedLoop::forward);
    if (loop == loops.end()) loop = loops.insert(loop, {forward, &gradient.loop()});
    loop->backward.push_back(node);
    loop->gradients.push_back(&gradient);
  }
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (&tape.operation(node) != &scan_operation || !needed[node]) continue;
    if (std::ranges::find(loops, node, &RecordedLoop::forward) != loops.end()) continue;
    loops.push_back({node, &loop_of(tape.attributes(node))});
  }
  return loops;
}

void give_state_budget(Tape& tape, const RecordedLoop& loop, const LoopDivision& division) {
  const HeldComponents& held = loop.parts().held();
  const auto give = [&](NodeId node, Bytes bytes) {
    const ValueId room = room_of(tape, node);
    tape.resize(room, state_budget_type(bytes).shape);
    const auto types = division_types(division, held.key());
    tape.resize(room - 2, types[0].shape);
    tape.resize(room - 1, types[1].shape);
  };
  const Bytes bytes = loop.is_differentiated() ? held_bytes(held, division) : 0;
  give(loop.forward, bytes);
  for (const NodeId node : loop.backward) give(node, division.kept > 0 ? 0 : bytes);
}

LoopDivision division_in(const ValueType& first, const ValueType& second, Bytes room,
                         const Loop& loop) {
  const auto bytes = [](std::int64_t size) { return size == 0 ? unlimited : size; };
  LoopDivision division{.share = bytes(first.shape[1]),
                        .ahead = static_cast<std::uint32_t>(first.shape[2]),
                        .values = static_cast<std::uint64_t>(second.shape[2]),
                        .run_budget = bytes(second.shape[1])};
  if (division.values != 0) {
    division.kept = kept_in(room, held_in(first, loop), loop.kept(division.values));
  }
  return division;
}

void take_state_budgets(Tape& tape) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.operation(node).has_state_budget) continue;
    const ValueId room = room_of(tape, node);
    if (tape.shape(room)[0] > 0) tape.resize(room, state_budget_type(0).shape);
    const auto usual = division_types({});
    for (const ValueId i : {0, 1}) {
      const ValueId value = room - 2 + i;
      if (tape.type(value) != usual[i]) tape.resize(value, usual[i].shape);
    }
  }
}

}  // namespace palimpsest
