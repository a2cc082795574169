#include "tests/programs/program_values.h"

#include <algorithm>
#include <vector>

namespace palimpsest {
namespace {

std::vector<Var> values_of(const ComposedProgram& program) {
  return {program.loss, program.other_loss, program.last};
}

/// The values that a reference has under these names.
std::vector<Tensor> expected_values(const Results& expected) {
  std::vector<Tensor> values;
  for (const Result& each : expected) {
    if (each.name.starts_with("loss")) values.push_back(each.tensor);
  }
  values.push_back(expected.back().tensor);
  return values;
}

std::string problem_within(const ProgramText& text, Bytes budget, std::span<const Tensor> expected,
                           Bytes* named) {
  Tape tape;
  const ComposedProgram program = compose(tape, text);
  const std::vector<Var> values = values_of(program);
  try {
    const Report report = evaluate(values, {.memory_budget = budget, .threads = 1});
    if (report.measured_peak > report.predicted_peak) return "takes more than predicted";
    if (report.predicted_peak > budget) return "takes more than its budget";
  } catch (const BudgetError& error) {
    *named = error.smallest_feasible();
    return {};
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!same_numbers(values[i].value(), expected[i])) return "has other bits";
  }
  return {};
}

}  // namespace

std::optional<std::string> problem_of_values(const ProgramText& text, const Results& expected) {
  try {
    const std::vector<Tensor> values = expected_values(expected);
    Bytes whole = 0;
    {
      Tape tape;
      const ComposedProgram program = compose(tape, text);
      if (program.reads_values) return {};  // it has computed some of them
      whole = evaluate(values_of(program), {.threads = 1}).predicted_peak;
    }
    for (const double share : {0.0, 0.3, 0.6, 0.9, 1.0}) {
      Bytes named = 0;
      Bytes budget = static_cast<Bytes>(share * static_cast<double>(whole));
      std::string problem = problem_within(text, budget, values, &named);
      if (named > 0) {
        budget = named;
        named = 0;
        problem = problem_within(text, budget, values, &named);
        if (named > 0) problem = "needs " + std::to_string(named) + " bytes, more than was named";
      }
      if (!problem.empty()) {
        return "evaluated within " + std::to_string(budget) + " bytes: " + problem;
      }
    }
    return {};
  } catch (const std::exception& error) {
    return std::string("evaluated within a budget: ") + error.what();
  }
}

}  // namespace palimpsest
