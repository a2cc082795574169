#include "tests/programs/program_misuses.h"

#include <cstring>
#include <memory>

#include "autodiff/custom.h"
#include "tests/strategy/meanwhile.h"
#include "tests/strategy/tape_changes.h"

namespace palimpsest {
namespace {

enum class Caller : std::uint8_t { progress, forward, cost, workspace, vjp };

/// What the seed draws.
struct Misuse {
  Caller caller;
  const TapeChange& change;
  bool on_another_thread;
  int evaluator;
  int threads;

  bool is_refused() const { return change.is_refused(caller != Caller::vjp, on_another_thread); }
};

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  /// A number in [0, count), from the generator of Knuth's MMIX.
  std::size_t operator()(std::size_t count) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state_ >> 33) % count;
  }

 private:
  std::uint64_t state_;
};

Misuse misuse_of(std::uint64_t seed) {
  Draws draw(seed);
  draw(2);  // the first ones depend little on the seed
  const auto caller = static_cast<Caller>(draw(5));
  const TapeChange& change = tape_changes()[draw(tape_changes().size())];
  return {caller, change, draw(2) == 1, static_cast<int>(draw(4)), 1 + static_cast<int>(draw(2))};
}

std::string to_string(const Misuse& misuse) {
  constexpr const char* callers[] = {"progress", "forward", "cost", "workspace", "vjp"};
  constexpr const char* evaluators[] = {"lazy", "eager", "eager with a budget", "hybrid"};
  return std::string(callers[static_cast<std::size_t>(misuse.caller)]) + " calls " +
         misuse.change.name + " on " + (misuse.on_another_thread ? "another" : "its") +
         " thread, " + evaluators[misuse.evaluator] + ", " + std::to_string(misuse.threads) +
         " threads";
}

std::shared_ptr<EngineEvaluator> evaluator_of(const Misuse& misuse) {
  switch (misuse.evaluator) {
    case 1:
      return eager();
    case 2:
      return eager({.memory_budget = 1_GiB});
    case 3:
      return hybrid({}, {.nodes = 7});
    default:
      return lazy();
  }
}

/// An operation that copies its input, and makes the call in one of its functions.
CustomOperation copying(Caller caller, Meanwhile& meanwhile) {
  const auto call = [&meanwhile, caller](Caller here) {
    if (here == caller) meanwhile();
  };
  CustomDefinition definition;
  definition.name = "copying";
  definition.forward = [=](const CustomCall& c) {
    std::memcpy(c.outputs[0].raw(), c.inputs[0].raw(),
                static_cast<std::size_t>(c.inputs[0].bytes()));
    call(Caller::forward);
  };
  definition.vjp = [=](const Pullback& p) {
    call(Caller::vjp);
    p.set(0, p.adjoint(0));
  };
  definition.cost = [=](const NodeView&) {
    call(Caller::cost);
    return Cost{1, 1};
  };
  definition.workspace = [=](const NodeView&, int) {
    call(Caller::workspace);
    return Bytes{0};
  };
  return CustomOperation(definition);
}

/// The program on a tape, whose loss goes through an operation of the user.
class MisusedRun {
 public:
  MisusedRun(const ProgramText& text, const Misuse& misuse,
             const std::shared_ptr<EngineEvaluator>& evaluator)
      : misuse_(misuse),
        evaluator_(evaluator),
        tape_(evaluator),
        program_(compose(tape_, text)),
        other_(sum(program_.parameters.front() * 3.0)) {
    tape_.forget_updates();
    tape_.drop(other_.id());
  }

  /// Records the operation and runs the program, during which a function makes the call.
  Results run(Meanwhile& call) {
    const Var loss = copying(misuse_.caller, call)({program_.loss});
    RunOptions options{.threads = misuse_.threads, .native = NativeCode::off};
    options.progress = on_progress([&](const RunProgress&) {
      if (misuse_.caller == Caller::progress) call();
    });
    return results_of(backward(loss, options), program_.parameters);
  }

  void change() {
    misuse_.change.change({tape_, *evaluator_, program_.parameters.front(), other_});
  }

 private:
  const Misuse& misuse_;
  std::shared_ptr<EngineEvaluator> evaluator_;
  Tape tape_;
  ComposedProgram program_;
  Var other_;
};

std::string problem_of(const Misuse& misuse, const ProgramText& text, const Results& expected) {
  const std::shared_ptr<EngineEvaluator> evaluator = evaluator_of(misuse);
  Meanwhile none;
  {
    MisusedRun run(text, misuse, evaluator);
    Meanwhile call([&] { run.change(); }, misuse.on_another_thread);
    const bool is_refused = misuse.is_refused();
    try {
      const std::string problem = difference(run.run(call), expected);
      if (is_refused && !problem.empty()) return problem;
    } catch (const UsageError& error) {
      if (is_refused) return std::string("the run: ") + error.what();
    }
    if (is_refused && call.was_made() && call.end() != "TapeError") {
      return "the change is no TapeError: " + call.end();
    }
    if (is_refused) {
      const std::string problem = difference(run.run(none), expected);
      if (!problem.empty()) return "again on the tape: " + problem;
    }
  }
  const std::string problem = difference(MisusedRun(text, misuse, evaluator).run(none), expected);
  return problem.empty() ? "" : "on another tape: " + problem;
}

}  // namespace

std::optional<std::string> problem_of_misuse(const ProgramText& text, const Results& expected) {
  const Misuse misuse = misuse_of(text.seed);
  const bool is_called_by_run = misuse.caller != Caller::vjp;
  if (misuse.change.kind == TapeChange::Kind::runs_only && !is_called_by_run) return {};
  try {
    {
      Tape tape;
      if (compose(tape, text).parameters.empty()) return {};
    }
    const std::string problem = problem_of(misuse, text, expected);
    if (problem.empty()) return {};
    return "misuse, " + to_string(misuse) + ": " + problem;
  } catch (const std::exception& error) {
    return "misuse, " + to_string(misuse) + ": " + error.what();
  }
}

}  // namespace palimpsest
