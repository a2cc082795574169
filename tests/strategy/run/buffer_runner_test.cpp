#include "strategy/run/buffer_runner.h"

#include <array>

#include "palimpsest.h"
#include "strategy/loops/loop_budgets.h"
#include "tests/catch.h"

namespace palimpsest::buffer_runner_test {
namespace {

TEST_CASE("a repeated run copies results that no instruction makes", "[native]") {
  using Pair = std::array<double, 2>;
  const auto tape = std::make_shared<Tape>();
  const Var x = tape->parameter(Tensor::zeros({2}, DType::f64));
  const Var passed = tape->parameter(Tensor::zeros({2}, DType::f64));
  const Var constant = tape->constant(Tensor::from<double>({5, 6}, {2}));
  const Var made = x * 2.0 + 1.0;
  const std::vector<ValueId> results{made.id(), passed.id(), constant.id(), made.id(), passed.id()};
  const BufferInterface interface{
      {x.id(), passed.id()}, results, static_cast<NodeId>(tape->node_count())};
  LoopBudgets loops;
  const BufferProgramPtr program = *compile_for_buffers(tape, interface, {.threads = 1}, loops);
  alignas(64) std::array<std::byte, 4096> memory;
  BufferRunner runner(program, memory);
  runner.set_native(NativeCode::at_once);

  struct Buffers {
    Pair arguments[2];
    Pair results[5] = {};
  };
  const auto bytes_of = [](Pair& pair) { return reinterpret_cast<std::byte*>(pair.data()); };
  const auto check = [](const Buffers& found) {
    const Pair& from = found.arguments[0];
    const Pair expected{2 * from[0] + 1, 2 * from[1] + 1};
    CHECK(found.results[0] == expected);
    CHECK(found.results[1] == found.arguments[1]);
    CHECK(found.results[2] == Pair{5, 6});
    CHECK(found.results[3] == expected);
    CHECK(found.results[4] == found.arguments[1]);
  };
  Buffers first{{{1, 2}, {3, 4}}};
  std::vector<std::byte*> from;
  std::vector<std::byte*> to;
  for (Pair& each : first.arguments) from.push_back(bytes_of(each));
  for (Pair& each : first.results) to.push_back(bytes_of(each));
  runner.run(from, to, 0);
  check(first);
  REQUIRE(runner.may_repeat());
  Buffers second{{{7, 8}, {9, 10}}};
  for (std::size_t i = 0; i < 2; ++i) runner.set_argument(i, bytes_of(second.arguments[i]));
  for (std::size_t i = 0; i < 5; ++i) runner.set_result(i, bytes_of(second.results[i]));
  runner.repeat(0);
  check(second);
  check(first);
}

}  // namespace
}  // namespace palimpsest::buffer_runner_test
