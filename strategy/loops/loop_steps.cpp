#include "strategy/loops/loop_steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "autodiff/execute.h"
#include "autodiff/recording_guards.h"
#include "autodiff/run_control.h"
#include "strategy/base/cache_limit.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/loops/step_check.h"

namespace palimpsest {

LoopArguments::LoopArguments(const Loop& loop, const KernelCall& call)
    : control_(call.scope != nullptr ? call.scope->control : nullptr),
      native_(call.scope != nullptr ? static_cast<NativeCode>(call.scope->native)
                                    : NativeCode::off),
      anomaly_(call.scope != nullptr && call.scope->anomaly),
      is_reported_(call.scope != nullptr && call.scope->of == RunScope::Of::run),
      steps_(loop.has_condition() ? 0 : loop.steps()),
      round_(loop.body().generation + call.round.run, call.round.part),
      spread_(loop.body().spread(loop.steps())),
      first_(addresses_of(call.inputs.first(loop.state_count()))),
      inputs_(call.inputs.subspan(loop.state_count(), loop.input_count()), loop.steps()),
      captured_(addresses_of(
          call.inputs.subspan(loop.state_count() + loop.input_count(), loop.captured_count()))) {}

void LoopArguments::observe(std::uint32_t step) {
  control_->check();
  if (is_reported_ && step != reported_) control_->loop_step(step, steps_);
  reported_ = step;
}

Addresses& LoopArguments::of(std::uint32_t step, const Addresses& state) {
  begin(step);
  list_.assign(state.begin(), state.end());
  inputs_.append(step, list_);
  list_.insert(list_.end(), captured_.begin(), captured_.end());
  list_.push_back(reinterpret_cast<std::byte*>(&number_));
  return list_;
}

void LoopSteps::forward_row(std::uint32_t first, std::uint32_t count,
                            const std::function<Forward(std::uint32_t step)>& of,
                            bool with_outputs) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const Forward each = of(first + i);
    forward(first + i, each.state, each.results, with_outputs);
  }
}

void LoopSteps::backward_row(std::uint32_t first, std::uint32_t count,
                             const std::function<Backward(std::uint32_t step)>& of) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const Backward each = of(first - i);
    backward(first - i, each.state, each.adjoints, each.results);
  }
}

namespace {

/// A shorter row of steps is run step by step.
constexpr std::uint32_t least_row = 6;

Bytes advance_bytes(const HeldComponents& held, int threads, Bytes share) {
  return aligned(held.workspace(threads, share));
}

/// Runs all steps by the programs of the first one.
class PlannedSteps final : public LoopSteps {
 public:
  /// `forward` or `backward` may be null.
  PlannedSteps(const Loop& loop, const StepPrograms* forward, const StepPrograms* backward,
               LoopArguments& arguments, std::span<std::byte> memory, int threads)
      : runners_(loop.runners()), arguments_(arguments), reversed_(arguments) {
    if (forward != nullptr) whole_ = runner_of(forward->get(threads), memory);
    if (backward != nullptr) reversing_ = runner_of(backward->get(threads), memory);
    if (!arguments.anomaly()) return;
    if (forward != nullptr) whole_check_.emplace(loop, *forward, threads);
    if (backward != nullptr) reversing_check_.emplace(loop, *backward, threads);
  }
  PlannedSteps(const HeldComponents& held, const LoopGradient* gradient, LoopArguments& arguments,
               std::span<std::byte> memory, int threads, Bytes share, bool ahead)
      : runners_(held.loop().runners()), arguments_(arguments), reversed_(arguments) {
    const Loop& loop = held.loop();
    const StepPrograms* const forward = gradient == nullptr ? &loop.forward() : held.advance();
    if (forward != nullptr) {
      whole_ = runner_of(forward->get(threads, share), memory);
      if (arguments.anomaly()) whole_check_.emplace(loop, *forward, threads);
    }
    if (gradient == nullptr) {
      if (!loop.has_condition()) return;
      goes_on_ = runner_of(loop.goes_on().get(threads, share), memory);
      if (arguments.anomaly()) goes_on_check_.emplace(loop, loop.goes_on(), threads);
      return;
    }
    if (arguments.anomaly()) reversing_check_.emplace(loop, gradient->backward(), threads);
    if (ahead) {
      memory = memory.subspan(static_cast<std::size_t>(advance_bytes(held, threads, share)));
    }
    reversing_ = runner_of(gradient->backward().get(threads, share), memory);
    untouched_ = gradient->untouched();
  }
  ~PlannedSteps() override {
    for (auto* runner : {&whole_, &reversing_, &goes_on_}) {
      if (*runner != nullptr) runners_.give_back(std::move(*runner));
    }
  }

  bool goes_on(std::uint32_t step, const Addresses& state) override {
    bool answer = false;
    auto* const to = reinterpret_cast<std::byte*>(&answer);
    const Addresses& all = arguments_.of(step, state);
    check(goes_on_check_, step, all);
    goes_on_->run(all, {&to, 1}, arguments_.round_of(step));
    return answer;
  }
  void forward(std::uint32_t step, const Addresses& state, const Addresses& results,
               bool) override {
    if (whole_check_ || !whole_->may_repeat()) {
      const Addresses& all = arguments_.of(step, state);
      check(whole_check_, step, all);
      return whole_->run(all, results, arguments_.round_of(step));
    }
    set(step, {state, results});
    whole_->repeat(arguments_.begin(step));
  }
  void forward_row(std::uint32_t first, std::uint32_t count,
                   const std::function<Forward(std::uint32_t step)>& of,
                   bool with_outputs) override {
    for (; count > 0 && !is_row(*whole_, whole_check_, count); --count, ++first) {
      LoopSteps::forward_row(first, 1, of, with_outputs);
    }
    if (count == 0) return;
    whole_->repeat_in_a_row(
        count, [&](std::uint32_t i) { set(first + i, of(first + i)); },
        [&](std::uint32_t i) { return arguments_.begin(first + i); });
  }
  void backward(std::uint32_t step, const Addresses& state, const Addresses& adjoints,
                const Addresses& results) override {
    if (!reversing_check_ && reversing_->may_repeat()) {
      set(step, {state, adjoints, results});
      return reversing_->repeat(reversed_.begin(step));
    }
    Addresses& all = reversed_.of(step, state);
    all.insert(all.end(), adjoints.begin(), adjoints.end());
    check(reversing_check_, step, all);
    reversing_->run(all, results, reversed_.round_of(step));
  }
  void backward_row(std::uint32_t first, std::uint32_t count,
                    const std::function<Backward(std::uint32_t step)>& of) override {
    for (; count > 0 && !is_row(*reversing_, reversing_check_, count); --count, --first) {
      LoopSteps::backward_row(first, 1, of);
    }
    if (count == 0) return;
    reversing_->repeat_in_a_row(
        count, [&](std::uint32_t i) { set(first - i, of(first - i)); },
        [&](std::uint32_t i) { return reversed_.begin(first - i); });
  }
  const std::vector<bool>& untouched() const override { return untouched_; }
  void set_untouched(std::vector<bool> untouched) override { untouched_ = std::move(untouched); }
  void note_native(RunScope& scope) const override {
    for (const auto* runner : {&whole_, &reversing_}) {
      if (*runner != nullptr) note(scope, **runner);
    }
  }

 private:
  std::unique_ptr<BufferRunner> runner_of(const BufferProgramPtr& program,
                                          std::span<std::byte> memory) const {
    if (program == nullptr) return nullptr;
    return runners_.take(program, memory, arguments_.control(), arguments_.native());
  }
  /// The last run may have been interpreted, or timed to decide about native code.
  static bool is_row(const BufferRunner& runner, const std::optional<StepCheck>& check,
                     std::uint32_t count) {
    return count >= least_row && !check && runner.may_repeat();
  }
  void check(std::optional<StepCheck>& steps, std::uint32_t step, const Addresses& arguments) {
    if (steps) steps->run(step, arguments, arguments_.round_of(step));
  }
  /// Set the addresses of a step that is repeated.
  void set(std::uint32_t step, const Forward& of) {
    arguments_.set(step, of.state, *whole_);
    for (std::size_t i = 0; i < of.results.size(); ++i) whole_->set_result(i, of.results[i]);
  }
  void set(std::uint32_t step, const Backward& of) {
    reversed_.set(step, of.state, *reversing_);
    std::size_t position = reversed_.count();
    for (std::byte* const each : of.adjoints) reversing_->set_argument(position++, each);
    for (std::size_t i = 0; i < of.results.size(); ++i) reversing_->set_result(i, of.results[i]);
  }
  static void note(RunScope& scope, const BufferRunner& runner) {
    const std::shared_ptr<NativeProgram>& program = runner.executor().native();
    if (program != nullptr) scope.note<NativeNote>(program.get(), program);
  }

  RunnerPool& runners_;
  LoopArguments& arguments_;
  LoopArguments reversed_;  // of a step run backward
  std::unique_ptr<BufferRunner> whole_;
  std::unique_ptr<BufferRunner> reversing_;
  std::unique_ptr<BufferRunner> goes_on_;
  std::optional<StepCheck> whole_check_;  // in anomaly mode
  std::optional<StepCheck> reversing_check_;
  std::optional<StepCheck> goes_on_check_;
  std::vector<bool> untouched_;
};

/// Steps that are recorded one by one.
class RecordedSteps final : public LoopSteps {
 public:
  RecordedSteps(const Loop& loop, const LoopGradient* gradient, LoopArguments& arguments,
                std::span<std::byte> memory, int threads)
      : loop_(loop),
        gradient_(gradient),
        arguments_(arguments),
        memory_(memory),
        threads_(threads),
        states_(loop.types(loop.step().state)),
        inputs_(loop.types(loop.step().inputs)),
        outputs_(loop.types(loop.step().outputs)) {
    if (gradient != nullptr) untouched_.assign(gradient->summed().size(), true);
  }

  bool goes_on(std::uint32_t step, const Addresses& state) override {
    bool answer = false;
    const RecordedStep recorded = record(loop_.body().condition, step, state);
    run(recorded, program_of_outputs(recorded), step, arguments_.of(step, state),
        {reinterpret_cast<std::byte*>(&answer)});
    return answer;
  }
  void forward(std::uint32_t step, const Addresses& state, const Addresses& results,
               bool with_outputs) override {
    const RecordedStep recorded = record_step(step, state);
    run(recorded, program_of(recorded, with_outputs), step, arguments_.of(step, state), results);
  }
  void backward(std::uint32_t step, const Addresses& state, const Addresses& adjoints,
                const Addresses& results) override {
    const RecordedStep recorded = record_step(step, state);
    const StepGradient made = [&] {
      const RecordingInRun in_run;
      return gradient_->differentiate(recorded);
    }();
    for (std::size_t i = 0; i < untouched_.size(); ++i) {
      untouched_[i] = untouched_[i] && made.untouched[i];
    }
    Addresses& all = arguments_.of(step, state);
    all.insert(all.end(), adjoints.begin(), adjoints.end());
    run(recorded, made.program, step, all, results);
  }
  const std::vector<bool>& untouched() const override { return untouched_; }
  void set_untouched(std::vector<bool> untouched) override { untouched_ = std::move(untouched); }
  void note_native(RunScope&) const override {}  // they are interpreted

 private:
  RecordedStep record_step(std::uint32_t step, const Addresses& state) {
    RecordedStep recorded = record(loop_.body().body, step, state);
    require_state(recorded, loop_.body());
    require_outputs(recorded, step);
    return recorded;
  }

  RecordedStep record(const LoopBody& f, std::uint32_t step, const Addresses& state) {
    StepRecorder recorder(loop_.body(), loop_.captured(), arguments_.round_of(step));
    const auto look = [&](const RecordedStep& recorded, ValueId value, std::byte* to) {
      require_captured(recorder, step);
      run(recorded, {recorded.arguments(), {value}, recorded.tape->node_count()}, step,
          arguments_.of(step, state), {to});
    };
    const RecordingInRun in_run;
    RecordedStep recorded = recorder.record(f, states_, inputs_, step, look);
    require_captured(recorder, step);
    return recorded;
  }

  void run(const RecordedStep& recorded, const BufferInterface& wanted, std::uint32_t step,
           const Addresses& arguments, const Addresses& results) {
    RunOptions options{.memory_budget = std::ssize(memory_), .threads = threads_};
    options.simplify = false;  // the next step may have other constants
    options.anomaly = arguments_.anomaly();
    LoopBudgets loops(LoopBudgets::Keeps::states);
    const OrRefusal<BufferProgramPtr> program =
        programs_.find_or_compile(recorded.tape, wanted, options, loops);
    if (!program) refuse(step, program.refusal());
    BufferRunner& runner = runner_of(*program);
    runner.set_control(arguments_.control());
    naming_step(loop_, step,
                [&] { runner.run(*recorded.tape, arguments, results, arguments_.round_of(step)); });
  }

  [[noreturn]] void refuse(std::uint32_t step, const BudgetError& refusal) const {
    throw BudgetError(
        "[" + std::string(loop_.body().name()) + "] step " + std::to_string(step) + " needs " +
            std::to_string(refusal.smallest_feasible()) + " bytes, more than the " +
            std::to_string(refusal.budget()) +
            " that the loop has for one step; raise LoopOptions::step_memory (recorded at " +
            to_string(loop_.body().where) + ")",
        refusal.budget(), refusal.smallest_feasible());
  }

  /// Runners are kept as long as their programs.
  BufferRunner& runner_of(const BufferProgramPtr& program) {
    const auto found = runners_.find(program);
    if (found != runners_.end()) return found->second;
    std::erase_if(runners_, [](const auto& each) {
      const long here = 2;  // the key and the runner
      return each.first.use_count() == here;
    });
    return runners_.try_emplace(program, program, memory_).first->second;
  }

  void require_captured(const StepRecorder& recorder, std::uint32_t step) const {
    if (recorder.captured().size() == loop_.captured_count()) return;
    const Var& value = recorder.captured().back();
    throw ArgumentError(loop_.body().name(),
                        "step " + std::to_string(step) + " uses " +
                            value.tape().describe(value.node()) +
                            ", which the first step did not; name it in LoopOptions::captured",
                        loop_.body().where);
  }

  void require_outputs(const RecordedStep& recorded, std::uint32_t step) const {
    bool same = recorded.outputs.size() == outputs_.size();
    for (std::size_t i = 0; same && i < outputs_.size(); ++i) {
      same = recorded.tape->type(recorded.outputs[i]) == outputs_[i];
    }
    if (same) return;
    throw ShapeError(loop_.body().name(),
                     "step " + std::to_string(step) +
                         " has other outputs than the first step; return the same number and types "
                         "of outputs in every step",
                     loop_.body().where);
  }

  const Loop& loop_;
  const LoopGradient* gradient_;
  LoopArguments& arguments_;
  std::span<std::byte> memory_;
  int threads_;
  BufferPrograms programs_{BufferPrograms::Match::structure, 32, most_cached};
  std::map<BufferProgramPtr, BufferRunner> runners_;
  std::vector<ValueType> states_;
  std::vector<ValueType> inputs_;
  std::vector<ValueType> outputs_;
  std::vector<bool> untouched_;
};

/// The largest result of `bytes` over the programs of a part of the loop.
template <class F>
Bytes largest(const HeldComponents& held, const LoopGradient* gradient, F bytes) {
  const Loop& loop = held.loop();
  Bytes most = bytes(gradient == nullptr ? loop.forward() : gradient->backward());
  if (gradient != nullptr && held.advance() != nullptr) {
    most = std::max(most, bytes(*held.advance()));
  }
  if (loop.has_condition()) most = std::max(most, bytes(loop.goes_on()));
  return aligned(most);
}

/// Steps may differ, so later steps may take twice as much as the first.
Bytes for_all_steps(Bytes first, const Loop& loop) {
  return std::max(aligned(loop.options().step_memory), 2 * first + 4096);
}

}  // namespace

std::unique_ptr<LoopSteps> make_steps(const HeldComponents& held, const LoopGradient* gradient,
                                      LoopArguments& arguments, std::span<std::byte> memory,
                                      int threads, Bytes share, bool ahead) {
  if (held.loop().is_recorded_again()) {
    return std::make_unique<RecordedSteps>(held.loop(), gradient, arguments, memory, threads);
  }
  return std::make_unique<PlannedSteps>(held, gradient, arguments, memory, threads, share, ahead);
}

std::unique_ptr<LoopSteps> make_forward_steps(const Loop& loop, const StepPrograms& programs,
                                              LoopArguments& arguments, std::span<std::byte> memory,
                                              int threads) {
  return std::make_unique<PlannedSteps>(loop, &programs, nullptr, arguments, memory, threads);
}

std::unique_ptr<LoopSteps> make_backward_steps(const Loop& loop, const StepPrograms& programs,
                                               LoopArguments& arguments,
                                               std::span<std::byte> memory, int threads) {
  return std::make_unique<PlannedSteps>(loop, nullptr, &programs, arguments, memory, threads);
}

Bytes step_memory(const HeldComponents& held, const LoopGradient* gradient, int threads,
                  Bytes share, bool ahead) {
  const Loop& loop = held.loop();
  if (ahead) {
    return advance_bytes(held, threads, share) +
           aligned(gradient->backward().get(threads, share)->workspace());
  }
  const Bytes first = largest(held, gradient, [&](const StepPrograms& programs) {
    return programs.get(threads, share)->workspace();
  });
  return loop.is_recorded_again() ? std::min(for_all_steps(first, loop), share) : first;
}

Bytes smallest_share(const HeldComponents& held, const LoopGradient* gradient, int threads) {
  const Loop& loop = held.loop();
  const Bytes first = largest(
      held, gradient, [&](const StepPrograms& programs) { return programs.smallest(threads); });
  return loop.is_recorded_again() ? for_all_steps(first, loop) : first;
}

}  // namespace palimpsest
