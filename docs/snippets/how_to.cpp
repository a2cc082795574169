// The code of docs/how-to.md, and of parts of docs/training.md and docs/models.md. Each function is
// one guide; all run as a test.
#include <palimpsest.h>
#include <palimpsest/data/data.h>
#include <palimpsest/nn/nn.h>
#include <palimpsest/strategy/execution/choice/memory_forecast.h>
#include <palimpsest/strategy/training/training.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace palimpsest;

namespace {

/// A loss over a few layers, large enough to be worth planning.
Var some_loss(Tape& tape) {
  const Var weight = tape.parameter(Tensor::normal({64, 64}, /*seed=*/2, 0, 0.1), "weight");
  Var x = tape.constant(Tensor::normal({256, 64}, /*seed=*/1), "input");
  for (int layer = 0; layer < 12; ++layer) {
    const Tape::Scope scope = tape.scope("layer" + std::to_string(layer));
    x = tanh(matmul(x, weight));
  }
  return mean(square(x));
}

void refused_budget() {
  Tape tape;
  const Var loss = some_loss(tape);
  try {
    backward(loss, {.memory_budget = 4_KiB});
  } catch (const BudgetError& error) {
    std::cout << error.what() << '\n';
    backward(loss, {.memory_budget = error.smallest_feasible()});  // works
  }
}

void will_it_fit() {
  Tape tape;
  const Var loss = some_loss(tape);
  const Plan plan = plan_backward(loss, {.memory_budget = 512_KiB});  // runs nothing
  std::cout << plan.summary() << '\n'
            << "peak " << format_bytes(plan.predicted_peak()) << ", extra work "
            << 100 * plan.compute_overhead() << " %\n";
}

void explain_the_peak(const std::string& folder) {
  Tape tape;
  const Var loss = some_loss(tape);
  const Report report = backward(loss, {.memory_budget = 512_KiB}).report();
  std::cout << report.explain();
  report.write_html(folder + "/peak.html");
}

void accuracy_during_training() {
  nn::Parameters parameters(/*seed=*/1);
  const nn::Linear model(parameters / "head", 8, 3);
  const auto optimizer = adam({.learning_rate = 0.01});
  const Tensor inputs = Tensor::normal({30, 8}, /*seed=*/2);
  const Tensor labels = Tensor::zeros({30}, DType::i64);

  Tape tape;
  const Var logits = model(tape.constant(inputs));
  const Var loss = cross_entropy(logits, tape.constant(labels));
  const Gradients gradients = backward(loss, {logits}, {.memory_budget = 1_MiB});
  optimizer->step(gradients);
  Accuracy accuracy;
  accuracy.add(gradients.outputs()[0], labels);  // from the same run
  std::cout << "accuracy " << accuracy.value() << '\n';
}

void freeze_layers() {
  nn::Parameters parameters(/*seed=*/1);
  const nn::Linear backbone(parameters / "backbone", 8, 16);
  const nn::Linear head(parameters / "head", 16, 3);
  (parameters / "backbone").freeze();

  Tape tape;
  const Var logits = head(relu(backbone(tape.constant(Tensor::ones({4, 8})))));
  const Gradients gradients = backward(mean(square(logits)));
  std::cout << gradients.entries().size() << " gradients\n";  // weight and bias of the head
}

void tie_weights() {
  nn::Parameters parameters(/*seed=*/1);
  const nn::Embedding words(parameters / "words", 100, 16);

  Tape tape;
  const Var table = words.weight.on(tape);
  const Var hidden = words(tape.constant(Tensor::zeros({5}, DType::i64)));
  const Var logits = matmul(hidden, table, {.transpose_b = true});  // the same parameter again
  const Gradients gradients = backward(mean(square(logits)));
  std::cout << gradients.entries().size() << " gradient\n";  // the sum over both uses
}

void clip_and_schedule() {
  nn::Parameters parameters(/*seed=*/1);
  const nn::Linear model(parameters / "model", 8, 1);
  const auto optimizer = adamw({.weight_decay = 0.1});
  const RateSchedule rate = warm_up({.steps = 10}, cosine_decay({.rate = 0.01, .steps = 90}));
  Tape tape;
  for (std::int64_t step = 0; step < 5; ++step) {
    tape.clear();
    const Var error = model(tape.constant(Tensor::ones({4, 8}))) - 1;
    Gradients gradients = backward(mean(square(error)));
    clip_by_norm(gradients, 1.0);
    optimizer->set_learning_rate(rate(step));
    optimizer->step(gradients);
  }
}

void find_a_nan() {
  Tape tape;
  const Var x = tape.parameter(Tensor::zeros({3}), "x");
  const Var loss = sum(x * log(x));
  try {
    backward(loss, {.anomaly = true});
  } catch (const AnomalyError& error) {
    std::cout << error.what() << '\n';  // names the operation and its line
  }
}

void measure() {
  Tape tape;
  const Var loss = some_loss(tape);
  const Report report = backward(loss, {.profile = true}).report();
  std::cout << report.by_operation(measured_machine());
}

void choose_threads() {
  Tape tape;
  const Var loss = some_loss(tape);
  const Tensor two = backward(loss, {.threads = 2}).entries()[0].gradient;
  const Tensor one = backward(loss, {.threads = 1}).entries()[0].gradient;
  std::cout << std::boolalpha << same_bits(one, two) << '\n';  // true
}

void embed_in_a_service() {
  Var input;
  const Program program = Program::values(
      [&](Tape& tape) -> std::vector<Var> {
        input = tape.constant(Tensor::zeros({16, 64}), "input");
        const Var weight = tape.constant(Tensor::normal({64, 10}, /*seed=*/1), "weight");
        return {softmax(matmul(input, weight), 1)};
      },
      {.memory_budget = 64_KiB, .threads = 1});
  // One runner for each thread of the service. They share the plan and the weights.
  std::vector<std::jthread> workers;
  for (std::uint64_t worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&program, &input, worker] {
      Runner runner(program);
      runner.bind(input, Tensor::normal({16, 64}, worker));
      runner.run();
      const Tensor answer = runner.value(program.outputs()[0]);
      if (std::abs(answer.at(0)) > 1) std::abort();
    });
  }
}

void stop_a_run() {
  Tape tape;
  const Var loss = some_loss(tape);
  std::stop_source source;
  source.request_stop();  // usually from another thread or a signal handler's thread
  try {
    backward(loss, {.stop = source.get_token()});
  } catch (const StoppedError&) {
    std::cout << "stopped; the tape is still usable\n";
  }
}

void watch_a_run() {
  Tape tape;
  const Var loss = some_loss(tape);
  backward(loss, {.progress = on_progress([](const RunProgress& p) {
                    std::cerr << p.steps_done << " of " << p.steps << '\r';
                  })});
}

void run_a_model_in_an_execution() {
  nn::Parameters parameters(/*seed=*/1);
  const nn::Linear model(parameters / "head", 8, 3);
  const Tensor inputs = Tensor::normal({32, 8}, /*seed=*/2);
  const Tensor labels = Tensor::zeros({32}, DType::i64);
  Execution execution({.accumulation = 2});
  const ModelFunction loss = [&](Tape&, std::span<const Var>, std::span<const Var> batch) {
    return cross_entropy(model(batch[0]), batch[1]);
  };
  execution.gradients(loss, parameters.tensors(), std::vector{inputs, labels});

  const auto optimizer = adamw();
  const Workload workload{loss, parameters.tensors(), {inputs, labels}};
  std::cout << forecast_memory({.run = {.memory_budget = 2_GiB}}, workload, optimizer.get());
}

void half_the_batch_at_a_time() {
  const Tensor weight = Tensor::normal({8, 1}, /*seed=*/1);
  const Tensor inputs = Tensor::normal({32, 8}, /*seed=*/2);
  Execution execution({.accumulation = 4, .run = {.memory_budget = 1_MiB}});  // 4 micro-batches
  const ModelFunction model = [](Tape& tape, std::span<const Var> parameters,
                                 std::span<const Var> batch) {
    (void)tape;
    return mean(square(matmul(batch[0], parameters[0])));
  };
  const Gradients gradients = execution.gradients(model, std::vector{weight}, std::vector{inputs});
  std::cout << gradients.report().summary() << '\n';
}

void hessian_vector_product() {
  Tape tape;
  const Var weight = tape.parameter(Tensor::normal({64, 64}, /*seed=*/2, 0, 0.1), "weight");
  Var x = tape.constant(Tensor::normal({256, 64}, /*seed=*/1), "input");
  for (int layer = 0; layer < 12; ++layer) x = tanh(matmul(x, weight));
  const Var loss = mean(square(x));
  const Var direction = tape.constant(Tensor::ones({64, 64}));
  const Var product = hvp(loss, weight, direction);
  evaluate({&product, 1}, {.memory_budget = 2_MiB});
  std::cout << "element 0 of the product: " << product.value().at(0) << '\n';
}

/// Doubles height and width by a transposed convolution.
struct UpConvolution {
  UpConvolution(nn::Parameters p, std::int64_t inputs, std::int64_t outputs)
      : weight(p.add("weight", {inputs, outputs, 2, 2}, nn::init::fan_in_uniform(),
                     {.in = inputs, .out = outputs})) {}

  Var operator()(const Var& x) const {
    const auto scope = weight.scope(x.tape());  // reports name the layer
    return transposed_convolution(x, weight.on(x), {}, {.stride = 2});
  }

  nn::Parameter weight;
};

void use_a_layer_of_ones_own() {
  nn::Parameters parameters(/*seed=*/1);
  const UpConvolution up(parameters / "up", 32, 16);
  Tape tape;
  const Var image = up(tape.constant(Tensor::ones({1, 32, 8, 8})));
  std::cout << to_string(image.shape()) << '\n';  // (1, 16, 16, 16)
}

void loop_with_two_states() {
  Tape tape;
  const Var position = tape.parameter(Tensor::ones({4}, DType::f64), "position");
  const Var velocity = tape.parameter(Tensor::zeros({4}, DType::f64), "velocity");
  const std::vector<Var> end =
      scan({position, velocity}, 1000, [](std::span<const Var> state, const StepNumber&) {
        const Var faster = state[1] - 0.01 * state[0];
        return std::vector<Var>{state[0] + 0.01 * faster, faster};
      });
  backward(sum(square(end[0])));
}

void loop_on_disk(const std::string& folder) {
  Tape tape;
  const Var start = tape.parameter(Tensor::ones({1000}, DType::f64), "start");
  const auto body = [](const Var& u, const StepNumber&) { return u + 0.01 * sin(u); };
  const LoopOptions options{.spill = folder, .disk_costs = DiskCosts{.write = 0.1, .read = 0.1}};
  const Var end = scan(start, 1000, body, options);
  const Report report = backward(sum(end), {.memory_budget = 256_KiB}).report();
  std::cout << report.loops[0].disk_writes << " states were written\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  refused_budget();
  will_it_fit();
  explain_the_peak(folder);
  accuracy_during_training();
  freeze_layers();
  tie_weights();
  clip_and_schedule();
  find_a_nan();
  measure();
  choose_threads();
  embed_in_a_service();
  stop_a_run();
  watch_a_run();
  run_a_model_in_an_execution();
  half_the_batch_at_a_time();
  hessian_vector_product();
  use_a_layer_of_ones_own();
  loop_with_two_states();
  loop_on_disk(folder);
}
