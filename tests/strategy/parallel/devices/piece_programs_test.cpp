#include "strategy/parallel/partition/piece_programs.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/unary.h"
#include "strategy/loops/scan.h"
#include "tests/catch.h"
#include "tests/checkpoint/counted_planner.h"

namespace palimpsest::piece_programs_test {
namespace {

Piece six_products() {
  Piece piece;
  const Var x = piece.tape->constant(Tensor::ones({16, 16}));
  Var y = x;
  for (int k = 0; k < 6; ++k) y = matmul(exp(y), y);
  piece.wanted = {{x.id()}, {y.id()}, piece.tape->node_count()};
  return piece;
}

TEST_CASE("pieces: what a budget is too small for is looked for once") {
  const auto planner = std::make_shared<tests::CountedPlanner>(false);
  PieceOptions options{.run = {.planner = planner}, .threads = 1, .has_fraction = false};
  options.all_pieces = true;
  PiecePrograms programs;
  const PiecePrograms::Session session(programs);
  const auto refusal = [&](Bytes budget) {
    const OrRefusal<BufferProgramPtr> made = programs.plan(six_products(), options, budget);
    return made ? Bytes{0} : made.refusal().smallest_feasible();
  };
  const Bytes smallest = refusal(64);
  REQUIRE(smallest > 64);
  const int times = planner->times;
  REQUIRE(times > 0);
  const Bytes kept = programs.bytes();
  CHECK(refusal(64) == smallest);
  CHECK(planner->times == times);
  CHECK(programs.bytes() == kept);
  CHECK(refusal(128) == smallest);
  CHECK(planner->times > times);
  CHECK(programs.least(six_products(), options) == smallest);
  CHECK(programs.plan(six_products(), options, smallest).take()->workspace() <= smallest);
}

TEST_CASE("pieces: a planner that ignores the budget is asked once in a session") {
  const auto planner = std::make_shared<tests::CountedPlanner>(true);
  PieceOptions options{.run = {.planner = planner}, .threads = 1, .has_fraction = false};
  options.all_pieces = true;
  PiecePrograms programs;
  int times = 0;
  {
    const PiecePrograms::Session session(programs);
    const Bytes least = programs.least(six_products(), options);
    times = planner->times;
    CHECK(times > 0);
    for (const Bytes more : {0, 64, 128}) programs.plan(six_products(), options, least + more);
    CHECK(planner->times == times);
  }
  const PiecePrograms::Session session(programs);
  CHECK_FALSE(programs.plan(six_products(), options, 32));
  CHECK(planner->times > times);
}

TEST_CASE("pieces: one that differs in a constant is planned as it is by itself") {
  const auto scaled = [](double factor) {
    Piece piece;
    const Var x = piece.tape->constant(Tensor::ones({16, 16}));
    const Var y = matmul(exp(x), x) * factor;
    piece.wanted = {{x.id()}, {y.id()}, piece.tape->node_count()};
    return piece;
  };
  const PieceOptions options{.run = {}, .threads = 1, .has_fraction = false};
  PiecePrograms programs;
  const PiecePrograms::Session session(programs);
  for (const double factor : {0.5, 1.0, 0.5, 2.0, 1.0}) {
    PiecePrograms own;
    const BufferProgramPtr alone = own.plan(scaled(factor), options, unlimited).take();
    for (const Bytes budget : {unlimited, unlimited - 64}) {
      const BufferProgramPtr made = programs.plan(scaled(factor), options, budget).take();
      CHECK(made->computed() == alone->computed());
      CHECK(made->workspace() == alone->workspace());
    }
  }
}

TEST_CASE("pieces: a refusal of a piece with a loop is kept, and the same on another tape") {
  const auto planner = std::make_shared<tests::CountedPlanner>(false);
  PieceOptions options{.run = {.planner = planner}, .threads = 1, .has_fraction = false};
  options.all_pieces = true;
  PiecePrograms programs;
  const PiecePrograms::Session session(programs);
  const auto with_loop = [] {
    Piece piece = six_products();
    const Var y(*piece.tape, piece.wanted.results[0]);
    const Var z = scan(y, 3, [](const Var& x, const StepNumber&) { return exp(x); });
    piece.wanted.results = {z.id()};
    piece.wanted.backward_begins = piece.tape->node_count();
    return piece;
  };
  const Piece piece = with_loop();
  const Bytes smallest = programs.least(piece, options);
  const int times = planner->times;
  CHECK(programs.least(piece, options) == smallest);
  CHECK(planner->times == times);
  CHECK(programs.least(with_loop(), options) == smallest);
  CHECK(programs.plan(piece, options, smallest).take()->workspace() <= smallest);
}

}  // namespace
}  // namespace palimpsest::piece_programs_test
