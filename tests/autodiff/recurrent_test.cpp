#include <cmath>

#include "autodiff/operations/sequence.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"

namespace palimpsest::recurrent_test {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t batch = 60;  // five steps together reach the 256 rows of one product
constexpr std::int64_t features = 3;
constexpr std::int64_t width = 4;

struct Setting {
  Tape tape;
  Var x, h, c;
  CellParameters p;

  Setting(std::int64_t steps, std::int64_t gates) {
    const auto some = [&](Shape shape, std::uint64_t seed) {
      return tape.parameter(Tensor::normal(shape, seed, 0, 0.5, DType::f64));
    };
    x = some({steps, batch, features}, 1);
    h = some({batch, width}, 2);
    c = some({batch, width}, 3);
    p = {some({features, gates * width}, 4), some({width, gates * width}, 5),
         some({gates * width}, 6), some({gates * width}, 7)};
  }

  /// The state after every step, computed step by step.
  template <class Step>
  Var by_cells(Step step) {
    std::vector<Var> outputs;
    for (std::int64_t t = 0; t < x.shape()[0]; ++t) outputs.push_back(step(select(x, 0, t)));
    return stack(outputs, 0);
  }

  void check_same(const Var& sequence, const Var& cells) {
    const std::vector<Var> all{x, h, c, p.input, p.hidden, p.bias, p.hidden_bias};
    check_close(sequence, cells);
    const auto a = gradient(sum(sequence * sequence), all);
    const auto b = gradient(sum(cells * cells), all);
    for (std::size_t i = 0; i < all.size(); ++i) check_close(a[i], b[i]);
  }

  static void check_close(const Var& a, const Var& b) {
    REQUIRE(a.shape() == b.shape());
    const Tensor left = a.value();
    const Tensor right = b.value();
    for (std::int64_t i = 0; i < left.elements(); ++i) {
      REQUIRE(std::abs(left.at(i) - right.at(i)) <= 1e-12 * (1 + std::abs(right.at(i))));
    }
  }
};

TEST_CASE("a sequence is what cells make step by step, with the same gradients") {
  for (const std::int64_t steps : {1, 5, 12}) {
    {
      Setting s(steps, 1);
      for (const CellActivation activation : {CellActivation::tanh, CellActivation::relu}) {
        const auto [outputs, last] = rnn(s.x, s.h, s.p, activation);
        Var h = s.h;
        const auto step = [&](const Var& x) { return h = rnn_cell(x, h, s.p, activation); };
        s.check_same(outputs, s.by_cells(step));
        s.check_same(last, h);
      }
    }
    {
      Setting s(steps, 4);
      const auto [outputs, last] = lstm(s.x, {s.h, s.c}, s.p);
      LstmState state{s.h, s.c};
      s.check_same(outputs, s.by_cells([&](const Var& x) {
        state = lstm_cell(x, state, s.p);
        return state.h;
      }));
      s.check_same(last.h, state.h);
      s.check_same(last.c, state.c);
    }
    {
      Setting s(steps, 3);
      const auto [outputs, last] = gru(s.x, s.h, s.p);
      Var h = s.h;
      s.check_same(outputs, s.by_cells([&](const Var& x) { return h = gru_cell(x, h, s.p); }));
      s.check_same(last, h);
    }
  }
}

TEST_CASE("the products with a sequence are made for many steps at once") {
  Setting s(12, 4);
  lstm(s.x, {s.h, s.c}, s.p);
  int products = 0;
  for (NodeId node = 0; node < s.tape.node_count(); ++node) {
    products += s.tape.operation(node).name == "matmul" ? 1 : 0;
  }
  CHECK(products == 12 + 3);
}

TEST_CASE("sequences of other shapes are refused, with the shapes") {
  Setting s(2, 4);
  const LstmState state{s.h, s.c};
  CHECK_THROWS_WITH(lstm(s.h, {s.h, s.c}, s.p), Contains("[lstm]") && Contains("(60, 4)"));
  CHECK_THROWS_AS(lstm(slice(s.x, 0, {0, 0}), state, s.p), ShapeError);
  CHECK_THROWS_AS(lstm(s.x, {s.h, s.p.bias}, s.p), ShapeError);
  CHECK_THROWS_AS(rnn(s.x, s.h, s.p), ShapeError);
  CHECK_THROWS_AS(gru(s.x, s.h, s.p), ShapeError);
  CHECK_THROWS_AS(gru(Var(), s.h, s.p), TapeError);
}

}  // namespace
}  // namespace palimpsest::recurrent_test
