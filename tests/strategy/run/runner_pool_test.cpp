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

TEST_CASE("a pool keeps runners by program and choice of native code", "[native]") {
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

TEST_CASE("runners move to other memory, unless one is there already", "[native]") {
  const BufferProgramPtr program = program_of(1);
  Memory memory[3];
  RunnerPool pool;
  const auto take = [&](Memory& in) {
    return pool.take(program, in.bytes, nullptr, NativeCode::at_once);
  };
  std::unique_ptr<BufferRunner> first = take(memory[0]);
  std::unique_ptr<BufferRunner> second = take(memory[1]);
  const BufferRunner* const known[] = {first.get(), second.get()};
  const Numbers expected = result_of(*first, {1, 2, 0.5});
  CHECK(result_of(*second, {1, 2, 0.5}) == expected);
  pool.give_back(std::move(first));
  pool.give_back(std::move(second));
  second = take(memory[1]);
  CHECK(second.get() == known[1]);
  first = take(memory[2]);
  CHECK(first.get() == known[0]);
  memory[0].bytes.fill(std::byte{255});
  const Memory untouched = memory[0];
  CHECK_FALSE(first->may_repeat());
  CHECK(result_of(*first, {1, 2, 0.5}) == expected);
  CHECK(memory[0].bytes == untouched.bytes);
}

TEST_CASE("a pool keeps the runners that were used last") {
  const BufferProgramPtr program = program_of(1);
  const long before = program.use_count();
  std::vector<Memory> memory(12);
  RunnerPool pool;
  std::vector<std::unique_ptr<BufferRunner>> runners;
  const auto take = [&](Memory& in) {
    return pool.take(program, in.bytes, nullptr, NativeCode::off);
  };
  for (Memory& each : memory) runners.push_back(take(each));
  const BufferRunner* const fourth = runners[4].get();
  for (auto& each : runners) pool.give_back(std::move(each));
  CHECK(program.use_count() - before == 8);
  CHECK(take(memory[4]).get() == fourth);
}

}  // namespace
}  // namespace palimpsest::runner_pool_test
