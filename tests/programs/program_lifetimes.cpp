#include "tests/programs/program_lifetimes.h"

#include <array>
#include <functional>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "tests/copying_operation.h"

namespace palimpsest {
namespace {

/// What a run leaves behind.
struct Remains {
  Gradients gradients;
  std::vector<Var> handles;
};

using Way = std::function<Remains(const ProgramText& text)>;

std::vector<Var> handles_of(const ComposedProgram& program) {
  std::vector<Var> handles = program.parameters;
  handles.push_back(program.loss);
  handles.push_back(program.last);
  return handles;
}

LossAndOutputs with_last(const ComposedProgram& program) { return {program.loss, {program.last}}; }

Remains from_tape(const ProgramText& text) {
  Tape tape;
  const ComposedProgram program = compose(tape, text);
  return {backward(with_last(program), {.threads = 1}), handles_of(program)};
}

Remains from_program(const ProgramText& text) {
  std::vector<Var> handles;
  Runner runner(Program::gradients(
      [&](Tape& tape) {
        const ComposedProgram program = compose(tape, text);
        handles = handles_of(program);
        return with_last(program);
      },
      {.threads = 1}));
  runner.run();
  return {runner.gradients(), std::move(handles)};
}

Remains from_execution(const ProgramText& text) {
  std::vector<Tensor> parameters;
  ComposedModules modules(text.seed);
  {
    Tape tape;
    for (const Var& each : compose(tape, text, {}, &modules).parameters) {
      parameters.push_back(each.value());
    }
  }
  std::vector<Var> handles;
  const ModelFunction model = [&](Tape& tape, std::span<const Var> given, std::span<const Var>) {
    const ComposedProgram program = compose(tape, text, given, &modules);
    handles = handles_of(program);
    return with_last(program);
  };
  ExecutionStrategy strategy;
  strategy.run.threads = 1;
  Execution execution(strategy, LossReduction::sum);
  return {execution.gradients(model, parameters, {}), std::move(handles)};
}

/// The parameters after a step with these gradients.
std::vector<Tensor> after_step(const Gradients& gradients) {
  sgd({.learning_rate = 0.5})->step(gradients);
  std::vector<Tensor> parameters;
  for (const Gradients::Entry& entry : gradients) parameters.push_back(entry.value);
  return parameters;
}

std::vector<Tensor> after_step_on_tape(const ProgramText& text) {
  Tape tape;
  const ComposedProgram program = compose(tape, text);
  return after_step(backward(program.loss, {.threads = 1}));
}

/// Whether a use of a handle is a `TapeError`.
bool is_refused(const std::function<void()>& use) {
  try {
    use();
  } catch (const TapeError&) {
    return true;
  }
  return false;
}

bool is_unusable(const Var& handle) {
  return !handle.is_current() && is_refused([&] { handle.value(); }) &&
         is_refused([&] { handle.shape(); }) && is_refused([&] { handle + handle; });
}

std::string problem_of(const Way& way, const ProgramText& text, const Results& expected,
                       const std::vector<Tensor>& stepped) {
  const Remains remains = way(text);
  Results results = results_of(remains.gradients);
  if (std::string different = difference(results, expected); !different.empty()) return different;
  // An execution makes an output without axes one with an element for each part.
  const Tensor& last = expected.back().tensor;
  const Tensor output = remains.gradients.outputs()[0].reshape(last.shape());
  if (!same_numbers(output, last)) return "an output differs";
  std::ostringstream report;
  report << remains.gradients.report();
  if (report.str().empty()) return "the report is empty";
  for (const Var& handle : remains.handles) {
    if (!is_unusable(handle)) return "a Var of a tape that is gone is no TapeError";
  }
  for (const Gradients::Entry& entry : remains.gradients) {
    if (!is_unusable(entry.parameter)) return "a parameter of a tape that is gone is no TapeError";
  }
  const std::vector<Tensor> found = after_step(remains.gradients);
  for (std::size_t i = 0; i < stepped.size(); ++i) {
    if (!same_numbers(found[i], stepped[i])) return "a step of an optimizer differs";
  }
  return {};
}

std::string problem_of_leaks(const ProgramText& text, const Results& expected) {
  Tape tape;
  const ComposedProgram program = compose(tape, text);
  const DType dtype = program.last.dtype();
  const Var x = is_floating(dtype) ? program.last : cast(program.last, DType::f32);
  std::vector<Var> leaked;
  const auto leak = [&](const Var& a) {
    leaked.push_back(tanh(a));
    return leaked.back() * 0.5;
  };
  checkpoint(leak, x);
  scan(x, 2, [&](const Var& a, const StepNumber&) { return leak(a); });
  exp(x);  // may have the same id as a leaked value
  for (const Var& each : leaked) {
    if (!is_unusable(each)) return "a leaked Var is no TapeError";
  }
  const Tensor loss = program.loss.value();
  return same_numbers(loss, expected[0].tensor) ? "" : "the loss differs after a leak";
}

/// The results of a program in which the function of a derivative asks for values in some way, if
/// it does. They must not depend on that.
Results results_asking(const ProgramText& text, const std::shared_ptr<Evaluator>& evaluator,
                       std::uint64_t way) {
  Tape tape(evaluator);
  const ComposedProgram program = compose(tape, text);
  const DType dtype = program.last.dtype();
  const Var x = is_floating(dtype) ? program.last : cast(program.last, DType::f32);
  const CustomOperation same = copying_operation([&](const Pullback& p) {
    if (way == 1) program.other_loss.value();
    if (way == 2) evaluate(program.other_loss);
    if (way == 3) sum(tanh(x)).item();
    return p.adjoint();
  });
  const Var loss = program.loss + cast(sum(same({x})), program.loss.dtype());
  Results results;
  for (const char* run : {"first ", "second "}) {
    const Gradients made = backward(loss, {.threads = 1});
    for (const Result& each : results_of(made)) results.push_back({run + each.name, each.tensor});
    Var later = x;  // may get the numbers of nodes that were removed
    for (int i = 0; i < 8; ++i) later = tanh(later);
    results.push_back({"other loss", program.other_loss.value().clone()});
  }
  return results;
}

std::string problem_of_questions(const ProgramText& text) {
  using enum PrecisionKind;
  const PrecisionKind kind = std::array{mixed, full, single}[text.seed / 4 % 3];
  const auto evaluator = [&] {
    return text.seed % 2 == 0 ? precise({kind}) : precise({kind}, eager());
  };
  const std::uint64_t way = 1 + text.seed % 3;
  return difference(results_asking(text, evaluator(), way), results_asking(text, evaluator(), 0));
}

}  // namespace

std::optional<std::string> problem_of_lifetimes(const ProgramText& text, const Results& expected) {
  try {
    const std::vector<Tensor> stepped = after_step_on_tape(text);
    std::vector<std::pair<std::string, Way>> ways{{"tape", from_tape}, {"program", from_program}};
    if (is_model(text, Cell::Mode::micro_batches)) ways.emplace_back("execution", from_execution);
    for (const auto& [name, way] : ways) {
      const std::string problem = problem_of(way, text, expected, stepped);
      if (!problem.empty()) return "after the end of the " + name + ": " + problem;
    }
    std::string problem = problem_of_leaks(text, expected);
    if (!problem.empty()) return problem;
    problem = problem_of_questions(text);
    if (!problem.empty()) return "after a derivative asked for values: " + problem;
    return {};
  } catch (const std::exception& error) {
    return std::string("lifetimes: ") + error.what();
  }
}

}  // namespace palimpsest
