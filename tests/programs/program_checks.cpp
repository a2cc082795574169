#include "tests/programs/program_checks.h"

#include <cmath>
#include <random>
#include <sstream>

namespace palimpsest {
namespace {

constexpr const char* mode_names[] = {"lazy", "eager", "hybrid", "program", "evaluated"};

/// The same bits, where NaN is NaN: which of two NaNs a sum keeps is left open.
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

/// A promise of the library that does not hold.
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
  Runs(const ProgramText& text, const Cell& cell) : text_(text), cell_(cell) {
    options_.fuse = cell.fuse;
    options_.simplify = cell.simplify;
    options_.threads = cell.threads;
    options_.memory = cell.memory;
    if (cell.planner.empty()) return;
    const bool timed = named_planner(cell.planner).timed;
    options_.planner = planner_named(cell.planner, timed ? std::optional(0.02) : std::nullopt);
  }

  /// Within the share, or if that is too small within the smallest budget that is named.
  Results results() {
    if (cell_.share) {
      Tape tape;
      const Plan plan = plan_backward(compose(tape, text_).loss, {.threads = cell_.threads});
      const auto most = static_cast<double>(plan.predicted_peak());
      options_.memory_budget = static_cast<Bytes>(*cell_.share * most);
    }
    // Where values are computed while they are recorded, what is named holds for what is recorded
    // so far.
    const bool computes_early = cell_.mode == Cell::Mode::eager || cell_.mode == Cell::Mode::hybrid;
    int refusals_left = computes_early ? 50 : 1;
    for (Bytes named = 0;;) {
      try {
        return run();
      } catch (const BudgetError& error) {
        if (error.own_limit() && options_.planner != nullptr) {  // which no budget mends
          options_.planner = nullptr;
          continue;
        }
        const std::string then = std::to_string(error.smallest_feasible());
        require(cell_.share.has_value(), std::string("without a budget: ") + error.what());
        require(error.smallest_feasible() > error.budget(),
                "a budget of " + std::to_string(error.budget()) + " is refused, and " + then +
                    " is named");
        require(refusals_left-- > 0,
                "a smallest budget of " + std::to_string(named) + " was named, and then " + then);
        options_.memory_budget = named = error.smallest_feasible();
      }
    }
  }

 private:
  Results run() {
    switch (cell_.mode) {
      case Cell::Mode::lazy:
        return differentiate(lazy());
      case Cell::Mode::eager:
        return differentiate(
            eager({.memory_budget = options_.memory_budget, .threads = options_.threads}));
      case Cell::Mode::hybrid:
        return differentiate(hybrid(options_, {.nodes = 7}));
      case Cell::Mode::program:
        return run_program();
      case Cell::Mode::evaluated:
        return evaluate_all();
    }
    throw InternalError("unknown mode");
  }

  /// Twice on one tape, the second time from what the evaluator knows of the first.
  Results differentiate(const std::shared_ptr<Evaluator>& evaluator) {
    Tape tape(evaluator);
    const ComposedProgram program = compose(tape, text_);
    const Gradients gradients = backward(program.loss, options_);
    check_bytes(gradients.report());
    Results first = results_of(program, gradients);
    const Gradients again = backward(program.loss, options_);
    check_bytes(again.report());
    require(difference(results_of(program, again), first).empty(), "a second backward differs");
    return first;
  }

  static Results results_of(const ComposedProgram& program, const Gradients& gradients) {
    Results results{gradients.loss()};
    for (const Var& parameter : program.parameters) results.push_back(gradients[parameter]);
    return results;
  }

  Results run_program() {
    Runner runner(
        Program::gradients([&](Tape& tape) { return compose(tape, text_).loss; }, options_));
    runner.run();
    const Gradients gradients = runner.gradients();
    check_bytes(gradients.report());
    Results results{gradients.loss()};
    for (const auto& [parameter, gradient] : gradients) results.push_back(gradient);
    return results;
  }

  /// Gradients that are values of the tape.
  Results evaluate_all() {
    Tape tape;
    const ComposedProgram program = compose(tape, text_);
    std::vector<Var> values = gradient(program.loss, program.parameters);
    values.insert(values.begin(), program.loss);
    check_bytes(evaluate(values, options_));
    Results results;
    for (const Var& value : values) results.push_back(value.value());
    return results;
  }

  const ProgramText& text_;
  const Cell& cell_;
  RunOptions options_;
};

}  // namespace

Cell cell_of(std::uint64_t seed, std::uint32_t index) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         index, 7u};
  std::mt19937_64 random(sequence);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  constexpr const char* planners[] = {
      "auto",      "keep_all", "reordered",  "greedy",  "quick",   "search", "square_root",
      "uniform:3", "every:4",  "binomial:3", "chain:4", "min_cut", "online", "fraction:0.5"};
  Cell cell;
  cell.mode = static_cast<Cell::Mode>(below(std::size(mode_names)));
  cell.fuse = below(4) != 0;
  cell.simplify = below(4) != 0;
  cell.threads = 1 + static_cast<int>(below(4));
  cell.memory = static_cast<MemoryHandling>(below(cell.mode == Cell::Mode::program ? 3 : 4));
  const bool plans = cell.mode == Cell::Mode::lazy || cell.mode == Cell::Mode::program ||
                     cell.mode == Cell::Mode::evaluated;
  if (plans && below(2) == 0) cell.planner = planners[below(std::size(planners))];
  if (below(4) != 0) cell.share = static_cast<double>(below(11)) / 10;
  return cell;
}

std::string to_string(const Cell& cell) {
  std::ostringstream text;
  text << mode_names[static_cast<std::size_t>(cell.mode)] << ", " << cell.threads << " threads, "
       << name_of(cell.memory);
  if (!cell.fuse) text << ", not fused";
  if (!cell.simplify) text << ", not simplified";
  if (!cell.planner.empty()) text << ", planned by " << cell.planner;
  if (cell.share) text << ", in " << *cell.share << " of the bytes";
  return text.str();
}

Results reference_of(const ProgramText& text) {
  Tape tape;
  const ComposedProgram program = compose(tape, text);
  Results results{program.loss.value()};
  for (const Var& each : gradient(program.loss, program.parameters)) {
    results.push_back(each.value());
  }
  return results;
}

std::string difference(const Results& found, const Results& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (same_numbers(found[i], expected[i])) continue;
    std::ostringstream text;
    text << (i == 0 ? "the loss" : "gradient " + std::to_string(i - 1)) << " is\n"
         << found[i] << "\nnot\n"
         << expected[i];
    return text.str();
  }
  return {};
}

std::optional<std::string> problem_in(const ProgramText& text, const Cell& cell,
                                      const Results& expected) {
  try {
    const std::string found = difference(Runs(text, cell).results(), expected);
    return found.empty() ? std::nullopt : std::optional(found);
  } catch (const ArgumentError& error) {
    // Some planners are for gradients: of a loss that no parameter leads to there are none.
    if (std::string_view(error.what()).find("no backward part") != std::string_view::npos)
      return {};
    return error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace palimpsest
