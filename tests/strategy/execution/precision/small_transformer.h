#pragma once

#include <cmath>
#include <string>

#include "palimpsest.h"

namespace palimpsest {

/// A causal transformer over tokens, normalised before each sublayer, and tokens to learn: each one
/// is determined by the two before it.
class SmallTransformer {
 public:
  struct Sizes {
    std::int64_t batch = 4;
    std::int64_t context = 16;
    std::int64_t width = 32;
    std::int64_t heads = 2;
    std::int64_t tokens = 16;
    int blocks = 2;
  };

  explicit SmallTransformer(const Sizes& sizes) : sizes_(sizes) {
    const std::int64_t width = sizes.width;
    add_matrix(sizes.tokens, width);
    add_matrix(sizes.context, width);
    for (int block = 0; block < sizes.blocks; ++block) {
      add_norm();
      for (int i = 0; i < 4; ++i) add_matrix(width, width);
      add_norm();
      add_matrix(width, 4 * width);
      weights_.push_back(Tensor::zeros({4 * width}));
      add_matrix(4 * width, width);
    }
    add_norm();
    add_matrix(width, sizes.tokens);
  }

  /// The loss over the passages of one step. The weights become the tape's parameters, in order.
  Var loss(Tape& tape, int step) const {
    const Tensor text({sizes_.batch, sizes_.context + 1}, DType::i32);
    std::int64_t before = 1, last = step;
    for (std::int32_t& token : text.data<std::int32_t>()) {
      token = static_cast<std::int32_t>((3 * last + before + 1) % sizes_.tokens);
      before = std::exchange(last, token);
    }
    std::size_t next = 0;
    const auto weight = [&] { return tape.parameter(weights_[next++]); };
    const auto normalized = [&](const Var& x) {
      const Var scale = weight();
      return layer_norm(x, scale, weight());
    };
    const Var tokens = tape.constant(text);
    const Var embedded = embedding(weight(), slice(tokens, 1, {.stop = sizes_.context}));
    Var x = embedded + weight();
    for (int block = 0; block < sizes_.blocks; ++block) {
      const auto scope = tape.scope("block" + std::to_string(block));
      const Var in = normalized(x);
      AttentionParameters projections;
      for (Var* each :
           {&projections.query, &projections.key, &projections.value, &projections.output}) {
        *each = weight();
      }
      x = x + multi_head_attention(in, projections, sizes_.heads, {.causal = true});
      const Var wide = normalized(x);
      const Var inner = weight();
      const Var hidden = gelu(linear(wide, inner, weight()));
      x = x + matmul(hidden, weight());
    }
    const Var last_norm = normalized(x);
    return cross_entropy(matmul(last_norm, weight()), slice(tokens, 1, {.start = 1}));
  }

  /// The weights; the parameters share their storage.
  const std::vector<Tensor>& weights() const { return weights_; }

 private:
  void add_matrix(std::int64_t rows, std::int64_t columns) {
    const double deviation = 1 / std::sqrt(static_cast<double>(rows));
    weights_.push_back(Tensor::normal({rows, columns}, weights_.size(), 0, deviation));
  }
  void add_norm() {
    weights_.push_back(Tensor::ones({sizes_.width}));
    weights_.push_back(Tensor::zeros({sizes_.width}));
  }

  Sizes sizes_;
  std::vector<Tensor> weights_;
};

}  // namespace palimpsest
