#include "strategy/base/record_model.h"

#include <string>

#include "strategy/base/parameters.h"

namespace palimpsest {

LossAndOutputs record_model(const ModelFunction& model, Tape& tape,
                            std::span<const Tensor> parameters, std::span<const Tensor> batch) {
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

void require_no_outputs(const LossAndOutputs& values, const char* runner) {
  const Tape& tape = values.loss.tape();
  if (!tape.updates().empty()) {
    throw ArgumentError(runner,
                        "the model updates " + std::to_string(tape.updates().size()) +
                            " tensors, as running statistics do, which only an Execution with "
                            "parallelism none, automatic or data_parallel does",
                        tape.where(tape.producer(tape.updates()[0].value)));
  }
  if (values.outputs.empty()) return;
  throw ArgumentError(runner,
                      "the model returns " + std::to_string(values.outputs.size()) +
                          " auxiliary outputs, which only an Execution with parallelism none, "
                          "automatic or data_parallel computes; return the loss alone",
                      where_recorded(values.outputs[0]));
}

void require_all_given(Tape& tape, std::span<const Tensor> parameters) {
  const std::size_t recorded = parameters_of(tape).size();
  if (recorded == parameters.size()) return;
  throw ArgumentError("[execution] the model records " + std::to_string(recorded) +
                      " parameters, but is given " + std::to_string(parameters.size()) +
                      "; give all of them when a batch is cut into parts");
}

}  // namespace palimpsest
