#include "tests/catch.h"
//
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <vector>

#include "strategy/loops/loop_memory.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::state_block_test {
namespace {

TEST_CASE("tensors in a block are aligned, apart from each other, and without much padding") {
  rc::prop("random types", [] {
    const std::vector<DType> dtypes = {DType::f64, DType::f32, DType::bf16,
                                       DType::i64, DType::i32, DType::boolean};
    std::vector<ValueType> types;
    const int count = *rc::gen::inRange(0, 7);
    for (int i = 0; i < count; ++i) {
      types.push_back({Shape{*rc::gen::inRange(0, 70)}, *rc::gen::elementOf(dtypes)});
    }
    const StateBlock block(types);
    RC_ASSERT(block.bytes % 64 == 0);
    RC_ASSERT(block.stride <= block.bytes);
    std::vector<std::pair<Bytes, Bytes>> pieces;  // offset, end
    Bytes used = 0;
    for (std::size_t i = 0; i < types.size(); ++i) {
      RC_ASSERT(block.sizes[i] == types[i].bytes());
      if (block.sizes[i] == 0) continue;
      RC_ASSERT(block.offsets[i] % size_of(types[i].dtype) == 0);
      RC_ASSERT(block.stride % size_of(types[i].dtype) == 0);
      pieces.emplace_back(block.offsets[i], block.offsets[i] + block.sizes[i]);
      used += block.sizes[i];
    }
    std::ranges::sort(pieces);
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      RC_ASSERT(pieces[i - 1].second <= pieces[i].first);
    }
    if (!pieces.empty()) RC_ASSERT(pieces.back().second <= block.stride);
    // An eighth of each tensor, and what rounding the block to a cache line takes.
    RC_ASSERT(block.stride <= used + used / 8 + 63);
  });
}

TEST_CASE("a state of three numbers takes 24 bytes while it is held") {
  const auto lorenz = [](Tape& tape, const LoopOptions& options) {
    const Var x = tape.parameter(number(1.0));
    const Var y = tape.parameter(number(1.5));
    const Var z = tape.parameter(number(20.0));
    const auto end = scan(
        {x, y, z}, 1000,
        [](std::span<const Var> s, const StepNumber&) {
          return std::vector<Var>{s[0] + 0.01 * 10.0 * (s[1] - s[0]),
                                  s[1] + 0.01 * (s[0] * (28.0 - s[2]) - s[1]),
                                  s[2] + 0.01 * (s[0] * s[1] - 2.5 * s[2])};
        },
        options);
    return std::pair{end[0] * end[1] + end[2], x};
  };
  Tape all_tape;
  const auto [all, all_x] = lorenz(all_tape, {});
  const Gradients expected = backward(all);
  const Bytes budget = 20'000;
  Tape tape;
  const auto [loss, x] = lorenz(tape, {.memory_budget = budget});
  const Gradients found = backward(loss);
  const Report::Loop& loop = found.report().loops.at(0);
  CHECK(Bytes{loop.states} * 24 > budget / 2);
  CHECK(Bytes{loop.states} * 24 <= budget);
  CHECK(same_bits(found[x], expected[all_x]));
  CHECK(expected.report().loops.at(0).states == 1000);
  CHECK(expected.report().measured_peak < 40'000);
}

}  // namespace
}  // namespace palimpsest::state_block_test
