// The code of docs/export-c.md.
#include <palimpsest.h>

#include <iostream>
#include <string>

using namespace palimpsest;

namespace {

void export_training(const std::string& folder) {
  Var image, label;
  const Program program = Program::gradients([&](Tape& tape) {
    const Var weight = tape.parameter(Tensor::normal({64, 10}, /*seed=*/1, 0, 0.1), "weight");
    const Var bias = tape.parameter(Tensor::zeros({10}), "bias");
    image = tape.constant(Tensor::zeros({1, 64}));
    label = tape.constant(Tensor::zeros({1}, DType::i32));
    return cross_entropy(linear(image, weight, bias), label);
  });
  const ExportedC train = export_c(program, {.memory_budget = 16_KiB,
                                             .name = "train",
                                             .arguments = {{"image", image}, {"label", label}},
                                             .optimizer = SgdOptions{.momentum = 0.9}});
  write_files(train, folder);  // train.h and train.c
  std::cout << train.total_bytes() << " bytes, " << train.arena_bytes << " of them in the arena\n";
}

}  // namespace

int main(int count, char** arguments) { export_training(count > 1 ? arguments[1] : "."); }
