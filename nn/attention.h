#pragma once

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/operations/sequence.h"
#include "nn/linear.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

struct AttentionLayerOptions {
  bool causal = false;
  double dropout = 0;  ///< probability of dropping an attention weight in training
  bool bias = true;
  std::int64_t key_heads = 0;  ///< heads of keys and values; 0: as many as of queries
};

/// Multi-head attention (see `multi_head_attention`) with projections from and to (…, T, width).
struct Attention {
  Linear query, key, value, output;
  std::int64_t heads;
  AttentionLayerOptions options;

  /// Adds the layers "query", "key", "value" and "output", initialized as by Xavier and Glorot,
  /// with biases of 0. Throws `ArgumentError` unless the heads divide the width, and the heads of
  /// keys divide the heads.
  Attention(Parameters parameters, std::int64_t width, std::int64_t head_count,
            const AttentionLayerOptions& given = {});
  /// Self-attention of x (…, T, width). `mask` is that of `AttentionOptions`: it broadcasts to
  /// (…, heads, Tq, Tk). Throws as `multi_head_attention`.
  Var operator()(const Located& x, const Var& mask = {}) const;
  /// Queries (…, Tq, width) attend to keys and values (…, Tk, width).
  Var operator()(const Located& queries, const Var& keys, const Var& values,
                 const Var& mask = {}) const;

 private:
  Parameters mode_;
};

}  // namespace nn
}  // namespace palimpsest
