// Loops that hold only the components of their state that derivatives of steps read.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"
#include "tests/temporary_directory.h"

namespace palimpsest::held_components_test {

namespace {

constexpr std::int64_t cells = 200;

/// A step of some state, with the parameters `speed` (0) and `force` (cells).
using Body =
    std::function<std::vector<Var>(std::span<const Var>, const Var& speed, const Var& force)>;

struct Case {
  const char* name;
  std::size_t components;
  std::vector<std::uint32_t> held;
  Body body;
};

std::vector<Case> cases() {
  return {
      {"linear",
       1,
       {},
       [](auto x, const Var&, const Var&) {
         return std::vector<Var>{0.99 * x[0] + 0.1 * (roll(x[0], 1, 0) - x[0])};
       }},
      {"source",
       1,
       {},
       [](auto x, const Var&, const Var& force) {
         return std::vector<Var>{0.9 * x[0] + sin(force)};
       }},
      {"leapfrog",
       2,
       {},
       [](auto x, const Var&, const Var& force) {
         const Var faster = x[1] - 0.01 * x[0] + 0.01 * force;
         return std::vector<Var>{x[0] + 0.01 * faster, faster};
       }},
      {"accumulator",
       2,
       {0},
       [](auto x, const Var& speed, const Var&) {
         return std::vector<Var>{ring_step(x[0], speed), x[1] + 0.5 * x[0]};
       }},
      // The derivative reads the first component, which is made from the last one.
      {"made from another",
       3,
       {0, 2},
       [](auto x, const Var& speed, const Var& force) {
         return std::vector<Var>{0.5 * x[0] * x[0] + 0.1 * x[2], x[1] + speed * force,
                                 0.9 * x[2] + 0.1 * force};
       }},
      {"two of eight",
       8,
       {1, 6},
       [](auto x, const Var& speed, const Var& force) {
         std::vector<Var> next(x.begin(), x.end());
         for (const std::size_t i : {0u, 2u, 3u, 4u, 5u, 7u}) {
           next[i] = 0.9 * x[i] + 0.1 * x[(i + 1) % 8] + 0.01 * force;
         }
         next[1] = ring_step(x[1], speed) + 0.1 * x[6];
         next[6] = cos(x[6]) * 0.9;
         return next;
       }},
      {"all",
       2,
       {0, 1},
       [](auto x, const Var& speed, const Var&) {
         return std::vector<Var>{ring_step(x[1], speed), sin(x[0])};
       }},
  };
}

struct Found {
  std::vector<Tensor> values;  // the loss and all gradients
  Report report;
};

Found run(const Case& each, const LoopOptions& options, const RunOptions& run, bool counts = true) {
  Tape tape;
  const Var speed = tape.parameter(number(0.2));
  const Var force = tape.parameter(wave(cells));
  std::vector<Var> start;
  for (std::size_t i = 0; i < each.components; ++i) {
    start.push_back(tape.parameter((0.1 * static_cast<double>(i + 1)) * wave(cells)));
  }
  std::vector<Var> end;
  if (counts) {
    const auto body = [&](std::span<const Var> x, const StepNumber&) {
      return each.body(x, speed, force);
    };
    end = scan(start, 60, body, options);
  } else {
    std::vector<Var> state = start;
    state.push_back(tape.constant(number(0)));
    const auto goes_on = [](std::span<const Var> x, const StepNumber&) { return x.back() < 59.5; };
    const auto body = [&](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
      std::vector<Var> next = each.body(x.first(x.size() - 1), speed, force);
      next.push_back(x.back() + 1.0);
      return LoopStep{next};
    };
    end = while_loop(state, goes_on, body, options).state;
    end.pop_back();
  }
  Var loss = tape.constant(number(0));
  for (const Var& component : end) loss = loss + sum(component * component);
  std::vector<Var> wanted = start;
  wanted.insert(wanted.end(), {speed, force});
  const Gradients found = backward(loss, run);
  Found result{{loss.value().clone()}, found.report()};
  for (const Var& each_wanted : wanted) result.values.push_back(found[each_wanted].clone());
  return result;
}

bool same(const Found& a, const Found& b) {
  return std::ranges::equal(a.values, b.values,
                            [](const Tensor& x, const Tensor& y) { return same_bits(x, y); });
}

}  // namespace

TEST_CASE("loops hold what derivatives of their steps read") {
  for (const Case& each : cases()) {
    CAPTURE(each.name);
    const Report report = run(each, {}, {}).report;
    const Report::Loop& loop = report.loops.at(0);
    CHECK(loop.components == each.components);
    CHECK(loop.held_components == each.held);
    CHECK(report.measured_peak == report.predicted_peak);
    if (!each.held.empty()) continue;
    CHECK(loop.states == 0);
    CHECK(loop.forward_steps == loop.steps);
    CHECK(loop.recomputed_steps == 0);
    CHECK(loop.describe_states() == "0 states held, because no derivative of a step reads one");
  }
}

TEST_CASE("loops that hold some components have the same bits as those that hold all") {
  const TemporaryDirectory directory;
  for (const Case& each : cases()) {
    const Found whole = run(each, {.resume = directory.path() + "/" + each.name}, {});
    CHECK(whole.report.loops.at(0).held_components.size() == each.components);
    const Bytes most = run(each, {}, {}).report.measured_peak;
    for (const bool counts : {true, false}) {
      for (const int threads : {1, 2, 4}) {
        for (const int percent : {100, 70, 45, 0}) {
          CAPTURE(each.name, counts, threads, percent);
          RunOptions options{.memory_budget = percent == 100 ? unlimited : most * percent / 100,
                             .threads = threads};
          Found found;
          try {
            found = run(each, {}, options, counts);
          } catch (const BudgetError& error) {
            options.memory_budget = error.smallest_feasible();
            found = run(each, {}, options, counts);
          }
          CHECK(same(found, whole));
          CHECK(found.report.measured_peak <= found.report.predicted_peak);
          CHECK(found.report.predicted_peak <= options.memory_budget);
        }
      }
    }
  }
}

TEST_CASE("loops that hold some components: their own budgets, the disk, hashes and codecs") {
  const TemporaryDirectory directory;
  for (const Case& each : cases()) {
    const Found whole = run(each, {}, {});
    const DiskCosts costs{0.1, 0.1};
    for (const LoopOptions& options :
         {LoopOptions{.memory_budget = 80'000}, LoopOptions{.check = true},
          LoopOptions{.memory_budget = 80'000, .check = true},
          LoopOptions{.memory_budget = 120'000, .spill = directory.path(), .disk_costs = costs}}) {
      CAPTURE(each.name, options.memory_budget, options.check, options.spill);
      CHECK(same(run(each, options, {}), whole));
    }
    const Found rounded = run(each, {.memory_budget = 80'000, .codec = Codec::half}, {});
    if (each.held.empty()) CHECK(same(rounded, whole));  // nothing is rounded
  }
}

TEST_CASE("loops that hold some components take as many steps as loops of these alone") {
  const Case all = cases()[5];
  const Case alone{"alone", 2, {0, 1}, [](auto x, const Var& speed, const Var&) {
                     return std::vector<Var>{ring_step(x[0], speed) + 0.1 * x[1], cos(x[1]) * 0.9};
                   }};
  for (const Bytes budget : {30'000, 60'000, 120'000}) {
    CAPTURE(budget);
    // The steps of the larger loop take so much more.
    const Bytes more =
        run(all, {}, {}).report.measured_peak - run(alone, {}, {}).report.measured_peak;
    const Report found = run(all, {}, {.memory_budget = budget + more}).report;
    const Report expected = run(alone, {}, {.memory_budget = budget}).report;
    CHECK(found.loops.at(0).forward_steps <=
          1.02 * static_cast<double>(expected.loops.at(0).forward_steps));
  }
}

TEST_CASE("a loop that is differentiated twice holds what either derivative reads") {
  const auto found = [](bool first, bool second) {
    Tape tape;
    const Var u = first ? tape.parameter(wave(cells)) : tape.constant(wave(cells));
    const Var v = second ? tape.parameter(wave(cells)) : tape.constant(wave(cells));
    const std::vector<Var> end = scan({u, v}, 40, [](std::span<const Var> x, const StepNumber&) {
      return std::vector<Var>{0.9 * sin(x[0]), 0.9 * cos(x[1])};
    });
    std::vector<Var> gradients;
    if (first) gradients.push_back(gradient(sum(end[0] * end[0]), {u})[0]);
    if (second) gradients.push_back(gradient(sum(end[1] * end[1]), {v})[0]);
    Var loss = tape.constant(number(0));
    for (const Var& each : gradients) loss = loss + sum(each * each);
    const Report report = evaluate(loss);
    return std::pair(loss.value().clone(), report.loops.at(0).held_components);
  };
  CHECK(found(true, false).second == std::vector<std::uint32_t>{0});
  CHECK(found(false, true).second == std::vector<std::uint32_t>{1});
  const auto both = found(true, true);
  CHECK(both.second == std::vector<std::uint32_t>{0, 1});
  CHECK(std::abs(both.first.item() - found(true, false).first.item() -
                 found(false, true).first.item()) < 1e-12);
}

TEST_CASE("a derivative that reads no state runs no step again, whatever others of its loop read") {
  const TemporaryDirectory directory;
  std::atomic<int> calls = 0;
  const CustomOperation counted(
      {.name = "counted",
       .forward =
           [&](const CustomCall& call) {
             ++calls;
             std::ranges::transform(call.inputs[0].data<double>(),
                                    call.outputs[0].data<double>().begin(),
                                    [](double x) { return std::sin(x); });
           },
       .vjp = [](const Pullback& p) { p.set(0, p.adjoint(0) * cos(p.input(0))); }});
  const auto run = [&](bool with_linear, const LoopOptions& options) {
    calls = 0;
    Tape tape;
    const Var u = tape.parameter(wave(cells));
    const Var v = tape.parameter(wave(cells));
    const auto body = [&](std::span<const Var> x, const StepNumber&) {
      return std::vector<Var>{counted({x[0]}), 0.9 * x[1]};
    };
    const std::vector<Var> end = scan({u, v}, 100, body, options);
    std::vector<Var> slopes{gradient(sum(end[0] * end[0]), u)};
    if (with_linear) slopes.push_back(gradient(sum(end[1] * end[1]), v));
    evaluate(slopes, {.threads = 1});
    return std::pair(slopes[0].value().clone(), calls.load());
  };
  const Tensor expected = run(false, {}).first;
  for (const LoopOptions& options :
       {LoopOptions{.memory_budget = 80'000}, LoopOptions{.memory_budget = 60'000,
                                                          .spill = directory.path(),
                                                          .disk_costs = DiskCosts{0.1, 0.1}}}) {
    CAPTURE(options.spill);
    const auto [alone, once] = run(false, options);
    const auto [beside, again] = run(true, options);
    CHECK(same_bits(alone, expected));
    CHECK(same_bits(beside, expected));
    if (options.spill.empty()) CHECK(once > 100);
    CHECK(again == once);
  }
}

TEST_CASE("a loop holds no component on which no derivative depends") {
  const auto run = [](bool with_diagnostic, std::uint32_t steps) {
    Tape tape;
    const Var u = tape.parameter(wave(cells));
    const Var end = [&] {
      if (!with_diagnostic) {
        return scan(u, steps, [](const Var& x, const StepNumber&) { return 0.9 * sin(x); });
      }
      // The second component is read by the third alone, and the loss reads neither.
      const std::vector<Var> start{u, tape.parameter(wave(cells)), tape.constant(wave(cells))};
      return scan(start, steps, [](std::span<const Var> x, const StepNumber&) {
        return std::vector<Var>{0.9 * sin(x[0]), cos(x[1]) * x[0], exp(-x[2] * x[2]) * x[1]};
      })[0];
    }();
    const Gradients gradients = backward(sum(end * end));
    return std::pair(gradients[u].clone(), gradients.report().loops.at(0).held_components);
  };
  for (const std::uint32_t steps : {0U, 1U, 40U}) {
    CAPTURE(steps);
    const auto [expected, alone] = run(false, steps);
    const auto [found, held] = run(true, steps);
    CHECK(same_bits(found, expected));
    CHECK(held == alone);
  }
}

TEST_CASE("a loop whose result depends on no parameter has gradients of zero") {
  for (const bool twice : {false, true}) {
    CAPTURE(twice);
    Tape tape;
    const Var given = tape.parameter(wave(40));
    const Var factor = tape.parameter(wave(cells));
    const std::vector<Var> start{tape.constant(wave(cells)), tape.parameter(wave(cells))};
    const LoopResult made =
        scan(start, 40, {&given, 1},
             [&](std::span<const Var> x, std::span<const Var> in, const StepNumber&) {
               return LoopStep{{x[0] * factor + in[0] * x[0], 0.5 * x[1]}, {}};
             });
    Var loss = sum(made.state[1]);
    if (twice) {
      const Var slope = gradient(loss, start[1]);
      loss = sum(slope * slope);
    }
    const Gradients gradients = backward(loss);
    for (const Var& each : std::vector<Var>{given, factor}) {
      for (const double element : gradients[each].data<double>()) CHECK(element == 0);
    }
    CHECK(gradients[start[1]].data<double>()[0] == (twice ? 0 : std::pow(0.5, 40)));
  }
}

}  // namespace palimpsest::held_components_test
