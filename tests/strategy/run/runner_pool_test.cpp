#include "strategy/run/runner_pool.h"

#include <array>
#include <vector>

#include "palimpsest.h"
#include "strategy/loops/loop_budgets.h"
#include "tests/catch.h"

namespace palimpsest::runner_pool_test {
namespace {

/// From three numbers and `shift` to three others.
BufferProgramPtr program_of(double shift) {
  const auto tape = std::make_shared<Tape>();
  const Var x = tape->parameter(Tensor::zeros({3}, DType::f64));
  const Var y = exp(sum(x * x) * x) + shift;
  LoopBudgets loops;
  const BufferInterface interface{{x.id()}, {y.id()}, static_cast<NodeId>(tape->node_count())};
  return *compile_for_buffers(tape, interface, {.threads = 1}, loops);
}

struct Memory {
  alignas(64) std::array<std::byte, 4096> bytes;
};

using Numbers = std::array<double, 3>;

Numbers result_of(BufferRunner& runner, Numbers x) {
  Numbers y{};
  auto* const argument = reinterpret_cast<std::byte*>(x.data());
  auto* const result = reinterpret_cast<std::byte*>(y.data());
  runner.run({&argument, 1}, {&result, 1}, 0);
  return y;
}

TEST_CASE("a pool keeps runners by program, memory and choice of native code", "[native]") {
  const BufferProgramPtr program = program_of(1);
  const BufferProgramPtr other = program_of(2);
  Memory memory[2];
  RunnerPool pool;
  const auto take = [&](const BufferProgramPtr& each, Memory& in, NativeCode native) {
    return pool.take(each, in.bytes, nullptr, native);
  };
  for (const NativeCode native : {NativeCode::off, NativeCode::at_once}) {
    std::unique_ptr<BufferRunner> first = take(program, memory[0], native);
    const Numbers expected = result_of(*first, {1, 2, 0.5});
    const bool repeats = first->may_repeat();
    CHECK(repeats == (native == NativeCode::at_once));
    const BufferRunner* const known = first.get();
    const auto second = take(program, memory[0], native);
    CHECK(second.get() != known);
    pool.give_back(std::move(first));
    CHECK(take(other, memory[0], native).get() != known);
    CHECK(take(program, memory[1], native).get() != known);
    const auto other_choice = native == NativeCode::off ? NativeCode::at_once : NativeCode::off;
    CHECK(take(program, memory[0], other_choice).get() != known);
    first = take(program, memory[0], native);
    CHECK(first.get() == known);
    // The addresses of the run before may be those of memory that is gone.
    CHECK_FALSE(first->may_repeat());
    CHECK(result_of(*first, {1, 2, 0.5}) == expected);
    CHECK(result_of(*first, {0, 0, 0}) == Numbers{2, 2, 2});
    CHECK(first->may_repeat() == repeats);
    pool.give_back(std::move(first));
  }
}

TEST_CASE("a pool keeps the runners that were used last") {
  const BufferProgramPtr program = program_of(1);
  const long before = program.use_count();
  std::vector<Memory> memory(12);
  RunnerPool pool;
  const auto runner_in = [&](Memory& in) {
    return pool.take(program, in.bytes, nullptr, NativeCode::off);
  };
  std::vector<const BufferRunner*> known;
  for (Memory& each : memory) {
    std::unique_ptr<BufferRunner> runner = runner_in(each);
    known.push_back(runner.get());
    pool.give_back(std::move(runner));
  }
  CHECK(program.use_count() - before == 8);
  CHECK(runner_in(memory[11]).get() == known[11]);
  CHECK(runner_in(memory[4]).get() == known[4]);
  CHECK(program.use_count() - before == 6);
  const auto made = runner_in(memory[3]);
  CHECK(program.use_count() - before == 7);
}

}  // namespace
}  // namespace palimpsest::runner_pool_test
