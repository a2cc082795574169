#include "tests/programs/program_checks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "autodiff/operations/counted_mean.h"
#include "autodiff/storage_version.h"
#include "strategy/base/batch_parts.h"
#include "tests/programs/program_resumes.h"

namespace palimpsest {
namespace {

using Mode = Cell::Mode;

/// Means over counted targets that a program records, and whether parts of a batch can share their
/// counts.
struct RecordedMeans {
  bool any = false;
  bool can_be_shared = true;
};

RecordedMeans means_of(const ProgramText& text) {
  Tape tape;
  CountedMeans means;
  const CountedMeans::Recording recording(tape, means);
  compose(tape, text);
  try {
    means.counts();
  } catch (const ArgumentError&) {
    return {true, false};  // in a loop
  }
  return {!means.empty(), true};
}

/// The results of a batch of two parts that each have these results.
Results of_both_parts(Results results, LossReduction reduction) {
  for (Result& result : results) {
    if (!is_floating(result.tensor.dtype())) continue;  // not a gradient
    Tape tape;
    const Var one = tape.constant(result.tensor);
    const Var both = one + one;
    result.tensor = (reduction == LossReduction::mean ? both * 0.5 : both).value();
    if (result.name == "loss") result.tensor = with_positive_zero(result.tensor);
  }
  return results;
}

/// A broken promise of the library.
struct BrokenPromise : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool holds, const std::string& promise) {
  if (!holds) throw BrokenPromise(promise);
}

void check_bytes(const Report& report) {
  require(report.measured_peak <= report.predicted_peak,
          "measured " + format_bytes(report.measured_peak) + ", predicted " +
              format_bytes(report.predicted_peak));
  require(report.predicted_peak <= report.budget,
          "predicted " + format_bytes(report.predicted_peak) + " in a budget of " +
              format_bytes(report.budget));
}

class Runs {
 public:
  Runs(const ProgramText& text, const Cell& cell)
      : text_(text), cell_(cell), options_(options_of(cell)) {}

  /// Results within the share or, if that is too small, within the smallest budget that the error
  /// names.
  Results results() {
    if (cell_.share) {
      Tape tape(in_precision(lazy()));
      const ComposedProgram program = compose(tape, text_);
      reads_values_ = program.reads_values;
      const Plan plan = plan_backward(with_outputs(program), {.threads = cell_.threads});
      const auto most = static_cast<double>(plan.predicted_peak());
      options_.memory_budget = static_cast<Bytes>(*cell_.share * most);
    }
    // A mode that computes while recording names a budget for what is recorded so far, so the next
    // refusal must come later. In another precision, one operation is several operations of the
    // tape that computes. After a few refusals, adds more than the named budget, so that a program
    // does not take minutes.
    // A lazy tape makes several programs, each with a smallest budget of its own: the first
    // backward with its updates, the second without, and the other loss.
    const bool is_lazy = cell_.mode == Mode::lazy;
    constexpr int most_refusals = 50;
    constexpr int few_refusals = 2;
    std::pair<int, NodeId> before{};
    int refusals_left = computes_early() ? most_refusals : is_lazy ? 3 : 1;
    for (Bytes named = 0;;) {
      try {
        Results results = run();
        if (is_lazy) check_monotone();
        return results;
      } catch (const BudgetError& error) {
        if (error.own_limit() && options_.planner != nullptr) {  // no budget helps here
          options_.planner = nullptr;
          continue;
        }
        const std::string then = std::to_string(error.smallest_feasible());
        require(cell_.share.has_value(), std::string("without a budget: ") + error.what());
        require(error.smallest_feasible() > error.budget(),
                "a budget of " + std::to_string(error.budget()) + " is refused, and " + then +
                    " is named");
        // Values that a loop reads while it is recorded are computed before the rest is known.
        const bool comes_later =
            reads_values_ || (is_lazy ? reached_.first > before.first
                                      : cell_.precision || cell_.hybrid_parts || reached_ > before);
        require(refusals_left-- > 0 && (named == 0 || comes_later),
                "a smallest budget of " + std::to_string(named) + " was named, and then " + then +
                    ": " + error.what());
        before = reached_;
        options_.memory_budget = named = error.smallest_feasible();
        if (computes_early() && most_refusals - refusals_left > few_refusals) {
          options_.memory_budget += named / 2;
        }
      }
    }
  }

 private:
  bool computes_early() const {
    return reads_values_ || cell_.mode == Mode::eager || cell_.mode == Mode::hybrid ||
           cell_.hybrid_parts;
  }

  std::shared_ptr<Evaluator> in_precision(std::shared_ptr<Evaluator> evaluator) const {
    return cell_.precision ? precise(*cell_.precision, std::move(evaluator)) : evaluator;
  }

  Results run() {
    switch (cell_.mode) {
      case Mode::lazy:
        return differentiate(lazy());
      case Mode::eager:
        return differentiate(
            eager({.memory_budget = options_.memory_budget, .threads = options_.threads}));
      case Mode::hybrid:
        return differentiate(hybrid(options_, {.nodes = 7}));
      case Mode::program:
        return run_program();
      case Mode::evaluated:
        return evaluate_all();
      case Mode::micro_batches:
      case Mode::replicas:
      case Mode::stages:
      case Mode::devices:
        return execute();
    }
    throw InternalError("unknown mode");
  }

  /// Without a named planner, a plan for a larger budget must not take longer. Excludes loops,
  /// which then use a larger share for their states.
  void check_monotone() const {
    if (options_.planner != nullptr || options_.memory_budget == unlimited) return;
    Tape tape(in_precision(lazy()));
    const ComposedProgram program = compose(tape, text_);
    bool has_loops = false;
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      has_loops = has_loops || tape.operation(node).has_state_budget;
    }
    if (has_loops) return;
    const Var& loss = program.loss;
    RunOptions options = options_;
    try {
      const double seconds = plan_backward(loss, options).simulation.cost;
      options.memory_budget += options.memory_budget / 4;
      require(plan_backward(loss, options).simulation.cost <= seconds * (1 + 1e-9),
              "a plan within a larger budget costs more");
    } catch (const BudgetError&) {
      if (!cell_.outputs) throw;  // with outputs, another program was found to fit
    }
  }

  /// The loss, with the outputs that the cell asks for.
  LossAndOutputs with_outputs(const ComposedProgram& program) const {
    if (!cell_.outputs) return program.loss;
    return {program.loss, {program.last, program.other_loss}};
  }

  /// The value that `last` has on a tape of its own.
  Tensor last_alone() const {
    Tape tape(in_precision(lazy()));
    return compose(tape, text_).last.value();
  }

  /// Checks that the targets of a program's updates have changed so many times. The expected values
  /// are computed node by node.
  void require_updated(std::span<const Tape::Update> updates, int runs) const {
    if (updates.empty()) return;
    const RunOptions plain{.planner = keep_all(), .threads = 1, .fuse = false, .simplify = false};
    Tape tape(cell_.precision ? precise(*cell_.precision, lazy(plain)) : nullptr);
    const ComposedProgram program = compose(tape, text_);
    for (int run = 0; run < runs; ++run) {
      for (const auto& [target, value, weight] : program.updates) {
        const Tensor made = Var(tape, value).value();
        const Tensor wide(target.shape(), DType::f64);
        for (std::int64_t i = 0; i < target.elements(); ++i) {
          wide.data<double>()[static_cast<std::size_t>(i)] =
              (1 - weight) * target.at(i) + weight * made.at(i);
        }
        const Tensor rounded = wide.to(target.dtype());
        std::copy_n(rounded.raw(), rounded.bytes(), target.raw());
      }
    }
    for (std::size_t i = 0; i < updates.size(); ++i) {
      require(same_numbers(updates[i].target, program.updates[i].target),
              "running statistics " + std::to_string(i) + " are not those after " +
                  std::to_string(runs) + " runs");
    }
  }

  /// Differentiates twice on one tape; the second time, the evaluator knows the step. Then
  /// differentiates the other loss and evaluates a value that was not kept.
  Results differentiate(const std::shared_ptr<Evaluator>& evaluator) {
    Tape tape(in_precision(evaluator));
    ComposedModules modules(text_.seed);
    int part = 0;
    try {
      const ComposedProgram program = compose(tape, text_, {}, &modules);
      Results results;
      std::vector<Tensor> outputs;
      const Tensor updated = Tensor::zeros(program.last.shape(), program.last.dtype());
      if (cell_.outputs) tape.update_after_run(updated, program.last);
      ++part;
      add_backward(results, "", program, with_outputs(program), &outputs);
      require_updated(program.updates, 1);
      Results again;
      // The second one may be another program: without updates, or without the values that were
      // computed while recording.
      const bool has_updates = cell_.outputs || !program.updates.empty();
      if (has_updates || computes_early()) ++part;
      add_backward(again, "", program, with_outputs(program));
      require(difference(again, results).empty(), "a second backward differs");
      ++part;
      add_backward(results, of_other, program, program.other_loss);
      ++part;
      results.push_back({"last value", program.last.value().clone()});
      require_updated(program.updates, 1);
      if (cell_.outputs) {
        require(same_numbers(outputs[0], results.back().tensor), "an output is another value");
        require(same_numbers(updated, outputs[0]), "an update is another value");
        require(same_numbers(with_positive_zero(outputs[1]),
                             with_positive_zero(program.other_loss.value())),
                "a loss as an output is another value");
      }
      if (cell_.native && cell_.mode == Mode::lazy && !cell_.share) check_other_numbers();
      if (cell_.changes) {
        ++part;
        check_changed(tape, program, modules);
      }
      return results;
    } catch (const BudgetError&) {
      reached_ = {part, tape.node_count()};
      throw;
    }
  }

  /// Changes the parameters. The losses and gradients must then be those of a program that is
  /// recorded with the new ones. An eager tape may refuse instead. Values that were computed stay
  /// readable.
  void check_changed(Tape& tape, const ComposedProgram& program, ComposedModules& modules) {
    const Tensor other_loss = program.other_loss.value().clone();
    std::vector<Tensor> changed;
    for (const Var& parameter : program.parameters) {
      const Tensor value(tape.buffer(parameter.id()), parameter.shape(), parameter.dtype());
      // By little, so that matrices stay positive definite, and so on.
      const Tensor scaled = (value * (1 + 1.0 / 64)).to(value.dtype());
      note_write(value, "check_changed");
      std::copy_n(scaled.raw(), scaled.bytes(), value.raw());
      changed.push_back(value);
    }
    require(same_numbers(program.other_loss.value(), other_loss), "a computed value has changed");
    Results found;
    try {
      add_backward(found, "", program, program.loss);
      add_backward(found, of_other, program, program.other_loss);
    } catch (const TapeError& error) {
      const bool is_right =
          cell_.mode == Mode::eager &&
          std::string_view(error.what()).find("check_changed") != std::string::npos;
      require(is_right, std::string("after a change: ") + error.what());
      return;
    } catch (const ArgumentError& error) {
      // The operation counts other elements than it has recorded.
      const bool is_right = std::string_view(error.what()).find("recorded") != std::string::npos;
      require(is_right, std::string("after a change: ") + error.what());
      return;
    }
    const RunOptions plain{.planner = keep_all(), .threads = 1, .fuse = false, .simplify = false};
    Tape again(in_precision(lazy(plain)));
    std::vector<Var> parameters;
    for (const Tensor& tensor : changed) parameters.push_back(again.parameter(tensor));
    const ComposedProgram expected = compose(again, text_, parameters, &modules);
    again.forget_updates();
    Results right;
    add_backward(right, "", expected, expected.loss, plain);
    add_backward(right, of_other, expected, expected.other_loss, plain);
    require(difference(found, right).empty(),
            "after a change of the parameters " + difference(found, right));
  }

  /// Programs that differ in a number only share plans. Native code may name numbers.
  void check_other_numbers() {
    Tape tape(in_precision(lazy()));
    Tape interpreted(in_precision(lazy()));
    RunOptions options = options_;
    options.native = NativeCode::off;
    for (const double number : {2.0, 3.0}) {
      const auto scaled = [&](Tape& on, const RunOptions& run) {
        on.clear();
        const ComposedProgram program = compose(on, text_);
        Var loss = program.loss;
        for (const Var& x : program.parameters)
          loss = loss + cast(sum(x * number * x / number), loss.dtype());
        Results results;
        add_backward(results, "", program, loss, run);
        return results;
      };
      require(difference(scaled(tape, options_), scaled(interpreted, options)).empty(),
              "native code differs when squares are multiplied and divided by " +
                  std::to_string(number));
    }
  }

  void add_backward(Results& results, const std::string& of, const ComposedProgram& program,
                    const LossAndOutputs& values, std::vector<Tensor>* outputs = nullptr) {
    add_backward(results, of, program, values, options_, outputs);
  }
  static void add_backward(Results& results, const std::string& of, const ComposedProgram& program,
                           const LossAndOutputs& values, const RunOptions& options,
                           std::vector<Tensor>* outputs = nullptr) {
    const Gradients gradients = backward(values, options);
    check_bytes(gradients.report());
    if (outputs != nullptr) outputs->assign(gradients.outputs().begin(), gradients.outputs().end());
    std::vector<Tensor> of_parameters;
    for (const Var& each : program.parameters) of_parameters.push_back(gradients[each]);
    add(results, of, gradients.loss(), of_parameters);
  }

  static Results checked_results_of(const Gradients& gradients) {
    check_bytes(gradients.report());
    return results_of(gradients);
  }

  Results run_program() {
    Tensor updated;
    std::vector<Tape::Update> updates;
    const auto record = [&](Tape& tape) {
      const ComposedProgram program = compose(tape, text_);
      updates = program.updates;
      if (cell_.outputs) {
        updated = Tensor::zeros(program.last.shape(), program.last.dtype());
        tape.update_after_run(updated, program.last);
      }
      return with_outputs(program);
    };
    Runner runner(cell_.precision ? Program::gradients(record, *cell_.precision, options_)
                                  : Program::gradients(record, options_));
    runner.run();
    const Gradients gradients = runner.gradients();
    require_updated(updates, 1);
    if (cell_.outputs) {
      const Tensor last = last_alone();
      require(same_numbers(gradients.outputs()[0], last), "an output is another value");
      require(same_numbers(updated, last), "an update is another value");
    }
    return checked_results_of(gradients);
  }

  /// Gradients as values of the tape.
  Results evaluate_all() {
    Tape tape;
    const ComposedProgram program = compose(tape, text_);
    const std::vector<Var> gradients = gradient(program.loss, program.parameters);
    const std::vector<Var> others = gradient(program.other_loss, program.parameters);
    std::vector<Var> values{program.loss, program.other_loss, program.last};
    values.insert(values.end(), gradients.begin(), gradients.end());
    values.insert(values.end(), others.begin(), others.end());
    check_bytes(evaluate(values, options_));
    Results results;
    add(results, "", program.loss.value(), tensors_of(gradients));
    add(results, of_other, program.other_loss.value(), tensors_of(others));
    results.push_back({"last value", program.last.value()});
    return results;
  }

  /// Three times: the losses of both parts of a batch together, each of which is the program's
  /// loss.
  Results execute() {
    Tape tape;
    ComposedModules modules(text_.seed);
    const ComposedProgram first = compose(tape, text_, {}, &modules);
    const std::vector<Tensor> parameters = tensors_of(first.parameters);
    const LossReduction reduction = reduction_of(text_);
    const bool is_mean = reduction == LossReduction::mean || !first.updates.empty();
    const bool is_uneven = cell_.uneven && !is_mean;
    const Tensor batch = Tensor::zeros({is_uneven ? 3 : 2, 3}, DType::f64);
    Execution execution(strategy_of(cell_, options_), reduction);
    const ModelFunction model = [&](Tape& part, std::span<const Var> given,
                                    std::span<const Var> of_batch) {
      const ComposedProgram program = compose(part, text_, given, &modules);
      LossAndOutputs made = with_outputs(program);
      made.loss = made.loss - sum(of_batch[0]);
      return made;
    };
    Results results;
    for (int run = 0; run < 3; ++run) {
      const Gradients gradients = execution.gradients(model, parameters, {&batch, 1});
      Results found = checked_results_of(gradients);
      if (cell_.outputs) found.push_back({"output", gradients.outputs()[0]});
      found.front().tensor = with_positive_zero(found.front().tensor);
      require(run == 0 || difference(found, results).empty(), "a later run differs");
      require_updated(first.updates, run + 1);
      results = std::move(found);
    }
    if (cell_.outputs) {
      Tensor last = last_alone();
      if (last.shape().rank() == 0) last = last.reshape(Shape{1});
      require(same_numbers(results.back().tensor, put_together(std::vector{last, last})),
              "an output is not that of both parts");
      results.pop_back();
    }
    return results;
  }

  const ProgramText& text_;
  const Cell& cell_;
  RunOptions options_;
  bool reads_values_ = false;         // while it is recorded
  std::pair<int, NodeId> reached_{};  // refused part of `differentiate`, nodes before it
};

}  // namespace

void keep_native_code() {
  if (std::getenv("XDG_CACHE_HOME") != nullptr) return;
  const std::string folder = std::filesystem::temp_directory_path().string() +
                             "/palimpsest-programs-" + std::to_string(::geteuid());
  ::mkdir(folder.c_str(), 0700);
  struct stat facts{};
  const bool is_own =
      ::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid();
  if (is_own) ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
}

LossReduction reduction_of(const ProgramText& text) {
  return means_of(text).any ? LossReduction::mean : LossReduction::sum;
}

bool is_model(const ProgramText& text, Cell::Mode mode) {
  Tape tape;
  const ComposedProgram program = compose(tape, text);
  if (program.parameters.empty()) return false;
  const bool has_parts = mode == Mode::stages || mode == Mode::devices;
  const bool differ_twice = program.steps_differ && program.has_derivatives;
  if (has_parts && (!program.updates.empty() || program.reads_values || differ_twice)) return false;
  if (!means_of(text).can_be_shared) return false;
  return std::ranges::none_of(operations(), [&](const Operation* operation) {
    return operation->random && std::ranges::any_of(program.lines, [&](const std::string& line) {
             return line.find(operation->name) != std::string::npos;
           });
  });
}

std::optional<std::string> problem_in(const ProgramText& text, const Cell& cell,
                                      const Results& expected) {
  try {
    if (is_executed(cell.mode) && !is_model(text, cell.mode)) return {};
    const Results results = Runs(text, cell).results();
    const Results right = cell.precision           ? reference_of(text, *cell.precision)
                          : is_executed(cell.mode) ? of_both_parts(expected, reduction_of(text))
                                                   : expected;
    std::string problem = difference(results, right);
    if (problem.empty() && cell.resumes) problem = problem_of_resuming(text, cell, right);
    return problem.empty() ? std::nullopt : std::optional(problem);
  } catch (const ArgumentError& error) {
    // Some planners need gradients. A loss without parameters has none.
    if (std::string_view(error.what()).find("no backward part") != std::string_view::npos)
      return {};
    return error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace palimpsest
