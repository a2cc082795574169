#include "strategy/loops/loop_tangent.h"

#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/trace.h"
#include "strategy/loops/record_scan.h"

namespace palimpsest {
namespace {

/// The inputs of a loop, isolated from the rest of the tape, and their given tangents.
struct Primal {
  std::vector<Var> values;    // as the loop's operands
  std::vector<Var> tangents;  // by value; undefined where there is none
};

Primal primal_of(const LoopGradient& gradient, const Pullback& p) {
  const Loop& loop = gradient.loop();
  const LoopGradient::Requested& requested = gradient.requested();
  Primal primal;
  std::size_t output = 0;
  for (std::size_t i = 0; i < loop.operand_count(); ++i) {
    // Copies confine the backward walk to nodes recorded here.
    primal.values.push_back(identity(p.input(i), p.where()));
    const std::size_t input = i - loop.state_count();
    const bool is_asked = i < loop.state_count() ? requested.state[i]
                          : input < loop.input_count()
                              ? requested.inputs[input]
                              : requested.captured[input - loop.input_count()];
    primal.tangents.emplace_back();
    if (!is_asked) continue;
    // A copy, because a tangent may be a captured value itself, which stands for its primal copy in
    // the body.
    if (p.has_adjoint(output)) primal.tangents.back() = identity(p.adjoint(output), p.where());
    ++output;
  }
  return primal;
}

/// A step of the loop that carries the state and its tangents.
class TangentStep {
 public:
  TangentStep(std::shared_ptr<const Loop> loop, const LoopGradient& gradient, const Primal& primal)
      : loop_(std::move(loop)),
        carried_(gradient.carried()),
        outputs_(gradient.requested().outputs),
        states_(loop_->state_count()),
        inputs_(loop_->input_count()) {
    for (std::size_t i = states_; i < primal.values.size(); ++i) {
      const bool has_tangent = primal.tangents[i].defined();
      if (i < states_ + inputs_) {
        if (has_tangent) moving_inputs_.push_back(i - states_);
        continue;
      }
      captured_.push_back(primal.values[i]);
      tangents_.push_back(primal.tangents[i]);
    }
  }

  /// The condition of the loop itself, on the state without tangents.
  LoopStep condition(std::span<const Var> state, const StepNumber& n) const {
    const LoopStep made =
        again(loop_->body().condition, loop_->condition(), state.first(states_), {}, n);
    return {{state.begin(), state.end()}, made.outputs};
  }
  LoopStep operator()(std::span<const Var> state, std::span<const Var> inputs,
                      const StepNumber& n) const {
    const LoopStep made = primal(state.first(states_), inputs.first(inputs_), n);
    std::vector<Var> ys;
    std::vector<Var> xs;
    std::vector<Var> tangents(state.begin() + static_cast<std::ptrdiff_t>(states_), state.end());
    for (const std::size_t i : carried_) {
      ys.push_back(made.state[i]);
      xs.push_back(state[i]);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i]) ys.push_back(made.outputs[i]);
    }
    for (std::size_t k = 0; k < moving_inputs_.size(); ++k) {
      xs.push_back(inputs[moving_inputs_[k]]);
      tangents.push_back(inputs[inputs_ + k]);
    }
    for (std::size_t i = 0; i < captured_.size(); ++i) {
      if (!tangents_[i].defined()) continue;
      xs.push_back(captured_[i]);
      tangents.push_back(tangents_[i]);
    }
    const std::vector<Var> moved = jvp(ys, xs, tangents, loop_->body().where);
    const auto carried = moved.begin() + std::ssize(carried_);
    LoopStep step{made.state, {carried, moved.end()}};
    step.state.insert(step.state.end(), moved.begin(), carried);
    return step;
  }

 private:
  LoopStep primal(std::span<const Var> state, std::span<const Var> inputs,
                  const StepNumber& n) const {
    return again(loop_->body().body, loop_->step(), state, inputs, n);
  }

  LoopStep again(const LoopBody& f, const RecordedStep& step, std::span<const Var> state,
                 std::span<const Var> inputs, const StepNumber& n) const {
    if (loop_->is_recorded_again()) return f(state, inputs, n);
    std::vector<Var> values(state.begin(), state.end());
    values.insert(values.end(), inputs.begin(), inputs.end());
    values.insert(values.end(), captured_.begin(), captured_.end());
    values.push_back(n.as(DType::i64));
    std::vector<ValueId> outputs = step.next;
    outputs.insert(outputs.end(), step.outputs.begin(), step.outputs.end());
    const std::vector<Var> made =
        Trace::copy(*step.tape, values.back().tape(), step.arguments(), values, outputs);
    const auto next = made.begin() + std::ssize(step.next);
    return {{made.begin(), next}, {next, made.end()}};
  }

  std::shared_ptr<const Loop> loop_;
  std::vector<std::size_t> carried_;
  std::vector<bool> outputs_;
  std::size_t states_;
  std::size_t inputs_;
  std::vector<std::size_t> moving_inputs_;
  std::vector<Var> captured_;
  std::vector<Var> tangents_;  // of these
};

}  // namespace

void pull_back_gradient(const LoopGradient& gradient, const Pullback& p) {
  const std::shared_ptr<const Loop>& loop = gradient.shared_loop();
  const Where where = p.where();
  const Tape::WithGradient differentiable(p.tape());
  const Primal primal = primal_of(gradient, p);
  const auto first = primal.values.begin();
  std::vector<Var> state(first, first + std::ssize(loop->step().state));
  for (const std::size_t i : gradient.carried()) {
    const Var& tangent = primal.tangents[i];
    state.push_back(tangent.defined() ? tangent : full_like(primal.values[i], 0, where));
  }
  std::vector<Var> inputs;
  std::vector<Var> moving;
  for (std::size_t i = 0; i < loop->input_count(); ++i) {
    inputs.push_back(primal.values[loop->state_count() + i]);
    const Var& tangent = primal.tangents[loop->state_count() + i];
    if (tangent.defined()) moving.push_back(tangent);
  }
  inputs.insert(inputs.end(), moving.begin(), moving.end());

  StepBody body = loop->body();
  LoopOptions options = loop->options();
  options.captured.clear();
  for (std::size_t i = 0; loop->is_recorded_again() && i < loop->captured_count(); ++i) {
    const std::size_t place = loop->state_count() + loop->input_count() + i;
    body.aliases.emplace_back(loop->captured()[i], primal.values[place]);
    options.captured.push_back(primal.values[place]);  // later steps may be the first to read it
  }
  if (body.outer != &p.tape()) body.origins.push_back(std::exchange(body.outer, &p.tape()));
  if (!loop->is_recorded_again()) body.rewrite = nullptr;  // the step has already been rewritten
  const TangentStep step(loop, gradient, primal);
  body.body = step;
  if (loop->has_condition()) {
    body.condition = [step](std::span<const Var> xs, std::span<const Var>, const StepNumber& n) {
      return step.condition(xs, n);
    };
  }
  const LoopResult moved =
      record_scan(p.tape(), state, loop->steps(), inputs, std::move(body), options, true);

  std::vector<Var> ys;
  std::vector<std::size_t> seeds;
  std::size_t place = loop->operand_count() + (loop->has_condition() ? 2 : 1);
  for (std::size_t k = 0; k < gradient.carried().size(); ++k) {
    if (!gradient.requested().next[gradient.carried()[k]]) continue;
    ys.push_back(moved.state[loop->state_count() + k]);
    seeds.push_back(place++);
  }
  for (std::size_t i = 0; i < moved.outputs.size() && !loop->has_condition(); ++i) {
    ys.push_back(moved.outputs[i]);
    seeds.push_back(place++);
  }
  std::vector<Var> xs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < loop->operand_count(); ++i) {
    if (!p.wants(i) || !is_floating(p.input(i).dtype())) continue;
    xs.push_back(primal.values[i]);
    places.push_back(i);
  }
  std::vector<Var> given;
  for (std::size_t k = 0; k < ys.size(); ++k) {
    given.push_back(p.input(seeds[k]));
    if (p.wants(seeds[k])) p.set(seeds[k], ys[k]);
  }
  const std::vector<Var> gradients = vjp(ys, xs, given, where);
  for (std::size_t k = 0; k < places.size(); ++k) p.set(places[k], gradients[k]);
}

}  // namespace palimpsest
