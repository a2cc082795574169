#include "strategy/base/record_model.h"

#include <string>

#include "strategy/base/parameters.h"

namespace palimpsest {

LossAndOutputs record_model(const ModelFunction& model, Tape& tape,
                            std::span<const Tensor> parameters, std::span<const Tensor> batch) {
  if (!model) {
    throw ArgumentError("[execution] the model is an empty function; give one that records a loss");
  }
  std::vector<Var> inputs;
  for (const Tensor& parameter : parameters) inputs.push_back(tape.parameter(parameter));
  std::vector<Var> examples;
  for (const Tensor& tensor : batch) examples.push_back(tape.constant(tensor));
  LossAndOutputs made = model(tape, inputs, examples);
  const auto require_own = [&](const Var& value) {
    if (value.defined() && value.belongs_to(tape)) return;
    throw ArgumentError(
        "[execution] the model does not return a value of the tape it was given; return a Var "
        "recorded on that tape");
  };
  require_own(made.loss);
  for (const Var& output : made.outputs) require_own(output);
  return made;
}

void require_all_given(Tape& tape, std::span<const Tensor> parameters) {
  const std::size_t recorded = parameters_of(tape).size();
  if (recorded == parameters.size()) return;
  throw ArgumentError("[execution] the model records " + std::to_string(recorded) +
                      " parameters, but is given " + std::to_string(parameters.size()) +
                      "; give all of them when a batch is cut into parts");
}

}  // namespace palimpsest
