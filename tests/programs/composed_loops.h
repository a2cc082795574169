#pragma once

#include <chrono>
#include <string>

#include "tests/programs/composed_values.h"

namespace palimpsest {

/// Records the loops of a random program.
class ComposedLoops : protected ComposedValues {
 protected:
  /// Loops outside of checkpoints keep journals in the directory `journals`, if one is given.
  ComposedLoops(Tape& tape, std::uint64_t seed, std::span<const Var> parameters,
                const std::string& journals)
      : ComposedValues(tape, seed, parameters), journals_(journals) {}

  /// With a record after each step, unless there is no directory for it.
  LoopOptions journaled(LoopOptions options = {}) const {
    if (journals_.empty() || tape_.is_temporary()) return options;
    options.resume = journals_;
    options.tag = "program";
    options.record_every = std::chrono::seconds(0);
    return options;
  }

  /// A loop, perhaps with its own budget, perhaps inside a checkpoint.
  void advect() {
    const Var x = bounded(DType::f64);
    const Var speed = like(bounded(DType::f64), x);
    const std::int64_t steps = below(std::int64_t{7});
    const bool has_own_budget = below(3) == 0;
    const bool is_inside = below(4) == 0;
    const bool differ = !is_inside && steps_differ();
    const bool reads = differ && below(2) == 0;
    made_.reads_values = made_.reads_values || reads;
    LoopOptions options;
    if (has_own_budget && seed_ < first_with_nesting) {
      options.memory_budget = 16 * x.type().bytes() + 4096;
    } else if (has_own_budget) {
      options.memory_budget = 100 * x.type().bytes() + 65536;  // for second derivatives too
    }
    // The first step may take less than half of what another one takes.
    if (differ && seed_ >= first_with_nesting) options.step_memory = 16 * x.type().bytes();
    const auto loop = [&](const Var& state) {
      return scan(
          state, steps,
          [speed, differ, reads](const Var& u, const StepNumber& n) {
            const Var next = u + 0.1 * speed * (roll_all(u) - u);
            const bool turns = reads ? sum(next).item() > 0 : differ && n % 2 == 1;
            return turns ? sin(next * speed) : next;
          },
          journaled(options));
    };
    const std::string line = loop_of(steps, differ) + (reads ? " that read values" : "");
    if (is_inside) return keep("checkpoint of a " + line, checkpoint(loop, x));
    keep(line, loop(x));
  }

  /// A loop with two state values, an input and an output per step, the step number, and a
  /// checkpoint in its body.
  void accumulate() {
    const Var x = bounded(DType::f64);
    const std::int64_t steps = 1 + below(std::int64_t{5});
    const Var given = reshaped(bounded(DType::f64), {steps, 3});
    const Var total = sum(x);
    const bool differ = steps_differ();
    const LoopBody body = [differ](std::span<const Var> state, std::span<const Var> inputs,
                                   const StepNumber& n) {
      const double factor = differ && n % 3 == 1 ? 0.75 : 1.5;
      const auto scaled = [factor](const Var& a) { return tanh(sin(a) * factor); };
      const Var next = checkpoint(scaled, state[0]) * mean(inputs[0]);
      const Var sum_of_all = state[1] + sum(next) * (1 + n.as(DType::f64));
      return LoopStep{{next, sum_of_all}, {roll_all(next), sum_of_all}};
    };
    const Var states[] = {x, total};
    const LoopResult result = scan(states, steps, {&given, 1}, body, journaled());
    keep(loop_of(steps, differ) + " of two states",
         below(2) == 0 ? result.state[1] : result.outputs[below(std::size_t{2})]);
  }

  /// A loop of four state tensors. Derivatives of a step read the first one. The second follows it,
  /// the third is linear, and the last one counts.
  void follow() {
    const Var x = bounded(DType::f64);
    const Var speed = like(bounded(DType::f64), x);
    const bool differ = steps_differ();
    const std::int64_t steps = below(std::int64_t{7});
    const LoopBody body = [speed, differ](std::span<const Var> state, std::span<const Var>,
                                          const StepNumber& n) {
      const Var next = tanh(state[0] * speed) * (differ && n % 2 == 1 ? 0.5 : 0.75);
      const Var linear = 0.5 * state[2] - 0.25 * roll_all(state[2]);
      return LoopStep{{next, 0.5 * state[1] + state[0] + linear, linear, state[3] + 1}};
    };
    const Var start[] = {x, speed, like(bounded(DType::f64), x),
                         tape_.constant(Tensor::zeros({}, DType::i64))};
    const LoopResult result = scan(start, steps, {}, body, journaled());
    const std::size_t first = below(std::size_t{3});
    const Var& other = result.state[below(std::size_t{3})];
    keep(loop_of(steps, differ) + " of four states",
         below(2) == 0 ? result.state[first] : result.state[first] + other);
  }

  /// A loop in a loop. The inner one captures a value that the outer one records or, if its steps
  /// are all the same, captures.
  void nest() {
    const Var x = bounded(DType::f64);
    const Var speed = like(bounded(DType::f64), x);
    const bool outer_differs = steps_differ();
    const bool inner_differs = steps_differ();
    const bool copies = inner_differs || below(2) == 0;
    const std::int64_t inner_steps = 1 + below(std::int64_t{3});
    const auto body = [=](const Var& u, const StepNumber& n) {
      const Var factor = copies ? tanh(speed * (outer_differs && n % 2 == 1 ? 0.5 : 1.0)) : speed;
      const auto inner = [factor, inner_differs](const Var& v, const StepNumber& k) {
        const Var next = sin(v * factor + 0.1);
        return inner_differs && k % 2 == 0 ? next * 0.5 + v : next;
      };
      return scan(u, inner_steps, inner) + 0.1 * u;
    };
    const std::int64_t steps = 1 + below(std::int64_t{3});
    keep(loop_of(steps, outer_differs) + " with a " + loop_of(inner_steps, inner_differs),
         scan(x, steps, body, journaled()));
  }

  /// A loop whose steps follow a gradient.
  void differentiate_in_steps() {
    const Var x = bounded(DType::f64);
    const Var weight = like(bounded(DType::f64), x);
    const bool differ = steps_differ();
    const auto body = [weight, differ](const Var& u, const StepNumber& n) {
      const Var energy = sum(square(sin(u * weight)));
      const Var slope = gradient(energy, u);
      return u - (differ && n % 2 == 1 ? 0.05 : 0.1) * slope;
    };
    const std::int64_t steps = 1 + below(std::int64_t{4});
    keep(loop_of(steps, differ) + " along gradients", scan(x, steps, body, journaled()));
  }

  /// Whether the steps of a loop are recorded one by one.
  bool steps_differ() {
    const bool differ = seed_ >= first_with_nesting && !tape_.is_temporary() && below(2) == 0;
    made_.steps_differ = made_.steps_differ || differ;
    return differ;
  }
  static std::string loop_of(std::int64_t steps, bool differ) {
    return "scan of " + std::to_string(steps) + (differ ? " different steps" : " steps");
  }

  /// A loop whose length depends on values.
  void shrink() {
    const Var x = bounded(DType::f64);
    const Var captured = like(bounded(DType::f64), x);
    const bool differ = steps_differ();
    const auto goes_on = [](const Var& state) { return sum(square(state)) > 0.01; };
    const auto body = [captured, differ](const Var& state, const StepNumber& n) {
      return state * ((differ && n % 2 == 1 ? 0.5 : 0.6) + 0.1 * captured);
    };
    keep(differ ? "while, different steps" : "while", while_loop(x, goes_on, body, journaled()));
  }

  static Var roll_all(const Var& x) { return x.rank() == 0 ? x : roll(x, 1, 0); }

 private:
  const std::string& journals_;
};

}  // namespace palimpsest
