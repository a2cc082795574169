#include "autodiff/operations/random.h"

#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "tests/catch.h"

namespace palimpsest::random_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;

TEST_CASE("random values have the distribution asked for") {
  Tape tape;
  tape.set_seed(3);
  const Shape many{200000};
  const DType dtype = GENERATE(DType::f64, DType::f32);
  const Var u = uniform(tape, many, -1, 3, dtype);
  CHECK_THAT(mean(u).item(), WithinAbs(1, 0.02));
  CHECK_THAT(variance(u).item(), WithinAbs(16.0 / 12, 0.02));
  CHECK(min(u).item() >= -1);
  CHECK(max(u).item() < 3);
  const Var z = normal(tape, many, 2, 0.5, dtype);
  CHECK_THAT(mean(z).item(), WithinAbs(2, 0.01));
  CHECK_THAT(standard_deviation(z).item(), WithinAbs(0.5, 0.01));
  const Var b = bernoulli(tape, many, 0.3, dtype);
  CHECK_THAT(mean(b).item(), WithinAbs(0.3, 0.01));
  CHECK(mean(bernoulli(tape, many, 1, dtype)).item() == 1);
  CHECK(mean(bernoulli(tape, many, 0, dtype)).item() == 0);
  CHECK(sum(cast(bernoulli(tape, {100}, 0.5, DType::boolean), DType::i32)).item<int>() < 80);
}

TEST_CASE("a tape at a generation draws what a tape draws that was cleared so often") {
  const auto numbers = [](Tape& tape) { return uniform(tape, {6}).value().clone(); };
  Tape cleared;
  cleared.set_seed(5);
  for (int i = 0; i < 3; ++i) cleared.clear();
  const Tensor expected = numbers(cleared);
  Tape tape;
  CHECK_FALSE(same_bits(numbers(tape), expected));
  CHECK_THROWS_AS(tape.set_generation(3), TapeError);
  tape.clear();
  tape.set_seed(5);
  tape.set_generation(3);
  CHECK(tape.generation() == 3);
  CHECK(same_bits(numbers(tape), expected));
  tape.clear();
  cleared.clear();
  CHECK(same_bits(numbers(tape), numbers(cleared)));
}

TEST_CASE("each random node has its own stream, given by seed, generation and place") {
  const auto draw = [](std::uint64_t seed, int clears, int place) {
    Tape tape;
    tape.set_seed(seed);
    for (int i = 0; i < clears; ++i) tape.clear();
    Var result;
    for (int i = 0; i <= place; ++i) result = uniform(tape, {64});
    return result.value();
  };
  CHECK(same_bits(draw(1, 0, 0), draw(1, 0, 0)));
  CHECK_FALSE(same_bits(draw(1, 0, 0), draw(2, 0, 0)));
  CHECK_FALSE(same_bits(draw(1, 0, 0), draw(1, 1, 0)));
  CHECK_FALSE(same_bits(draw(1, 0, 0), draw(1, 0, 1)));
}

TEST_CASE("dropout keeps the mean, and its adjoint has its mask") {
  Tape tape;
  const double p = GENERATE(0.1, 0.5, 0.9);
  const Var x = tape.parameter(Tensor::ones({100000}));
  const Var y = dropout(x, p);
  CHECK_THAT(mean(y).item(), WithinAbs(1, 0.05));
  CHECK_THAT(max(y).item(), WithinAbs(1 / (1 - p), 1e-5));
  CHECK(min(y).item() == 0);
  CHECK(same_bits(gradient(y, x).value(), y.value()));
  tape.drop(y.id());
  CHECK(same_bits(gradient(y, x).value(), y.value()));
}

TEST_CASE("which elements dropout takes does not depend on the dtype") {
  const auto dropped = [](DType dtype) {
    Tape tape;
    return dropout(tape.constant(Tensor::ones({500}, dtype)), 0.5).value().to(DType::boolean);
  };
  CHECK(same_bits(dropped(DType::f64), dropped(DType::f32)));
  CHECK(same_bits(dropped(DType::f64), dropped(DType::bf16)));
}

TEST_CASE("dropout at its ends, and what random operations refuse") {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({3}));
  CHECK(dropout(x, 0) == x);
  CHECK(dropout(x, 0.5, false) == x);
  CHECK(sum(dropout(x, 1)).item() == 0);
  CHECK(sum(gradient(dropout(x, 1), x)).item() == 0);
  CHECK_THROWS_WITH(dropout(x, 1.5), Contains("[dropout] p = 1.5"));
  CHECK_THROWS_AS(dropout(x, -0.1), ArgumentError);
  CHECK_THROWS_AS(dropout(x, std::nan("")), ArgumentError);
  CHECK_THROWS_AS(bernoulli(tape, {2}, 2), ArgumentError);
  CHECK_THROWS_AS(uniform(tape, {2}, 1, 1), ArgumentError);
  CHECK_THROWS_AS(uniform(tape, {2}, -std::numeric_limits<double>::infinity(), 0), ArgumentError);
  CHECK_THROWS_AS(uniform(tape, {2}, -1e308, 1e308, DType::f64), ArgumentError);
  CHECK_THROWS_AS(normal(tape, {2}, 0, -1), ArgumentError);
  CHECK_THROWS_WITH(uniform(tape, {2}, 0, 1, DType::i64), Contains("[uniform]") && Contains("i64"));
  CHECK_THROWS_AS(dropout(tape.constant(Tensor::ones({2}, DType::i32)), 0.5), DTypeError);
}

}  // namespace
}  // namespace palimpsest::random_test
