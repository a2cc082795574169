#include <cstring>
#include <stop_token>
#include <vector>

#include "autodiff/custom.h"
#include "autodiff/operations/loss.h"
#include "checkpoint/planner.h"
#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/meanwhile.h"
#include "tests/strategy/tape_changes.h"

// Functions of the user call public functions that change the tape for which they are called. Calls
// of the objects that run tapes are in `tests/strategy/reentrance_of_objects_test.cpp`.

namespace palimpsest::reentrance_test {
namespace {

/// A program whose functions make a call.
struct Subject {
  std::shared_ptr<EngineEvaluator> evaluator;
  Tape tape;
  Var x;
  Var loss;
  Var other;  ///< not computed
  Meanwhile* meanwhile = nullptr;

  explicit Subject(std::shared_ptr<EngineEvaluator> given)
      : evaluator(std::move(given)), tape(evaluator) {}

  void call() const {
    if (meanwhile != nullptr) (*meanwhile)();
  }
};

/// A planner of the user.
class OwnPlanner final : public Planner {
 public:
  explicit OwnPlanner(const Subject& subject) : subject_(subject) {}
  std::string name() const override { return "own"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    subject_.call();
    return keep_all()->propose(graph, budget);
  }

 private:
  const Subject& subject_;
};

/// A function of the user, and whether a run calls it. Others are called while nodes are recorded.
enum class Caller : std::uint8_t {
  progress,
  stop,
  forward,
  cost,
  workspace,
  planner,
  vjp,
  types,
  body,
  condition,
  traced
};

constexpr Caller callers[] = {Caller::progress,  Caller::stop,      Caller::forward, Caller::cost,
                              Caller::workspace, Caller::planner,   Caller::vjp,     Caller::types,
                              Caller::body,      Caller::condition, Caller::traced};

const char* name_of(Caller caller) {
  constexpr const char* names[] = {"progress",  "stop",      "forward",   "cost",
                                   "workspace", "planner",   "vjp",       "types",
                                   "body",      "condition", "checkpoint"};
  return names[static_cast<std::size_t>(caller)];
}

bool is_called_by_runs(Caller caller) { return caller <= Caller::planner; }

CustomOperation spy(const Subject& subject, Caller caller) {
  const auto call = [&subject, caller](Caller here) {
    if (here == caller) subject.call();
  };
  CustomDefinition definition;
  definition.name = "spy";
  definition.forward = [=](const CustomCall& c) {
    std::memcpy(c.outputs[0].raw(), c.inputs[0].raw(),
                static_cast<std::size_t>(c.inputs[0].bytes()));
    call(Caller::forward);
  };
  definition.vjp = [=](const Pullback& p) {
    call(Caller::vjp);
    p.set(0, p.adjoint(0) * 3.0);
  };
  if (caller == Caller::types) {
    definition.types = [=](std::span<const ValueType> inputs) {
      call(Caller::types);
      return std::vector<ValueType>{inputs[0]};
    };
  }
  definition.cost = [=](const NodeView&) {
    call(Caller::cost);
    return Cost{1e6, 1e6};
  };
  definition.workspace = [=](const NodeView&, int) {
    call(Caller::workspace);
    return Bytes{0};
  };
  return CustomOperation(definition);
}

/// Records the program and differentiates it.
Tensor run(Subject& subject, Caller caller, int threads) {
  Tape& tape = subject.tape;
  const CustomOperation operation = spy(subject, caller);
  subject.x = tape.parameter(Tensor::uniform({16, 24}, 1, -1, 1, DType::f64), "x");
  const Var w = tape.parameter(Tensor::uniform({24, 24}, 2, -0.2, 0.2, DType::f64), "w");
  subject.other = sum(subject.x * 3.0);
  tape.drop(subject.other.id());
  Var y = operation({tanh(matmul(subject.x, w))}) + subject.x * 0.5;
  y = operation({sin(y)});
  if (caller == Caller::traced) {
    const auto f = [&](const Var& v) {
      subject.call();
      return sin(v);
    };
    y = checkpoint(f, y);
  }
  if (caller == Caller::body) {
    const auto body = [&](const Var& v, const StepNumber&) {
      subject.call();
      return v * 0.9;
    };
    y = scan(y, 2, body);
  }
  if (caller == Caller::condition) {
    const auto goes_on = [&](const Var& v) {
      subject.call();
      return mean(square(v)) > 0.05;
    };
    y = while_loop(y, goes_on, [](const Var& v, const StepNumber&) { return v * 0.9; });
  }
  subject.loss = mean(square(y));
  RunOptions options{.threads = threads, .native = NativeCode::off};
  if (caller == Caller::planner) options.planner = std::make_shared<OwnPlanner>(subject);
  std::stop_source stop;
  options.stop = stop.get_token();
  const std::stop_callback stopped(stop.get_token(), [&] { subject.call(); });
  options.progress = on_progress([&](const RunProgress&) {
    if (caller == Caller::progress) subject.call();
    if (caller == Caller::stop && subject.meanwhile != nullptr) stop.request_stop();
  });
  return backward(subject.loss, options)[subject.x].clone();
}

using Evaluators = std::shared_ptr<EngineEvaluator> (*)();

struct Mode {
  const char* name;
  Evaluators evaluator;
};

constexpr Mode modes[] = {{"lazy", [] { return lazy(); }},
                          {"eager", [] { return eager(); }},
                          {"eager within a budget", [] { return eager({.memory_budget = 1_GiB}); }},
                          {"hybrid", [] { return hybrid({}, {.nodes = 5}); }}};

void check_cell(const Mode& mode, Caller caller, const TapeChange& change, int threads,
                bool on_another_thread, const Tensor& expected) {
  if (change.kind == TapeChange::Kind::runs_only && !is_called_by_runs(caller)) return;
  INFO(mode.name << ", " << name_of(caller) << " calls " << change.name << " on "
                 << (on_another_thread ? "another" : "its") << " thread, with " << threads
                 << " threads");
  Subject subject(mode.evaluator());
  Meanwhile meanwhile(
      [&] { change.change({subject.tape, *subject.evaluator, subject.x, subject.other}); },
      on_another_thread);
  subject.meanwhile = &meanwhile;
  const bool refused = change.is_refused(is_called_by_runs(caller), on_another_thread);
  try {
    const Tensor made = run(subject, caller, threads);
    if (refused) CHECK(same_bits(made, expected));
  } catch (const StoppedError&) {
    CHECK(caller == Caller::stop);
  } catch (const UsageError& error) {
    INFO(error.what());
    CHECK_FALSE(refused);
  }
  subject.meanwhile = nullptr;
  CHECK(meanwhile.was_made());
  if (refused) CHECK(meanwhile.end() == "TapeError");
  if (!refused && change.kind != TapeChange::Kind::records) CHECK(meanwhile.end().empty());
  if (refused) CHECK(same_bits(backward(subject.loss)[subject.x], expected));
  subject.tape.clear();
  CHECK(same_bits(run(subject, caller, threads), expected));
}

TEST_CASE("functions of the user cannot change the tape for which they are called") {
  for (const Mode& mode : modes) {
    for (const Caller caller : callers) {
      for (const int threads : {1, 2}) {
        Subject subject(mode.evaluator());
        const Tensor expected = run(subject, caller, threads);
        for (const TapeChange& change : tape_changes()) {
          check_cell(mode, caller, change, threads, threads == 2, expected);
          if (threads == 2) check_cell(mode, caller, change, threads, false, expected);
        }
      }
    }
  }
}

TEST_CASE("a function of the user may use another tape and read reports") {
  Tape tape;
  Tape another;
  Report report;
  double seen = 0;
  CustomDefinition definition;
  definition.name = "other";
  definition.forward = [&](const CustomCall& c) {
    another.clear();
    const Var z = another.parameter(Tensor(c.inputs[0]).clone());
    const Tensor made = backward(sum(square(z)))[z];
    std::memcpy(c.outputs[0].raw(), made.raw(), static_cast<std::size_t>(made.bytes()));
  };
  definition.vjp = [](const Pullback& p) { p.set(0, p.adjoint(0) * 2.0); };
  const Var x = tape.parameter(Tensor::arange(4, DType::f64));
  const Var loss = sum(CustomOperation(definition)({x}));
  report = backward(loss).report();
  const Gradients gradients = backward(loss, {.progress = on_progress([&](const RunProgress&) {
                                                seen += static_cast<double>(report.computed);
                                                seen += x.value().at(1);
                                              })});
  CHECK(seen > 0);
  CHECK(gradients.loss().item() == 12);
  CHECK(gradients[x].at(3) == 2);
}

TEST_CASE("the error of a tape in use names the call and the use") {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({3}));
  std::string message;
  backward(sum(sin(x)), {.progress = on_progress([&](const RunProgress&) {
                           try {
                             tape.clear();
                           } catch (const TapeError& error) {
                             message = error.what();
                           }
                         })});
  CHECK_THAT(message,
             Catch::Matchers::Contains("[Tape::clear] the tape is in use: a run computes"));
  CHECK_THAT(message, Catch::Matchers::Contains("call Tape::clear before or after that"));
  CHECK_THAT(message, Catch::Matchers::Contains("reentrance_test.cpp"));
}

}  // namespace
}  // namespace palimpsest::reentrance_test
