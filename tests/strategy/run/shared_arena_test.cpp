#include "palimpsest.h"
#include "strategy/evaluators/engine.h"
#include "tests/catch.h"

namespace palimpsest::shared_arena_test {
namespace {

/// Bytes that an engine still reserves after each of successive runs with these numbers of rows.
std::vector<Bytes> reserved_behind(Engine& engine, std::initializer_list<std::int64_t> rows) {
  std::vector<Bytes> reserved;
  for (const std::int64_t n : rows) {
    Tape tape;
    const Var x = tape.constant(Tensor::uniform({n, 64}, 1));
    const ValueId target = sum(matmul(x, transpose(x))).id();
    engine.evaluate(tape, {&target, 1}, {});
    CHECK(tape.value(target).item() > 0);
    tape.clear();
    reserved.push_back(engine.meter().reserved());
  }
  return reserved;
}

TEST_CASE("runs take the memory that a larger one left where an engine is told so") {
  Engine sharing;
  sharing.share_arena();
  const std::vector<Bytes> shared = reserved_behind(sharing, {200, 100, 200, 50});
  CHECK(shared[0] >= 200 * 200 * 4);
  CHECK(shared == std::vector<Bytes>(4, shared[0]));
  Engine own;
  const std::vector<Bytes> apart = reserved_behind(own, {200, 100});
  CHECK(apart[0] == shared[0]);
  CHECK(apart[1] < apart[0] / 2);
  sharing.release_arena();
  CHECK(sharing.meter().reserved() == 0);
}

}  // namespace
}  // namespace palimpsest::shared_arena_test
