#include "autodiff/operations/sequence.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> attention_rows() {
  const auto some = [](Shape shape, std::uint64_t seed) {
    return Tensor::normal(shape, seed, 0, 1, DType::f64);
  };
  const std::vector<Tensor> qkv{some({2, 3, 5, 4}, 81), some({2, 3, 7, 4}, 82),
                                some({2, 3, 7, 6}, 83)};
  const std::vector<Tensor> square{some({2, 6, 3}, 84), some({2, 6, 3}, 85), some({2, 6, 3}, 86)};
  // Enough queries for two blocks, processed in two parts.
  const std::vector<Tensor> blocks{some({70, 2}, 87), some({9, 2}, 88), some({9, 2}, 89)};
  Tensor seen = Tensor::zeros({5, 7}, DType::boolean);
  for (std::size_t i = 0; i < 28; ++i) seen.data<bool>()[i] = i % 3 != 0;  // none in the last row
  const auto with = [](std::vector<Tensor> inputs, Tensor extra) {
    inputs.push_back(std::move(extra));
    return inputs;
  };
  const auto attend = [](const AttentionOptions& options) {
    return [options](std::span<const Var> xs) {
      AttentionOptions all = options;
      if (xs.size() > 3) all.mask = xs[3];
      return scaled_dot_product_attention(xs[0], xs[1], xs[2], all);
    };
  };
  const auto slopes = [](const Differentiable& f) {
    return [f](std::span<const Var> xs) {
      const Var y = f(xs);
      Var total = sum(y);
      for (const Var& slope : gradient(y * y, xs.first(3))) total = total + sum(slope * slope);
      return total;
    };
  };
  const AttentionOptions causal{.causal = true};
  const AttentionOptions dropping{.causal = true, .scale = 0.7, .dropout = 0.3};
  const std::vector<Tensor> projections{some({6, 8}, 91), some({6, 8}, 92), some({6, 4}, 93),
                                        some({4, 5}, 94), some({8}, 95),    some({5}, 96)};
  std::vector<Tensor> heads{some({2, 3, 6}, 97)};
  heads.insert(heads.end(), projections.begin(), projections.end());
  // Four heads of queries for two heads of keys; one block has the queries of two heads.
  const std::vector<Tensor> grouped{some({2, 4, 3, 2}, 61), some({2, 2, 5, 2}, 62),
                                    some({2, 2, 5, 3}, 63)};
  const std::vector<Tensor> one_for_all{some({3, 30, 2}, 64), some({1, 4, 2}, 65),
                                        some({1, 4, 2}, 66)};
  std::vector<Tensor> shared{some({2, 3, 6}, 67), some({6, 8}, 68), some({6, 4}, 69),
                             some({6, 4}, 70), some({8, 5}, 71)};
  return {
      {"attention", "grouped", grouped, attend({})},
      {"attention", "grouped, causal", grouped, attend(causal)},
      {"attention", "grouped, added mask", with(grouped, some({4, 3, 5}, 72)), attend({})},
      {"attention", "grouped, dropping", grouped, attend(dropping)},
      {"attention", "one head of keys for all, causal", one_for_all, attend(causal)},
      {"attention", "grouped, as multi_head_attention", shared,
       [](auto xs) {
         return multi_head_attention(
             xs[0], {.query = xs[1], .key = xs[2], .value = xs[3], .output = xs[4], .key_heads = 2},
             4);
       }},
      {"attention_adjoint", "grouped", grouped, slopes(attend(causal)), 1, false},
      {"attention_adjoint", "one head of keys for all", one_for_all, slopes(attend({})), 1, false},
      {"concat",
       "rotary_embedding",
       {some({2, 3, 4}, 73)},
       [](auto xs) { return rotary_embedding(xs[0], {.offset = 2}); }},
      {"concat",
       "rotary_embedding, interleaved, positions",
       {some({2, 3, 6}, 74), some({2, 3}, 75)},
       [](auto xs) {
         const Var moved =
             rotary_embedding(xs[0], {.positions = xs[1], .base = 100, .interleaved = true});
         return rotary_embedding(moved, {.interleaved = true});
       }},
      {"concat",
       "rotary_embedding, no rows",
       {some({0, 2}, 76)},
       [](auto xs) { return rotary_embedding(xs[0]); }},
      {"attention", "plain", qkv, attend({})},
      {"attention", "causal", square, attend(causal)},
      {"attention", "causal, more keys than queries", qkv, attend(causal)},
      {"attention", "causal, more queries than keys", blocks, attend(causal)},
      {"attention", "a scale", blocks, attend({.scale = 0.3})},
      {"attention", "mask of bools, a blind query", with(qkv, seen), attend({})},
      {"attention", "added mask for each head", with(qkv, some({3, 1, 7}, 98)), attend(causal)},
      {"attention", "dropping, a scale", square, attend(dropping)},
      {"attention", "dropping, in blocks", blocks, attend({.dropout = 0.5})},
      {"attention", "no keys", {some({2, 3}, 1), some({0, 3}, 1), some({0, 4}, 1)}, attend({})},
      {"attention", "no queries", {some({0, 3}, 1), some({2, 3}, 1), some({2, 4}, 1)}, attend({})},
      {"attention_adjoint", "plain", qkv, slopes(attend({})), 1, false},
      {"attention_adjoint", "masked", with(qkv, seen), slopes(attend(causal)), 1, false},
      {"attention_adjoint", "added mask", with(square, some({6, 6}, 99)), slopes(attend({})), 1,
       false},
      {"attention_adjoint", "dropping", square, slopes(attend(dropping)), 1, false},
      {"attention", "four heads, as multi_head_attention", heads,
       [](auto xs) {
         const AttentionParameters parameters{.query = xs[1],
                                              .key = xs[2],
                                              .value = xs[3],
                                              .output = xs[4],
                                              .query_bias = xs[5],
                                              .output_bias = xs[6]};
         return multi_head_attention(xs[0], parameters, 4, {.causal = true});
       },
       2, false},
  };
}

}  // namespace palimpsest
