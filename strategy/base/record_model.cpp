#include "strategy/base/record_model.h"

#include <map>
#include <string>

#include "autodiff/require_function.h"
#include "strategy/base/parameters.h"

namespace palimpsest {

LossAndOutputs record_model(const ModelFunction& model, Tape& tape,
                            std::span<const Tensor> parameters, std::span<const Tensor> batch,
                            const Where& where) {
  detail::require_function(model, "execution", "the model", "records a loss", where);
  std::vector<Var> inputs;
  for (const Tensor& parameter : parameters) inputs.push_back(tape.parameter(parameter, {}, where));
  std::vector<Var> examples;
  for (const Tensor& tensor : batch) examples.push_back(tape.constant(tensor, {}, where));
  LossAndOutputs made = [&] {
    const InUse::Use use(tape.in_use(), tape_use::inner_program, "execution", &where);
    return model(tape, inputs, examples);
  }();
  const auto require_own = [&](const Var& value) {
    if (value.defined() && value.belongs_to(tape)) return;
    throw ArgumentError("execution",
                        "the model does not return a value of the tape it was given; return a Var "
                        "recorded on that tape",
                        where);
  };
  require_own(made.loss);
  for (const Var& output : made.outputs) require_own(output);
  return made;
}

void begin_part(Tape& tape, int part, const Tape& count) {
  tape.accompany(count);
  tape.set_seed(count.seed() + static_cast<std::uint64_t>(part));
  tape.set_part(static_cast<std::uint32_t>(part));
}

void require_not_frozen(Tape& tape, std::span<const Tensor> parameters, const Where& where) {
  std::map<const std::byte*, std::size_t> given;  // the positions
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].type().bytes() > 0) given.emplace(parameters[i].raw(), i);
  }
  std::vector<bool> is_constant(parameters.size());
  bool any = false;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.is_leaf(node) || tape.is_parameter(node)) continue;
    const auto found = given.find(tape.buffer(tape.first_output(node)).get());
    if (found == given.end()) continue;
    any = is_constant[found->second] = true;
  }
  if (!any) return;
  std::vector<bool> is_read(tape.value_count());
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    for (const ValueId input : tape.inputs(node)) is_read[input] = true;
  }
  const std::vector<Var> leaves = parameters_of(tape);  // the given ones come first
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!is_constant[i] || is_read[leaves[i].id()]) continue;
    throw ArgumentError(
        "execution",
        "parameter " + std::to_string(i) + " " + to_string(parameters[i].type()) +
            " is given, but the model reads its tensor as a constant, as it does "
            "with a frozen parameter; give the tensors() that are trainable now, or "
            "take stop_gradient of the given value where it is meant to be one",
        where);
  }
}

void require_all_given(Tape& tape, std::span<const Tensor> parameters, const Where& where) {
  const std::size_t recorded = parameters_of(tape).size();
  if (recorded == parameters.size()) return;
  throw ArgumentError("execution",
                      "the model records " + std::to_string(recorded) +
                          " parameters, but is given " + std::to_string(parameters.size()) +
                          "; give all of them when a batch is cut into parts",
                      where);
}

}  // namespace palimpsest
