// Examples of docs/reference/training.md.
#include <palimpsest/strategy/training/training.h>

#include "docs/snippets/reference/example.h"

namespace reference {
namespace {

/// The gradients of the sum of squares of a tensor.
Gradients gradients_at(Tape& tape, const Tensor& w, std::string_view name = "w") {
  tape.clear();
  return backward(sum(square(tape.parameter(w, name))));
}

}  // namespace

EXAMPLE(Optimizer, sgd, SgdOptions) {
  const Tensor w = Tensor::vector({1, 2});
  const auto optimizer = sgd({.learning_rate = 0.1, .momentum = 0.9});
  Tape tape;
  optimizer->step(gradients_at(tape, w));
  print(w, optimizer->steps(), optimizer->state_bytes(std::vector{w}));  // → [0.8, 1.6] 1 8
  optimizer->set_learning_rate(0.01);
  print(optimizer->learning_rate(), optimizer->state().size());  // → 0.01 4
}

EXAMPLE(adam, adamw, AdamOptions, AdamWOptions, rmsprop, RmspropOptions, lion, LionOptions,
        adafactor, AdafactorOptions) {
  for (const auto& optimizer : {adam(), adamw({.weight_decay = 0.1}), rmsprop(), lion()}) {
    const Tensor w = Tensor::vector({1, 2});
    Tape tape;
    optimizer->step(gradients_at(tape, w));
    print(w);
    // → [0.999, 1.999]
    // → [0.9989, 1.999]
    // → [0.9, 1.9]
    // → [0.9999, 2]
  }
}

EXAMPLE(names_ending, axes_at_most, ParameterGroup, ParameterInfo) {
  const auto optimizer =
      adamw({.weight_decay = 0.1,
             .groups = {{.matches = axes_at_most(1), .weight_decay = 0},
                        {.matches = names_ending({"head"}), .learning_rate_factor = 10}}});
  print(optimizer->learning_rate());  // → 0.001
}

EXAMPLE(RateSchedule, constant_rate, step_decay, StepDecayOptions, exponential_decay,
        ExponentialDecayOptions) {
  print(constant_rate(0.1)(5), step_decay({.rate = 1, .every = 10, .factor = 0.5})(20));
  // → 0.1 0.25
  print(exponential_decay({.rate = 1, .factor = 0.5})(3));  // → 0.125
}

EXAMPLE(cosine_decay, CosineDecayOptions, warm_up, WarmUpOptions, one_cycle, OneCycleOptions) {
  const RateSchedule rate = warm_up({.steps = 10}, cosine_decay({.rate = 1, .steps = 100}));
  print(rate(0), rate(10), rate.at(60), rate(110));    // → 0.3333 1 0.5 0
  print(one_cycle({.highest = 1, .steps = 100})(30));  // → 0.9995
}

EXAMPLE(PlateauSchedule, PlateauOptions) {
  PlateauSchedule schedule({.rate = 1, .factor = 0.5, .patience = 1});
  for (const double loss : {3.0, 2.0, 2.0, 2.0}) schedule.observe(loss);
  print(schedule.rate());  // → 0.5
}

EXAMPLE(WeightAverage, ExponentialAverageOptions, AverageStart, AveragedWeights) {
  const NamedTensors weights{{"w", Tensor::scalar(1)}};
  WeightAverage average = WeightAverage::exponential({.decay = 0.5});
  average.update(weights);
  weights.at("w").data<float>()[0] = 3;
  average.update(weights);
  print(average.averages().at("w"), average.updates());  // → 2 2
  const AveragedWeights guard(average, weights);  // the weights have their averages until it ends
  print(weights.at("w"), WeightAverage::equal().updates());  // → 2 0
}

EXAMPLE(minimize_lbfgs, LbfgsOptions, LbfgsResult, LbfgsIteration, LbfgsStop, ValueAndGradients) {
  const Tensor x = Tensor::from({-1.0, 2.0}, {2});
  Tape tape;
  const LbfgsResult result = minimize_lbfgs([&] {
    tape.clear();
    const Var p = tape.parameter(x);
    return backward(sum(square(p - 3)));
  });
  print(x, result.value, result.iterations > 0);  // → [3, 3] 1.972e-31 true
}

EXAMPLE(clip_by_norm) {
  Tape tape;
  const Gradients gradients = gradients_at(tape, Tensor::vector({3, 4}));
  // The norm before.
  print(clip_by_norm(gradients, 1));       // → 10
  print(gradients.entries()[0].gradient);  // → [0.6, 0.8]
}

EXAMPLE(GradientAccumulator, AccumulatorOptions, AccumulatorStatistics, GradientNormalization) {
  GradientAccumulator accumulator({.steps = 2});
  Tape tape;
  for (const double x : {1.0, 3.0}) {
    const bool complete = accumulator.step(gradients_at(tape, Tensor::scalar(x)));
    // The mean.
    if (complete) print(accumulator.gradients().entries()[0].gradient);  // → 4
  }
  print(accumulator.should_update(), accumulator.micro_batches());  // → false 2
  accumulator.reset();
  print(accumulator.statistics().updates);  // → 1
}

EXAMPLE(LossScaler, LossScalerOptions) {
  LossScaler scaler({.scale = 1024});
  Tape tape;
  const Var w = tape.parameter(Tensor::vector({1, 2}));
  const Gradients gradients = backward(scaler.scale(sum(square(w))));
  if (scaler.unscale(gradients)) print(gradients[w], scaler.loss());  // → [2, 4] 5
  print(scaler.scale(), scaler.skipped(), scaler.steps());            // → 1024 0 1
}

EXAMPLE(save_training, load_training, TrainingPart, integer_at, text_at) {
  const NamedTensors weights{{"w", Tensor::vector({1, 2})}};
  const auto optimizer = adam();
  const std::vector<TrainingPart> parts{{"parameters", weights}, {"optimizer", *optimizer}};
  save_training("run.safetensors", parts, {{"epoch", 3}, {"set", "train"}});
  const DataPosition position = load_training("run.safetensors", parts);
  print(integer_at(position, "epoch"), text_at(position, "set"), parts[0].name());
  // → 3 train parameters
}

EXAMPLE(read_training_state, write_training_state, TrainingState) {
  write_training_state("state.safetensors",
                       {.parts = {{"parameters", {{"w", Tensor::ones({2})}}}}, .position = {}});
  print(read_training_state("state.safetensors").parts.at("parameters").at("w"));  // → [1, 1]
}

EXAMPLE(save_safetensors, load_safetensors, load_safetensors_file, SafetensorsFile,
        map_safetensors) {
  save_safetensors("w.safetensors", {{"w", Tensor::vector({1, 2})}}, {{"made by", "me"}});
  print(load_safetensors("w.safetensors").at("w"));                      // → [1, 2]
  print(load_safetensors_file("w.safetensors").metadata.at("made by"));  // → me
  // Stays in the file.
  print(map_safetensors("w.safetensors").at("w"));  // → [1, 2]
}

EXAMPLE(GradientAccumulator::accumulate, GradientAccumulator::register_parameter,
        GradientAccumulator::gradient, GradientAccumulator::norm, GradientAccumulator::discard,
        GradientAccumulator::step_taking) {
  GradientAccumulator accumulator({.steps = 2, .normalization = GradientNormalization::sum});
  accumulator.register_parameter("w", {{2}, DType::f32});
  accumulator.accumulate("w", Tensor::vector({1, 2}));
  accumulator.step();
  accumulator.accumulate("w", Tensor::vector({2, 2}));
  accumulator.step();
  print(accumulator.gradient("w"), accumulator.norm());  // → [3, 4] 5
}

EXAMPLE(Optimizer::state, Optimizer::check_state, Optimizer::load_state) {
  const Tensor w = Tensor::vector({1, 2});
  const auto optimizer = adam(), other = adam();
  Tape tape;
  optimizer->step(gradients_at(tape, w));
  other->check_state(optimizer->state());  // throws what `load_state` would
  other->load_state(optimizer->state());
  print(other->steps());  // → 1
}

EXAMPLE(WeightAverage::state, WeightAverage::check_state, WeightAverage::load_state,
        WeightAverage::copy_to) {
  const NamedTensors weights{{"w", Tensor::scalar(1)}};
  WeightAverage average = WeightAverage::equal(), other = WeightAverage::equal();
  average.update(weights);
  other.load_state(average.state());
  other.copy_to(weights);
  print(other.updates(), weights.at("w"));  // → 1 1
}

EXAMPLE(PlateauSchedule::state, PlateauSchedule::check_state, PlateauSchedule::load_state,
        LossScaler::state, LossScaler::check_state, LossScaler::load_state) {
  LossScaler scaler({.scale = 8}), other;
  other.load_state(scaler.state());
  PlateauSchedule schedule, next;
  next.load_state(schedule.state());
  print(other.scale(), next.rate());  // → 8 0.01
}

EXAMPLE(to_string) {
  print(to_string(LbfgsStop::gradient));  // → the gradient is small enough
}

EXAMPLE(RateSchedule::at) {
  const RateSchedule rate([](std::int64_t step) { return 0.1 / static_cast<double>(1 + step); });
  print(rate.at(0), rate.at(3));  // → 0.1 0.025
}

EXAMPLE(LossScaler::unscaled) {
  LossScaler scaler({.scale = 8});
  Tape tape;
  const Var w = tape.parameter(Tensor::scalar(3));
  const Gradients scaled = backward(scaler.scale(square(w)));
  // As `unscale`, of parts that need not come from one `backward`.
  const Gradients gradients =
      scaler.unscaled(scaled.loss(), {scaled.begin(), scaled.end()}, scaled.report());
  print(gradients.loss(), gradients[w], gradients.report().loss_scale);  // → 9 6 8
}

EXAMPLE(TrainingPart::name, TrainingPart::state, TrainingPart::check_state,
        TrainingPart::load_state) {
  LossScaler scaler({.scale = 8}), other;
  const TrainingPart part("scaler", scaler), of_other("scaler", other);
  of_other.check_state(part.state());  // throws what `load_state` would
  of_other.load_state(part.state());
  print(part.name(), other.scale());  // → scaler 8
}

}  // namespace reference
