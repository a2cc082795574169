// The functions and operators of tensors, which compute at once.
#include "autodiff/operations/tensor_operators.h"

#include <thread>
#include <utility>

#include "autodiff/gradcheck.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/sequence.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::tensor_functions_test {
namespace {

/// The bits of `f` at tensors are those of its recorded value.
template <class F, class... T>
void check_recorded(F f, const T&... tensors) {
  Tape tape;
  const Tensor at_once = f(tensors...);
  CHECK(same_bits(at_once, f(tape.constant(tensors)...).value()));
}

/// Likewise, and with a `Var` for one of the two tensors.
template <class F>
void check_mixed(F f, const Tensor& a, const Tensor& b) {
  check_recorded(f, a, b);
  Tape tape;
  const Tensor value = f(a, b);
  CHECK(same_bits(f(tape.constant(a), b).value(), value));
  CHECK(same_bits(f(a, tape.constant(b)).value(), value));
}

TEST_CASE("attention and recurrent cells of tensors give the bits of the recorded functions") {
  const auto normal = [](const Shape& shape, std::uint64_t seed) {
    return Tensor::normal(shape, seed, 0, 0.5);
  };
  const Tensor q = normal({2, 3, 4}, 1), k = normal({2, 5, 4}, 2), mask = normal({3, 5}, 3) > 0;
  check_recorded([](const auto& a, const auto& b,
                    const auto& m) { return scaled_dot_product_attention(a, b, b, {.mask = m}); },
                 q, k, mask);
  check_recorded(
      [](const auto& a, const auto& w, const auto& b) {
        return multi_head_attention(
            a, {.query = w, .key = w, .value = w, .output = w, .key_bias = b}, 2, {.causal = true});
      },
      q, normal({4, 4}, 4), normal({4}, 5));
  check_recorded(
      [](const auto& a, const auto& w) {
        return multi_head_attention(a, a, a, {w, w, w, w}, 2, {.scale = 0.3});
      },
      q, normal({4, 4}, 4));
  check_recorded(
      [](const auto& a, const auto& at) { return rotary_embedding(a, {.positions = at}); }, q,
      Tensor::from({3., 5., 8.}, {3}));
  const Tensor x = normal({6, 2, 3}, 6), step = normal({2, 3}, 7), h = normal({2, 4}, 8);
  const auto weights = [&](std::int64_t gates) {
    return std::pair(normal({3, 4 * gates}, 9), normal({4, 4 * gates}, 10));
  };
  const auto [one_in, one] = weights(1);
  const auto [three_in, three] = weights(3);
  const auto [four_in, four] = weights(4);
  check_recorded([](const auto& a, const auto& state, const auto& w,
                    const auto& u) { return rnn_cell(a, state, {w, u}, CellActivation::relu); },
                 step, h, one_in, one);
  check_recorded([](const auto& a, const auto& state, const auto& w,
                    const auto& u) { return gru_cell(a, state, {w, u}); },
                 step, h, three_in, three);
  check_recorded([](const auto& a, const auto& state, const auto& w,
                    const auto& u) { return lstm_cell(a, {state, state}, {w, u}).c; },
                 step, h, four_in, four);
  check_recorded(
      [](const auto& a, const auto& state, const auto& w, const auto& u) {
        return concat({rnn(a, state, {w, u}).outputs, unsqueeze(rnn(a, state, {w, u}).h, 0)}, 0);
      },
      x, h, one_in, one);
  check_recorded([](const auto& a, const auto& state, const auto& w,
                    const auto& u) { return gru(a, state, {w, u}).outputs; },
                 x, h, three_in, three);
  check_recorded(
      [](const auto& a, const auto& state, const auto& w, const auto& u) {
        const auto made = lstm(a, {state, state}, {.input = w, .hidden = u});
        return concat({made.outputs, unsqueeze(made.state.h, 0), unsqueeze(made.state.c, 0)}, 0);
      },
      x, h, four_in, four);
  check_mixed([](const auto& a, const auto& b) { return scaled_dot_product_attention(a, b, b); },
              normal({5, 4}, 1), normal({5, 4}, 2));
  CHECK_THROWS_AS(gru_cell(step, h, {one_in, one}), ShapeError);
  CHECK_THROWS_AS(lstm_cell(step, {h, {}}, {four_in, four}), ArgumentError);
}

TEST_CASE("counts of tensors take weights that are tensors") {
  const Tensor positions = Tensor::from<std::int64_t>({0, 2, 2, 1}, {4});
  const Tensor weights = Tensor::from({0.5, 1., 2., 4.}, {4});
  CHECK(same_bits(bincount(positions, {.weights = weights}), Tensor::from({0.5, 4., 3.}, {3})));
  const TensorHistogram counted = histogram(weights, 2, {.range = {{0, 4}}, .weights = weights});
  CHECK(same_bits(counted.counts, Tensor::from({1.5, 6.}, {2})));
}

TEST_CASE("functions of one tensor give the bits of the recorded functions") {
  const Tensor matrix = Tensor::normal({4, 6}, 1);
  const Tensor truth = matrix > 0;
  const Tensor square_matrix = Tensor::normal({5, 5}, 2, 0, 1, DType::f64);
  check_recorded([](const auto& x) { return exp(x); }, matrix);
  check_recorded([](const auto& x) { return gelu(x); }, matrix.to(DType::bf16));
  check_recorded([](const auto& x) { return clamp(x, -0.5, 0.5); }, matrix);
  check_recorded([](const auto& x) { return pow(x, 3); }, matrix);
  check_recorded([](const auto& x) { return pow(2.0, x); }, matrix);
  check_recorded([](const auto& x) { return sum(x); }, matrix);
  check_recorded([](const auto& x) { return sum(x, {0}, true); }, matrix);
  check_recorded([](const auto& x) { return mean(x, {-1}); }, matrix);
  check_recorded([](const auto& x) { return argmax(x, {1}); }, matrix);
  check_recorded([](const auto& x) { return variance(x, {1}); }, matrix);
  check_recorded([](const auto& x) { return norm(x, 3); }, matrix);
  check_recorded([](const auto& x) { return softmax(x, 0); }, matrix);
  check_recorded([](const auto& x) { return reshape(x, {3, -1}); }, matrix);
  check_recorded([](const auto& x) { return transpose(x); }, matrix);
  check_recorded([](const auto& x) { return slice(x, {{1, 3}, {.step = -2}}); }, matrix);
  check_recorded([](const auto& x) { return x[{1, Slice{1, 4}}]; }, matrix);
  check_recorded([](const auto& x) { return x[-1]; }, matrix);
  check_recorded([](const auto& x) { return concat({x, x}, 0); }, matrix);
  check_recorded([](const auto& x) { return stack({x, x}, 1); }, matrix);
  check_recorded([](const auto& x) { return split(x, {2, 4}, 1)[1]; }, matrix);
  check_recorded([](const auto& x) { return chunk(x, 2, 0)[1]; }, matrix);
  check_recorded([](const auto& x) { return einsum("ij,kj->ik", {x, x}); }, matrix);
  check_recorded([](const auto& x) { return any(x); }, truth);
  check_recorded([](const auto& x) { return !x; }, truth);
  check_recorded([](const auto& x) { return cast(x, DType::i32); }, matrix);
  check_recorded([](const auto& x) { return layer_norm(x); }, matrix);
  check_recorded([](const auto& x) { return det(x); }, square_matrix);
  check_recorded([](const auto& x) { return qr(x).q; }, square_matrix);
  check_recorded([](const auto& x) { return qr(x).r; }, square_matrix);
  check_recorded([](const auto& x) { return eigh(x).values; }, square_matrix);
  check_recorded([](const auto& x) { return where(x, 1.0, 0.0); }, truth);
  check_recorded([](const auto& x) { return one_hot(x, 4); }, Tensor::arange(4));
}

TEST_CASE("functions of several values take tensors and Vars in any combination") {
  const Tensor matrix = Tensor::normal({4, 6}, 1);
  const Tensor truth = matrix > 0;
  const Tensor square_matrix = Tensor::normal({5, 5}, 2, 0, 1, DType::f64);
  const Tensor row = Tensor::normal({6}, 3);
  const Tensor other = Tensor::normal({4, 6}, 4, 0, 1, DType::f64);
  check_mixed([](const auto& a, const auto& b) { return a + b; }, matrix, row);
  check_mixed([](const auto& a, const auto& b) { return a - b; }, matrix, other);
  check_mixed([](const auto& a, const auto& b) { return a * b; }, row, matrix);
  check_mixed([](const auto& a, const auto& b) { return a / b; }, matrix, row);
  check_mixed([](const auto& a, const auto& b) { return a > b; }, matrix, row);
  check_mixed([](const auto& a, const auto& b) { return a >= b; }, matrix, other);
  check_mixed([](const auto& a, const auto& b) { return a < b; }, matrix, row);
  check_mixed([](const auto& a, const auto& b) { return a <= b; }, matrix, row);
  check_mixed([](const auto& a, const auto& b) { return a && b; }, truth, truth[0]);
  check_mixed([](const auto& a, const auto& b) { return a || b; }, truth, truth[0]);
  check_mixed([](const auto& a, const auto& b) { return maximum(a, b); }, matrix, row);
  check_mixed([](const auto& a, const auto& b) { return equal(a, b); }, matrix, row);
  check_mixed([](const auto& a, const auto& b) { return pow(abs(a), b); }, matrix, row);
  check_mixed([](const auto& a, const auto& b) { return where(a, b, 0.5); }, truth, matrix);
  check_mixed([](const auto& a, const auto& b) { return matmul(a, b, {.transpose_b = true}); },
              matrix, other);
  check_mixed([](const auto& a, const auto& b) { return linear(a, b); }, matrix,
              Tensor::normal({6, 2}, 5));
  check_mixed([](const auto& a, const auto& b) { return linear(a, b, Tensor::ones({2})); }, matrix,
              Tensor::normal({6, 2}, 5));
  check_mixed([](const auto& a, const auto& b) { return mse(a, b); }, matrix, other);
  check_mixed([](const auto& a, const auto& b) { return cross_entropy(a, b); }, matrix,
              Tensor::arange(4));
  check_mixed([](const auto& a, const auto& b) { return index_select(a, 0, b); }, matrix,
              Tensor::arange(2));
  check_mixed([](const auto& a, const auto& b) { return solve(a, b); }, square_matrix,
              square_matrix[0]);
  check_mixed([](const auto& a, const auto& b) { return layer_norm(a, b); }, matrix, row);
  check_recorded([](const auto& a, const auto& b) { return a[{Slice{}, b}]; }, matrix,
                 Tensor::arange(3));
}

TEST_CASE("lists mix tensors and Vars") {
  const Tensor a = Tensor::normal({4, 6}, 1);
  const Tensor b = Tensor::normal({4, 6}, 2);
  const Tensor places = Tensor::from<std::int64_t>({2, 0}, {2});
  check_mixed([](const auto& x, const auto& y) { return concat({x, y}, 0); }, a, b);
  check_mixed([](const auto& x, const auto& y) { return stack({x, y, x}, 1); }, a, b);
  check_mixed([](const auto& x, const auto& y) { return einsum("ij,kj->ik", {x, y}); }, a, b);
  check_mixed([](const auto& x, const auto& y) { return meshgrid({x, y})[1]; }, a[0], b[1]);
  check_mixed([](const auto& x, const auto& y) { return block_diag({x, y}); }, a, b);
  check_mixed([](const auto& x, const auto& y) { return multi_dot({x, y}); }, a, transpose(b));
  check_mixed([](const auto& x, const auto& y) { return index(x, {y}); }, a, places);
  check_mixed([](const auto& x, const auto& y) { return index_put(x, {y}, y[0] * 0.5f); }, a,
              places);
  Tape tape;
  const Var x = tape.parameter(a);
  CHECK(same_bits(gradient(concat({b, x * b}, 0), x).value(), b));
  const auto undefined = [&] { concat({x, Tensor()}, 0); };
  check_error(undefined, {"concat", "empty tensor", "tensor_functions_test.cpp"});
  check_error([&] { concat({VarOrTensor(a), VarOrTensor(b)}, 0); }, {"concat", "a Var"});
}

TEST_CASE("random functions of tensors take a seed") {
  const RandomSeed seed{7};
  const Tensor rates = Tensor::uniform({40}, 3, 0.5, 4);
  const auto recorded = [&](auto f) {
    Tape tape;
    tape.set_seed(7);
    return f(tape).value();
  };
  CHECK(same_bits(uniform(seed, {3, 4}), recorded([](Tape& t) { return uniform(t, {3, 4}); })));
  CHECK(same_bits(randperm(seed, 9), recorded([](Tape& t) { return randperm(t, 9); })));
  CHECK(same_bits(poisson(seed, rates),
                  recorded([&](Tape& t) { return poisson(t.constant(rates)); })));
  CHECK(same_bits(beta(seed, rates, rates), recorded([&](Tape& t) {
                    const Var a = t.constant(rates);
                    return beta(a, t.constant(rates));
                  })));
  CHECK_FALSE(same_bits(normal(seed, {5}), normal(RandomSeed{8}, {5})));
  check_error([&] { bernoulli(seed, {2}, 2); }, {"bernoulli", "tensor_functions_test.cpp"});
}

TEST_CASE("operators with numbers") {
  const Tensor matrix = Tensor::normal({4, 6}, 1);
  check_recorded([](const auto& x) { return 2 * x + 1; }, matrix);
  check_recorded([](const auto& x) { return 1 - x / 2; }, matrix);
  check_recorded([](const auto& x) { return 2 / -x - 1; }, matrix);
  check_recorded([](const auto& x) { return 1 + x * 3; }, Tensor::arange(5));
  check_recorded([](const auto& x) { return (x > 0.5) || (0.5 > x); }, matrix);
  check_recorded([](const auto& x) { return (x >= 0.5) && (0.5 <= x); }, matrix);
  check_recorded([](const auto& x) { return (x < 0.5) && (0.5 < x); }, matrix);
  check_recorded([](const auto& x) { return (x <= 0.5) || (0.5 >= x); }, matrix);
}

TEST_CASE("assigning operators change the elements of a tensor and keep its dtype") {
  Tensor t = Tensor::vector({1, 2, 3});
  const Tensor alias = t;
  t += Tensor::from<double>({1, 1, 1}, {3});
  t *= 2;
  t -= Tensor::scalar(1, DType::f64);
  t /= Tensor::vector({3, 5, 7});
  t += 1;
  t -= 0.5;
  t /= 0.5;
  t *= Tensor::ones({3}, DType::i32);
  CHECK(same_bits(alias, Tensor::vector({3, 3, 3})));
  CHECK(t.raw() == alias.raw());
  t += t;
  CHECK(same_bits(alias, Tensor::vector({6, 6, 6})));

  check_error([&] { t += Tensor::ones({2, 3}); },
              {"[add]", "f32 (3) cannot take a result of f32 (2, 3)", "tensor_functions_test.cpp"});
  Tensor whole = Tensor::arange(3);
  check_error([&] { whole *= 0.5; }, {"[multiply]", "i64 (3) cannot take a result of f32 (3)"});
  CHECK(same_bits(whole, Tensor::arange(3)));
}

TEST_CASE(
    "a tensor is a constant in a recorded operation, even if a parameter shares its storage") {
  Tape tape;
  const Tensor t = Tensor::vector({1, 2, 3});
  const Var x = tape.parameter(t);
  CHECK(same_bits(gradient(sum(x * t), x).value(), t));
  Var y = x;
  y *= t;
  y += t;
  y -= t;
  y /= t;
  CHECK(same_bits(y.value(), t));
  const std::uint32_t nodes = tape.node_count();
  static_cast<void>(t + t);
  CHECK(tape.node_count() == nodes);

  const Tensor inputs[] = {Tensor::normal({2, 3}, 1, 0, 1, DType::f64)};
  const Tensor weight = Tensor::normal({3, 4}, 2, 0, 1, DType::f64);
  const auto f = [&](std::span<const Var> v) {
    const Var h = tanh(linear(v[0], weight, weight[0]));
    return mse(1 - h * weight[1], Tensor::ones({2, 4}, DType::f64));
  };
  const GradcheckResult result = gradcheck(f, inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("views share the storage of a tensor, other results do not") {
  const Tensor matrix = Tensor::normal({4, 6}, 1);
  CHECK(reshape(matrix, {24}).raw() == matrix.raw());
  CHECK(matrix[0].raw() != matrix.raw());
  CHECK(matrix[new_axis].raw() != matrix.raw());
  CHECK(matrix[ellipsis].raw() != matrix.raw());
  CHECK(matrix[{}].raw() != matrix.raw());
  CHECK((matrix + 0).raw() != matrix.raw());
}

TEST_CASE("functions of tensors throw what recorded ones do, with the user's line") {
  const Tensor matrix = Tensor::normal({4, 6}, 1);
  check_error([&] { static_cast<void>(matrix + Tensor::ones({5})); },
              {"[add]", "(4, 6) and (5)", "tensor_functions_test.cpp"});
  check_error([&] { matmul(matrix, matrix); }, {"[matmul]", "tensor_functions_test.cpp"});
  check_error([] { exp(Tensor::arange(2)); }, {"[exp]", "i64 (2)", "tensor_functions_test.cpp"});
  check_error([] { cholesky(Tensor::zeros({2, 2})); }, {"[cholesky]", "tensor_functions_test.cpp"});
  check_error([] { sum(Tensor()); }, {"[sum]", "an argument is an empty tensor"});
  check_error([] { Tensor::ones({2})[2]; }, {"[select]", "tensor_functions_test.cpp"});
  Tape tape;
  check_error([&] { static_cast<void>(tape.constant(matrix) + Tensor()); },
              {"[add]", "an argument is an empty tensor", "tensor_functions_test.cpp"});
  check_error([&] { matmul(Var(), matrix); }, {"[matmul]", "a Var without a value"});
}

TEST_CASE("threads compute with tensors independently") {
  const Tensor matrix = Tensor::normal({4, 6}, 1);
  const Tensor expected = sum(exp(matrix * 2));
  std::vector<Tensor> results(4);
  std::vector<std::thread> threads;
  for (Tensor& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) result = sum(exp(matrix * 2));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& result : results) CHECK(same_bits(result, expected));
}

TEST_CASE("results that were not asked for are undefined") {
  const TensorUnique runs = unique_consecutive(Tensor::vector({1, 1, 2, 1}));
  CHECK(same_bits(runs.values, Tensor::vector({1, 2, 1})));
  CHECK(!runs.inverse.defined());
  CHECK(!runs.counts.defined());
  CHECK(same_bits(unique(Tensor::vector({3, 1, 3})).values, Tensor::vector({1, 3})));
}

TEST_CASE("metrics of tensors need no loop") {
  const Tensor scores = Tensor::matrix({{1, 3, 2}, {4, 0, 1}, {0, 1, 2}});
  const Tensor answers = Tensor::from<std::int64_t>({1, 0, 0}, {3});
  const Tensor right = equal(argmax(scores, 1), answers);
  const double accuracy = mean(cast(right, DType::f64)).item();
  CHECK(accuracy == 2.0 / 3);
}

}  // namespace
}  // namespace palimpsest::tensor_functions_test
