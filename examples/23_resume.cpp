// A training run that is stopped half-way and continues from a file, with the same bits as one that
// was not stopped. It has parameter groups, a schedule of the learning rate, dropout, and an
// average of the weights. At the end, L-BFGS minimises the loss without dropout further.
//
//   23_resume [FOLDER]
#include <palimpsest.h>
#include <palimpsest/strategy/training/training.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

using namespace palimpsest;

namespace {

constexpr std::int64_t steps = 60;

struct Model {
  NamedTensors parameters{{"first/weight", Tensor::normal({8, 32}, /*seed=*/1, 0, 0.4)},
                          {"first/bias", Tensor::zeros({32})},
                          {"second/weight", Tensor::normal({32, 1}, /*seed=*/2, 0, 0.2)}};

  /// Mean squared error of predicting the product of the first two numbers of each example.
  Var loss(Tape& tape, const Tensor& examples, double dropped) const {
    const auto parameter = [&](const char* name) {
      return tape.parameter(parameters.at(name), name);
    };
    const Var x = tape.constant(examples);
    const Var hidden = tanh(matmul(x, parameter("first/weight")) + parameter("first/bias"));
    const Var found = matmul(dropout(hidden, dropped), parameter("second/weight"));
    const Var expected = slice(x, 1, {.stop = 1}) * slice(x, 1, {.start = 1, .stop = 2});
    return mean(square(found - expected));
  }
};

Tensor batch_of(std::int64_t batch) {
  return Tensor::uniform({64, 8}, static_cast<std::uint64_t>(batch), -1, 1);
}

/// Everything that a run has. It can be destroyed and made again from a file.
struct Training {
  Model model;
  Tape tape;
  std::unique_ptr<Optimizer> optimizer = adamw(
      {.weight_decay = 0.1,
       .groups = {{.matches = names_ending({"bias"}), .weight_decay = 0},
                  {.matches = names_ending({"second/weight"}), .learning_rate_factor = 0.5}}});
  const RateSchedule rate = warm_up({.steps = 10}, cosine_decay({.rate = 0.02, .steps = 50}));
  WeightAverage average = WeightAverage::exponential({.decay = 0.9});

  std::vector<TrainingPart> parts() {
    return {{"parameters", model.parameters},
            {"optimizer", *optimizer},
            {"random", tape},
            {"average", average}};
  }

  void run(std::int64_t first, std::int64_t last) {
    for (std::int64_t step = first; step < last; ++step) {
      tape.clear();
      optimizer->set_learning_rate(rate(step));
      optimizer->step(backward(model.loss(tape, batch_of(step), /*dropped=*/0.1)));
      average.update(model.parameters);
    }
  }

  double loss() {
    tape.clear();
    return model.loss(tape, batch_of(steps), /*dropped=*/0).item();
  }
};

bool same_tensors(const NamedTensors& a, const NamedTensors& b) {
  bool same = a.size() == b.size();
  for (const auto& [name, tensor] : a) same = same && same_bits(tensor, b.at(name));
  return same;
}

void train_half(const std::string& path) {
  Training training;
  training.run(0, steps / 2);
  save_training(path, training.parts(), {{"step", steps / 2}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = std::string(argc > 1 ? argv[1] : ".") + "/23_resume.safetensors";
  const double before = Training().loss();
  Training whole;
  whole.run(0, steps);

  train_half(path);
  Training resumed;
  const DataPosition position = load_training(path, resumed.parts());
  resumed.run(integer_at(position, "step"), steps);
  const bool same = same_tensors(whole.model.parameters, resumed.model.parameters) &&
                    same_tensors(whole.average.averages(), resumed.average.averages());

  const double trained = whole.loss();
  double averaged = 0;
  {
    const AveragedWeights guard(whole.average, whole.model.parameters);
    averaged = whole.loss();
  }
  const LbfgsResult result = minimize_lbfgs(
      [&] {
        whole.tape.clear();
        return backward(whole.model.loss(whole.tape, batch_of(steps), /*dropped=*/0));
      },
      {.iterations = 30});
  std::cout << "loss " << before << ", trained " << trained << ", with averaged weights "
            << averaged << "\nafter " << result.iterations << " iterations of L-BFGS "
            << result.value << ": " << to_string(result.stop) << '\n'
            << (same ? "the resumed run has the same bits\n" : "the resumed run differs\n");
  return same && trained < before && averaged < before && result.value < trained ? 0 : 1;
}
