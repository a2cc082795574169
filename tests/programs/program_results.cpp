#include "tests/programs/program_results.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace palimpsest {

void add(Results& results, const std::string& of, const Tensor& loss,
         std::span<const Tensor> gradients) {
  results.push_back({"loss" + of, loss});
  for (std::size_t i = 0; const Tensor& gradient : gradients) {
    results.push_back({"gradient " + std::to_string(i++) + of, gradient});
  }
}
Tensor with_positive_zero(const Tensor& loss) {
  Tape tape;
  return (tape.constant(loss) + 0.0).value();
}

std::vector<Tensor> tensors_of(std::span<const Var> values) {
  std::vector<Tensor> tensors;
  for (const Var& value : values) tensors.push_back(value.value());
  return tensors;
}

bool same_numbers(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type()) return false;
  if (same_bits(a, b)) return true;
  const auto size = static_cast<std::size_t>(size_of(a.dtype()));
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const auto offset = static_cast<std::size_t>(i) * size;
    const bool same = std::equal(a.raw() + offset, a.raw() + offset + size, b.raw() + offset);
    if (!same && !(std::isnan(a.at(i)) && std::isnan(b.at(i)))) return false;
  }
  return true;
}

Results reference_of(const ProgramText& text) {
  Tape tape;
  const ComposedProgram program = compose(tape, text);
  Results results;
  add(results, "", program.loss.value(), tensors_of(gradient(program.loss, program.parameters)));
  add(results, of_other, program.other_loss.value(),
      tensors_of(gradient(program.other_loss, program.parameters)));
  results.push_back({"last value", program.last.value()});
  return results;
}

Results reference_of(const ProgramText& text, const Precision& precision) {
  const RunOptions plain{.planner = keep_all(), .threads = 1, .fuse = false, .simplify = false};
  Tape tape(precise(precision, lazy(plain)));
  const ComposedProgram program = compose(tape, text);
  const auto find = [&](const Var& loss) {
    return results_of(backward(loss, plain), program.parameters);
  };
  Results results = find(program.loss);
  for (Result& other : find(program.other_loss)) {
    results.push_back({other.name + of_other, std::move(other.tensor)});
  }
  results.push_back({"last value", program.last.value()});
  return results;
}

Results results_of(const Gradients& gradients, std::span<const Var> parameters) {
  std::vector<Tensor> of_parameters;
  for (const Var& each : parameters) of_parameters.push_back(gradients[each]);
  Results results;
  add(results, "", gradients.loss(), of_parameters);
  return results;
}

Results results_of(const Gradients& gradients) {
  std::vector<Tensor> of_parameters;
  for (const auto& entry : gradients) of_parameters.push_back(entry.gradient);
  Results results;
  add(results, "", gradients.loss(), of_parameters);
  return results;
}

std::string difference(const Results& found, const Results& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (same_numbers(found[i].tensor, expected[i].tensor)) continue;
    std::ostringstream text;
    text << "the " << expected[i].name << " is\n"
         << found[i].tensor << "\nnot\n"
         << expected[i].tensor;
    return text.str();
  }
  return {};
}

}  // namespace palimpsest
