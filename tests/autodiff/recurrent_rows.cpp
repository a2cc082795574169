#include "autodiff/operations/sequence.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/products.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> recurrent_rows() {
  const auto some = [](Shape shape, std::uint64_t seed) {
    return Tensor::normal(shape, seed, 0, 0.7, DType::f64);
  };
  /// x (2, 3), h (2, 4), the weights and biases of `gates` gates, and the inputs in `more`.
  const auto inputs = [&](std::int64_t gates, std::vector<Tensor> more = {}) {
    std::vector<Tensor> list{some({2, 3}, 101), some({2, 4}, 102), some({3, 4 * gates}, 103),
                             some({4, 4 * gates}, 104), some({4 * gates}, 105)};
    list.insert(list.end(), more.begin(), more.end());
    return list;
  };
  /// The same inputs, with three steps of x.
  const auto sequence = [&](std::int64_t gates, std::vector<Tensor> more = {}) {
    std::vector<Tensor> list = inputs(gates, std::move(more));
    list[0] = some({3, 2, 3}, 108);
    return list;
  };
  const auto parameters = [](std::span<const Var> xs) {
    return CellParameters{.input = xs[2], .hidden = xs[3], .bias = xs[4]};
  };
  return {
      {"tanh", "two steps of rnn_cell", inputs(1),
       [=](auto xs) {
         return rnn_cell(xs[0], rnn_cell(xs[0], xs[1], parameters(xs)), parameters(xs));
       },
       2, false},
      {"relu", "rnn_cell", inputs(1),
       [=](auto xs) { return rnn_cell(xs[0], xs[1], parameters(xs), CellActivation::relu); }, 2,
       false},
      {"slice", "two steps of lstm_cell", inputs(4, {some({2, 4}, 106)}),
       [=](auto xs) {
         const LstmState once = lstm_cell(xs[0], {xs[1], xs[5]}, parameters(xs));
         const LstmState twice = lstm_cell(xs[0], once, parameters(xs));
         return twice.h * twice.c;
       },
       2, false},
      {"slice", "two steps of gru_cell", inputs(3, {some({12}, 107)}),
       [=](auto xs) {
         CellParameters p = parameters(xs);
         p.hidden_bias = xs[5];
         return gru_cell(xs[0], gru_cell(xs[0], xs[1], p), p);
       },
       2, false},
      {"concat", "rnn of a sequence", sequence(1),
       [=](auto xs) {
         const auto [outputs, h] = rnn(xs[0], xs[1], parameters(xs));
         return outputs * h;
       },
       2, false},
      {"concat", "lstm of a sequence", sequence(4, {some({2, 4}, 106)}),
       [=](auto xs) {
         const auto [outputs, state] = lstm(xs[0], {xs[1], xs[5]}, parameters(xs));
         return outputs * state.c;
       },
       2, false},
      {"concat", "gru of a sequence", sequence(3, {some({12}, 107)}),
       [=](auto xs) {
         CellParameters p = parameters(xs);
         p.hidden_bias = xs[5];
         return gru(xs[0], xs[1], p).outputs;
       },
       2, false},
  };
}

}  // namespace palimpsest
