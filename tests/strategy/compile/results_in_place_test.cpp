// Runs that write results over arguments, against runs that write them to other memory.
#include "strategy/compile/results_in_place.h"

#include "tests/catch.h"
//
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <map>

#include "palimpsest.h"
#include "strategy/compile/verify_plan.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/run/buffer_runner.h"

namespace palimpsest::results_in_place_test {
namespace {

constexpr std::int64_t count = 12;
using Numbers = std::vector<double>;

struct Recorded {
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  std::vector<Var> arguments;
  std::vector<Var> results;
  std::vector<std::pair<std::size_t, std::size_t>> donations;  // of arguments to results

  Var argument() {
    arguments.push_back(tape->parameter(Tensor::zeros({count}, DType::f64)));
    return arguments.back();
  }

  OrRefusal<BufferProgramPtr> compiled(const RunOptions& options) const {
    BufferInterface interface{{}, {}, static_cast<NodeId>(tape->node_count())};
    for (const Var& each : arguments) interface.arguments.push_back(each.id());
    for (const Var& each : results) interface.results.push_back(each.id());
    for (const auto& [argument, result] : donations) {
      interface.donations.push_back({arguments[argument].id(), results[result].id()});
    }
    LoopBudgets loops;
    return compile_for_buffers(tape, interface, options, loops);
  }
};

/// The results of a run; `over` are the arguments over which some of them are written.
std::vector<Numbers> run(const BufferProgramPtr& program, std::size_t arguments,
                         std::size_t results, const std::map<std::size_t, std::size_t>& over,
                         NativeCode native) {
  std::vector<Numbers> given(arguments);
  std::vector<Numbers> made(results, Numbers(count, -1));
  std::vector<std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t i = 0; i < arguments; ++i) {
    for (std::int64_t j = 0; j < count; ++j) {
      given[i].push_back(0.1 * static_cast<double>(i + 1) + 0.01 * static_cast<double>(j));
    }
    from.push_back(reinterpret_cast<std::byte*>(given[i].data()));
  }
  for (std::size_t i = 0; i < results; ++i) {
    Numbers& where = over.contains(i) ? given[over.at(i)] : made[i];
    to.push_back(reinterpret_cast<std::byte*>(where.data()));
  }
  const Buffer memory = allocate_buffer(std::max<Bytes>(program->workspace(), 64));
  BufferRunner runner(program, {memory.get(), static_cast<std::size_t>(program->workspace())});
  runner.set_native(native);
  runner.run(from, to, 0);
  for (const auto& [result, argument] : over) made[result] = given[argument];
  return made;
}

Var shifted(const Var& x) { return roll(x, 1, 0); }

/// A sum to which several groups add in turn.
Recorded summed() {
  Recorded step;
  const Var sum = step.argument();
  Var x = step.argument();
  Var total = sum;
  for (int i = 0; i < 3; ++i) {
    x = shifted(x) * 0.5;
    total = total + x * x;
  }
  step.results = {total, x};
  step.donations = {{0, 0}, {1, 0}, {1, 1}};
  return step;
}

TEST_CASE("results in place: a sum over several groups lies in the buffer of the result") {
  const Recorded step = summed();
  const BufferProgramPtr program = *step.compiled({.threads = 1});
  CHECK(program->may_write_over(0, 0));
  CHECK_FALSE(program->may_write_over(0, 1));  // is shifted
  CHECK_FALSE(program->may_write_over(1, 1));
  // Earlier values of the sum lie there too.
  std::size_t in_result = 0;
  const Instructions& made = *program->instructions();
  const std::size_t place = made.source_place(program->results()[0].place);
  for (const Instructions::Place each : made.places()) in_result += each == place;
  CHECK(in_result > 1);
  const auto apart = run(program, 2, 2, {}, NativeCode::off);
  CHECK(apart == run(program, 2, 2, {{0, 0}}, NativeCode::off));
}

TEST_CASE("results in place: an argument is replaced after all other reads of it") {
  Recorded step;
  const Var x = step.argument();
  const Var w = step.argument();
  const Var early = shifted(tanh(x * w));
  step.results = {x + early, early};
  step.donations = {{0, 0}};
  const BufferProgramPtr program = *step.compiled({.threads = 2});
  CHECK(program->may_write_over(0, 0));
  CHECK(run(program, 2, 2, {}, NativeCode::off) == run(program, 2, 2, {{0, 0}}, NativeCode::off));

  // Nothing orders the second read before the first result.
  step.results = {x + w, shifted(x)};
  CHECK_FALSE((*step.compiled({.threads = 2}))->may_write_over(0, 0));
  // It is a result itself.
  step.results = {x + w, x};
  CHECK_FALSE((*step.compiled({.threads = 1}))->may_write_over(0, 0));
}

TEST_CASE("results in place: the argument that was donated to a result, and no other") {
  Recorded step;
  const Var x = step.argument();
  const Var w = step.argument();
  step.results = {x + cumsum(w, 0)};
  step.donations = {{0, 0}};
  CHECK((*step.compiled({.threads = 1}))->may_write_over(0, 0));
  step.donations = {{1, 0}};
  CHECK_FALSE((*step.compiled({.threads = 1}))->may_write_over(0, 0));

  // All groups of the first sum read what was donated to the second one.
  Recorded both;
  const Var a = both.argument();
  const Var b = both.argument();
  const auto sum_of = [&](const Var& begin, const Var& factor) {
    Var total = begin;
    Var x = both.arguments.back();
    for (int i = 0; i < 3; ++i) {
      x = shifted(x) * 0.5;
      total = total + x * factor;
    }
    return total;
  };
  const Var weights = both.argument();
  both.results = {sum_of(a, b), sum_of(b, weights * weights)};
  both.donations = {{0, 0}, {1, 1}};
  const BufferProgramPtr program = *both.compiled({.threads = 1});
  CHECK(program->may_write_over(0, 0));
  CHECK_FALSE(program->may_write_over(0, 1));
}

TEST_CASE("results in place: what a schedule makes again replaces nothing") {
  const Recorded step = summed();
  const ValueId result = step.results[0].id();
  Lowered lowered = Lowered::fused(*step.tape, {&result, 1}, 1, step.tape->node_count(), {});
  const Donation donation{step.arguments[0].id(), result};
  lowered.place_results_elsewhere({&donation, 1});
  const Graph& graph = lowered.graph();
  const Schedule once = make_plan(graph, *keep_all()).schedule;
  const ValueId made = lowered.results()[0].value;
  const auto found = ResultsInPlace(*step.tape, lowered, once).find(made);
  REQUIRE(found.sources.size() == 1);
  REQUIRE(!found.before.empty());
  for (const ValueId each : {found.before[0], made}) {
    Schedule twice = once;
    twice.steps.push_back(Step::compute(graph.producer(each)));
    CHECK(ResultsInPlace(*step.tape, lowered, twice).find(made).sources.empty());
  }
}

TEST_CASE("results in place: verification finds an argument that is read too late") {
  Recorded step;
  const Var x = step.argument();
  const Var w = step.argument();
  step.results = {x + w, shifted(x), w};
  const BufferProgramPtr program = *step.compiled({.threads = 1});
  const Instructions& made = *program->instructions();
  const auto argument = [&](std::size_t i) { return made.source_place(program->arguments()[i]); };
  const auto result = [&](std::size_t i) { return made.source_place(program->results()[i].place); };
  CHECK_THROWS_AS(verify_replacement(made, argument(0), result(0)), InternalError);
  CHECK_THROWS_AS(verify_replacement(made, argument(1), result(0)), InternalError);
}

/// Random elementwise operations, shifts and products on vectors.
Recorded random_step() {
  Recorded step;
  const auto arguments = *rc::gen::inRange(1, 5);
  for (int i = 0; i < arguments; ++i) step.argument();
  std::vector<Var> values = step.arguments;
  const auto any = [&] { return values[*rc::gen::inRange<std::size_t>(0, values.size())]; };
  const auto late = [&] {
    const std::size_t first = values.size() > 4 ? values.size() - 4 : 0;
    return values[*rc::gen::inRange<std::size_t>(first, values.size())];
  };
  const auto operations = *rc::gen::inRange(2, 14);
  for (int i = 0; i < operations; ++i) {
    const Var x = late();
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
        values.push_back(x + any());
        break;
      case 1:
        values.push_back(any() - x * 0.5);
        break;
      case 2:
        values.push_back(x * any());
        break;
      case 3:
        values.push_back(shifted(x));
        break;
      case 4:
        values.push_back(x + sum(any()));
        break;
      case 5:
        values.push_back(reshape(softmax(reshape(x, {3, 4})), {count}));
        break;
      default: {
        const Var product = matmul(reshape(x, {3, 4}), reshape(any(), {4, 3}));
        values.push_back(any() + pad(reshape(product, {9}), {{0, 3}}));
      }
    }
  }
  const auto results = *rc::gen::inRange(1, 5);
  for (int i = 0; i < results; ++i) {
    step.results.push_back(i == 0 ? values.back() : late());
    for (int j = 0; j < arguments; ++j) {
      if (*rc::gen::arbitrary<bool>()) step.donations.emplace_back(j, i);
    }
  }
  return step;
}

TEST_CASE("results in place: random programs give the same bits", "[native]") {
  rc::prop("in every form, within every budget, and on two threads", [] {
    const Recorded step = random_step();
    RunOptions options{.threads = *rc::gen::inRange(1, 3)};
    options.fuse = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
    OrRefusal<BufferProgramPtr> compiled = step.compiled(options);
    REQUIRE(compiled);
    if (*rc::gen::arbitrary<bool>()) {
      options.memory_budget = (*compiled)->workspace() / 2;
      compiled = step.compiled(options);
      if (!compiled) {
        options.memory_budget = compiled.refusal().smallest_feasible();
        compiled = step.compiled(options);
        RC_ASSERT(compiled);
      }
    }
    const BufferProgramPtr& program = *compiled;
    std::map<std::size_t, std::size_t> over;
    std::vector<bool> is_taken(step.arguments.size());
    for (std::size_t result = 0; result < step.results.size(); ++result) {
      for (std::size_t argument = 0; argument < step.arguments.size(); ++argument) {
        if (is_taken[argument] || over.contains(result)) continue;
        if (!program->may_write_over(result, argument)) continue;
        if (program->results()[result].from != BufferProgram::Result::From::made) continue;
        over[result] = argument;
        is_taken[argument] = true;
        const Instructions& made = *program->instructions();
        verify_replacement(made, made.source_place(program->arguments()[argument]),
                           made.source_place(program->results()[result].place));
      }
    }
    RC_CLASSIFY(!over.empty());
    const NativeCode native =
        *rc::gen::weightedElement<NativeCode>({{9, NativeCode::off}, {1, NativeCode::at_once}});
    const std::size_t arguments = step.arguments.size();
    const std::size_t results = step.results.size();
    const auto apart = run(program, arguments, results, {}, NativeCode::off);
    RC_ASSERT(apart == run(program, arguments, results, over, native));
    Recorded plain = step;
    plain.donations.clear();
    const BufferProgramPtr other = *plain.compiled({.threads = 1, .fuse = false});
    RC_ASSERT(apart == run(other, arguments, results, {}, NativeCode::off));
  });
}

}  // namespace
}  // namespace palimpsest::results_in_place_test
