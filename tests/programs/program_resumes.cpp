#include "tests/programs/program_resumes.h"

#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <utility>

#include "tests/temporary_directory.h"

namespace palimpsest {
namespace {

using Mode = Cell::Mode;

/// Ends a run as a kill does: without another record.
struct Ended : std::exception {};

/// How a run ends, after so many steps of loops.
struct End {
  int steps = 0;
  bool by_stop = false;
};

class ResumedRuns {
 public:
  ResumedRuns(const ProgramText& text, const Cell& cell) : text_(text), cell_(cell) {}

  bool has_journals() const {
    Tape tape(lazy());
    return !compose(tape, text_, {}, nullptr, directory_.path()).parameters.empty() &&
           has_loop(tape, directory_.path());
  }

  /// Empty if the run was ended. Counts the steps of loops in `steps`.
  Results run(const End* end, int& steps) const {
    std::stop_source stop;
    const auto counted = std::make_shared<std::atomic<int>>(0);
    RunOptions options = options_of(cell_);
    options.planner = nullptr;  // some have limits of their own
    options.stop = stop.get_token();
    options.progress = on_progress([=](const RunProgress& at) mutable {
      if (at.loop_steps == 0 && at.loop_step == 0) return;
      if (++*counted != (end != nullptr ? end->steps : 0)) return;
      if (!end->by_stop) throw Ended();
      stop.request_stop();
    });
    Results results;
    try {
      results = run(options);
    } catch (const Ended&) {
    } catch (const StoppedError&) {
    }
    steps = *counted;
    return results;
  }

 private:
  /// Whether a loop of the tape has made its directory.
  static bool has_loop(const Tape& tape, const std::string& directory) {
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      if (!tape.operation(node).has_state_budget) continue;
      if (std::filesystem::exists(directory + "/palimpsest-loops.lock")) return true;
    }
    return false;
  }

  Results run(const RunOptions& options) const {
    switch (cell_.mode) {
      case Mode::lazy:
        return differentiate(lazy(), options);
      case Mode::eager:
        return differentiate(eager({.threads = options.threads}), options);
      case Mode::hybrid:
        return differentiate(hybrid(options, {.nodes = 7}), options);
      case Mode::program:
        return run_program(options);
      default:
        return execute(options);
    }
  }

  ComposedProgram recorded(Tape& tape, std::span<const Var> parameters = {},
                           ComposedModules* modules = nullptr) const {
    ComposedProgram program = compose(tape, text_, parameters, modules, directory_.path());
    tape.forget_updates();
    return program;
  }

  Results differentiate(std::shared_ptr<Evaluator> evaluator, const RunOptions& options) const {
    if (cell_.precision) evaluator = precise(*cell_.precision, std::move(evaluator));
    Tape tape(evaluator);
    const ComposedProgram program = recorded(tape);
    return results_of(backward(program.loss, options), program.parameters);
  }

  Results run_program(const RunOptions& options) const {
    const auto record = [&](Tape& tape) { return recorded(tape).loss; };
    Runner runner(cell_.precision ? Program::gradients(record, *cell_.precision, options)
                                  : Program::gradients(record, options));
    runner.run();
    return results_of(runner.gradients());
  }

  Results execute(const RunOptions& options) const {
    Tape tape;
    ComposedModules modules(text_.seed);
    const ComposedProgram first = compose(tape, text_, {}, &modules);
    std::vector<Tensor> parameters;
    for (const Var& each : first.parameters) parameters.push_back(each.value());
    const Tensor batch = Tensor::zeros({2, 3}, DType::f64);
    Execution execution(strategy_of(cell_, options), reduction_of(text_));
    const ModelFunction model = [&](Tape& part, std::span<const Var> given,
                                    std::span<const Var> of_batch) -> LossAndOutputs {
      return recorded(part, given, &modules).loss - sum(of_batch[0]);
    };
    Results results = results_of(execution.gradients(model, parameters, {&batch, 1}));
    Tape other;  // a sum of losses may start from 0
    results.front().tensor = (other.constant(results.front().tensor) + 0.0).value();
    return results;
  }

  const ProgramText& text_;
  const Cell& cell_;
  TemporaryDirectory directory_{quick_folder()};
};

}  // namespace

std::string problem_of_resuming(const ProgramText& text, const Cell& cell,
                                const Results& expected) {
  const ResumedRuns runs(text, cell);
  if (!runs.has_journals()) return {};
  int all = 0;
  {
    const ResumedRuns whole(text, cell);
    const std::string problem = difference(whole.run(nullptr, all), expected);
    if (!problem.empty()) return "with journals " + problem;
  }
  int steps = 0;
  for (const bool by_stop : {false, true}) {
    const auto share = 1 + static_cast<int>((text.seed + (by_stop ? 1 : 0)) % 7);
    const End end{1 + all * share / 9, by_stop};
    const Results found = runs.run(&end, steps);
    if (!found.empty()) break;
  }
  const Results found = runs.run(nullptr, steps);
  if (steps > all + 2) return "a run that continues runs more steps than a whole one";
  const std::string problem = difference(found, expected);
  return problem.empty() ? "" : "continued, " + problem;
}

}  // namespace palimpsest
