// Examples of docs/reference/derivatives.md.
#include <palimpsest/autodiff/composition.h>
#include <palimpsest/autodiff/eigen.h>

#include <sstream>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(backward, Gradients, Gradients::loss, Gradients::outputs, Gradients::entries) {
  Tape tape;
  const Var w = tape.parameter(Tensor::vector({1, 2}), "w");
  const Var squares = square(w);
  const Gradients gradients = backward(sum(squares), {squares}, {.memory_budget = 1_MiB});
  print(gradients.loss(), gradients[w]);  // → 5 [2, 4]
  print(gradients.outputs()[0]);          // → [1, 4]
  for (const Gradients::Entry& entry : gradients.entries()) print(entry.name, entry.gradient);
  // → w [2, 4]
  print(gradients.report().recomputed);  // → 0
}

EXAMPLE(Gradients::keep_apart) {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({0, 1}));
  const Var y = exp(x);
  const Gradients gradients = backward(sum(y), {y});  // the gradient is the output
  gradients.keep_apart();
  gradients[x].data<float>()[0] = 0;
  print(gradients[x], gradients.outputs()[0]);  // → [0, 2.718] [1, 2.718]
}

EXAMPLE(Gradients::counts, Gradients::set_counts, LossCounts, LossCounts::empty) {
  Tape tape;
  const Var scores = tape.parameter(Tensor::matrix({{1, 2}, {3, 4}}));
  const Var classes = tape.constant(Tensor::from<std::int64_t>({1, -100}, {2}));
  Gradients gradients = backward(cross_entropy(scores, classes, {.ignore_index = -100}));
  print(gradients.counts().counts[0], gradients.counts().has_other_terms);  // → 1 false
  gradients.set_counts({});
  print(gradients.counts().empty());  // → true
}

EXAMPLE(plan_backward) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({1000}));
  const Plan plan = plan_backward(sum(exp(sin(x))), {.memory_budget = 64_KiB});
  print(plan.predicted_peak() <= 64_KiB, plan.compute_overhead());  // → true 0
}

EXAMPLE(forecast_backward, forecast_values, evaluate) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({1000}));
  const Var y = sum(square(x));
  print(forecast_backward(y).seconds > 0);                              // → true
  print(forecast_values({&y, 1}).seconds > 0);                          // → true
  print(evaluate({&y, 1}, {.memory_budget = 64_KiB}).computed > 0, y);  // → true 1000
}

EXAMPLE(write_graph, write_dot, write_compilation) {
  Tape tape;
  const Var loss = sum(square(tape.parameter(Tensor::ones({2}))));
  write_graph(loss, "loss.json");  // for palimpsest-plan
  std::ostringstream dot, passes;
  write_dot(dot, loss);                                 // for Graphviz
  write_compilation(passes, loss);                      // what each pass of the compiler did
  print(dot.str().substr(0, 7), passes.str().empty());  // → digraph false
}

EXAMPLE(gradient) {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(2));
  const Var first = gradient(x * x * x, x);
  // Recorded, so it can be differentiated again.
  print(first, gradient(first, x));  // → 12 12
}

EXAMPLE(vjp) {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  const Var ys[] = {square(x)}, xs[] = {x}, seeds[] = {tape.constant(Tensor::vector({1, 10}))};
  print(vjp(ys, xs, seeds)[0]);  // → [2, 40]
}

EXAMPLE(jvp) {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  print(jvp(square(x), x, tape.constant(Tensor::vector({1, 0}))));  // → [2, 0]
}

EXAMPLE(hvp, hessian, jacobian) {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  const Var y = sum(x * x * x);
  print(hvp(y, x, tape.constant(Tensor::vector({1, 0}))));  // → [6, 0]
  print(hessian(y, x));                                     // → [[6, 0], [0, 12]]
  print(jacobian(square(x), x));                            // → [[2, 0], [0, 4]]
}

EXAMPLE(gradcheck, GradcheckOptions, GradcheckResult) {
  const Tensor inputs[] = {Tensor::uniform({3}, /*seed=*/1, 1, 2, DType::f64)};
  const GradcheckResult result =
      gradcheck([](std::span<const Var> x) { return log(x[0]) * x[0]; }, inputs, {.order = 2});
  print(result.passed);  // → true
}

EXAMPLE(CustomOperation, CustomDefinition, CustomCall, Pullback) {
  const CustomOperation cube({
      .name = "cube",
      .forward =
          [](const CustomCall& call) {
            const auto x = call.inputs[0].data<float>(), y = call.outputs[0].data<float>();
            for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i] * x[i];
          },
      .vjp = [](const Pullback& p) { p.set(0, p.adjoint() * 3.0 * square(p.input())); },
  });
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({2}));
  print(cube({x}), gradient(sum(cube({x})), x));  // → [8] [12]
}

EXAMPLE(Pullback::wants, Pullback::output, Pullback::set_none, Pullback::has_adjoint,
        Pullback::input_count, Pullback::output_count, Pullback::tape, Pullback::where) {
  const CustomOperation scaled_exp({
      .name = "scaled_exp",
      .forward =
          [](const CustomCall& call) {
            const auto x = call.inputs[0].data<float>(), y = call.outputs[0].data<float>();
            const auto scale = call.inputs[1].item<float>();
            for (std::size_t i = 0; i < x.size(); ++i) y[i] = scale * std::exp(x[i]);
          },
      .vjp =
          [](const Pullback& p) {
            if (p.wants(0)) p.set(0, p.adjoint() * p.output());
            if (p.wants(1)) p.set(1, sum(p.adjoint() * exp(p.input())));
          },
  });
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({0, 1})), scale = tape.parameter(Tensor::scalar(2));
  const Gradients gradients = backward(sum(scaled_exp({x, scale})));
  print(gradients[x], gradients[scale]);  // → [2, 5.437] 3.718
}

EXAMPLE(pull_back_through) {
  const CustomOperation doubled({
      .name = "doubled",
      .forward =
          [](const CustomCall& call) {
            call.outputs[0].data<float>()[0] = 2 * call.inputs[0].data<float>()[0];
          },
      .vjp =
          [](const Pullback& p) {
            // As if it had been recorded with operations.
            pull_back_through(p,
                              [](std::span<const Var> x) { return std::vector<Var>{x[0] + x[0]}; });
          },
  });
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({3}));
  print(gradient(sum(doubled({x})), x));  // → [2]
}

EXAMPLE(checkpoint, CheckpointOptions) {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  // Values inside are not kept; the backward part computes them again.
  const Var y = checkpoint([](const Var& a) { return exp(sin(a)); }, x);
  print(backward(sum(y))[x]);  // → [1.253, -1.033]
}

EXAMPLE(Gradients::begin, Gradients::end) {
  Tape tape;
  const Var a = tape.parameter(Tensor::scalar(2), "a"), b = tape.parameter(Tensor::scalar(3), "b");
  for (const Gradients::Entry& entry : backward(a * b)) print(entry.name, entry.gradient);
  // → a 3
  // → b 2
}

EXAMPLE(Outputs, Outputs::values, LossAndOutputs) {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(2));
  const Outputs outputs{square(x), exp(x)};
  print(outputs.values().size(), backward(x * 3, outputs).outputs()[1]);  // → 2 7.389
}

EXAMPLE(Pullback::set_product, Pullback::is_set) {
  const CustomOperation product({
      .name = "product",  // x·w
      .types =
          [](std::span<const ValueType> x) {
            return std::vector<ValueType>{{{x[0].shape[0], x[1].shape[1]}, x[0].dtype}};
          },
      .forward =
          [](const CustomCall& call) {
            as_matrix<float>(call.outputs[0]) =
                as_matrix<float>(call.inputs[0]) * as_matrix<float>(call.inputs[1]);
          },
      .vjp =
          [](const Pullback& p) {
            p.set(0, matmul(p.adjoint(), p.input(1), {.transpose_b = true}));
            print(p.is_set(0), p.is_set(1));  // → true false
            // xᵀ·adjoint; several that are added up may become one product.
            p.set_product(1, p.input(0), p.adjoint());
          },
  });
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2, 3})), w = tape.parameter(Tensor::ones({3, 1}));
  print(gradient(sum(product({x, w})), w));  // → [[2], [2], [2]]
}

EXAMPLE(Pullback::attributes) {
  struct Factor {
    double number;
  };
  static constexpr Operation scaled{
      .name = "scaled",
      .formula = "number·x",
      .summary = "x times a number.",
      .compute =
          [](const KernelCall& call) {
            const auto number = static_cast<float>(call.attributes.as<Factor>().number);
            for (std::int64_t i = 0; i < call.output().elements(); ++i) {
              call.output().as<float>()[i] = number * call.input().as<float>()[i];
            }
          },
      .vjp = [](const Pullback& p) { p.set(0, p.adjoint() * p.attributes().as<Factor>().number); }};
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  const Var y = tape.record(scaled, {&x, 1}, {{x.type()}}, Factor{3}, Where::current());
  print(y, gradient(sum(y), x));  // → [3, 6] [3, 3]
}

}  // namespace reference
