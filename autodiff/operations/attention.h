#pragma once

#include <optional>

#include "autodiff/var.h"

namespace palimpsest {

struct AttentionOptions {
  /// What each query may see of the keys, broadcast to (…, Tq, Tk): bool, true where it may; or
  /// floating, added to the scores. Empty: everything.
  Var mask = {};
  /// Query i sees key j only if j ≤ i + Tk − Tq: with as many keys as queries, those up to its own.
  bool causal = false;
  /// Factor of the scores; 1/√d by default.
  std::optional<double> scale = std::nullopt;
  /// Probability with which each attention weight is dropped, the others scaled up.
  double dropout = 0;
};

/// softmax(scale·q·kᵀ + mask)·v for q (…, Tq, d), k (…, Tk, d) and v (…, Tk, dv), the axes in
/// front, batch and heads, equal; a query that sees nothing gives zeros. The result is (…, Tq, dv).
///
/// Computed a block of queries at a time: the workspace of a thread is some dozen rows of Tk
/// scores, and nothing but q, k, v and the mask is kept for the adjoint, which makes the blocks
/// again (after Dao et al., 2022). Second derivatives, and the derivative of a mask, go through
/// recorded matrices of (…, Tq, Tk). Throws `ShapeError`, `DTypeError`; `ArgumentError` for a
/// dropout outside [0, 1).
Var scaled_dot_product_attention(const Var& q, const Var& k, const Var& v,
                                 const AttentionOptions& options = {},
                                 Where where = Where::current());

/// The projections of multi-head attention: weights (in, out), applied as x·weight + bias; biases
/// may be empty.
struct AttentionParameters {
  Var query, key, value, output;
  Var query_bias = {}, key_bias = {}, value_bias = {}, output_bias = {};
};

/// Attention of `heads` heads (Vaswani et al., 2017): queries (…, Tq, E), keys and values
/// (…, Tk, …) are projected, cut along the last axis into heads, attended to by
/// `scaled_dot_product_attention`, joined and projected. A mask broadcasts to (…, heads, Tq, Tk).
/// Throws `ArgumentError` unless `heads` divides the projected widths.
Var multi_head_attention(const Var& queries, const Var& keys, const Var& values,
                         const AttentionParameters& parameters, std::int64_t heads,
                         const AttentionOptions& options = {}, Where where = Where::current());
/// Self-attention: queries, keys and values are all x.
Var multi_head_attention(const Var& x, const AttentionParameters& parameters, std::int64_t heads,
                         const AttentionOptions& options = {}, Where where = Where::current());

}  // namespace palimpsest
