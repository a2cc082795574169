#pragma once

#include <optional>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

struct AttentionOptions {
  /// Which keys each query may see, broadcast to (…, Tq, Tk). A bool mask is true where it may. A
  /// floating mask has the compute dtype of q, and is added to the scores. Empty: all keys.
  Var mask = {};
  /// Query i sees key j only if j ≤ i + Tk − Tq. With equally many keys and queries: keys up to its
  /// own.
  bool causal = false;
  /// Factor of the scores; 1/√d by default.
  std::optional<double> scale = std::nullopt;
  /// Probability of dropping each attention weight; the others are scaled up.
  double dropout = 0;
};

/// softmax(scale·q·kᵀ + mask)·v for q (…, Tq, d), k (…, Tk, d) and v (…, Tk, dv); the result is
/// (…, Tq, dv). The leading axes (batch and heads) must be equal. A query that sees no key gives
/// zeros.
///
/// The heads of k and v, along the axis before T, may also be fewer than those of q. Each is then
/// shared by as many adjacent heads of q, and no keys are copied (grouped-query attention, Ainslie
/// et al., 2023).
///
/// The kernel processes a block of queries at a time; the workspace of a thread is some dozen rows
/// of Tk scores. Only q, k, v and the mask are kept for the adjoint, which recomputes the blocks
/// (after Dao et al., 2022). Second derivatives, and the derivative of a mask, use recorded
/// matrices of shape (…, Tq, Tk).
///
/// Throws `ShapeError` when the shapes do not fit, `DTypeError` unless q, k and v have one floating
/// dtype that fits the mask, and `ArgumentError` for a dropout outside [0, 1).
Var scaled_dot_product_attention(const Var& q, const Var& k, const Var& v,
                                 const AttentionOptions& options = {},
                                 Where where = Where::current());

/// The projections of multi-head attention. Weights are (in, out), applied as x·weight + bias;
/// biases may be empty.
struct AttentionParameters {
  Var query, key, value, output;
  Var query_bias = {}, key_bias = {}, value_bias = {}, output_bias = {};
  std::int64_t key_heads = 0;  ///< heads of keys and values; 0: as many as of queries
};

/// Attention with `heads` heads (Vaswani et al., 2017). Queries (…, Tq, E), keys and values
/// (…, Tk, …) are projected and split into heads along the last axis. The results of
/// `scaled_dot_product_attention` are joined and projected to (…, Tq, out). A mask broadcasts to
/// (…, heads, Tq, Tk). Throws as that function and `linear` do, and `ArgumentError` unless the
/// numbers of heads divide the projected widths.
Var multi_head_attention(const Var& queries, const Var& keys, const Var& values,
                         const AttentionParameters& parameters, std::int64_t heads,
                         const AttentionOptions& options = {}, Where where = Where::current());
/// Self-attention: queries, keys and values are all x.
Var multi_head_attention(const Var& x, const AttentionParameters& parameters, std::int64_t heads,
                         const AttentionOptions& options = {}, Where where = Where::current());

struct RotaryOptions {
  /// The position of each row, (T) or broadcast to (…, T), of any dtype but bool. Empty: `offset`,
  /// `offset` + 1, …
  Var positions = {};
  std::int64_t offset = 0;
  double base = 10000;  ///< pair i of d/2 turns by position·base^(−2i/d)
  /// Pair i has the elements 2i and 2i + 1; otherwise the elements i and i + d/2.
  bool interleaved = false;
};

/// x (…, T, d) with pairs of elements turned by angles proportional to the position in the sequence
/// (rotary position embedding, Su et al., 2021). Products of turned queries and keys depend on the
/// difference of their positions only. Angles are computed in f64. Throws `ShapeError` unless d is
/// even and the positions fit, `DTypeError` unless x is floating, and `ArgumentError` unless the
/// base is positive.
Var rotary_embedding(const Var& x, const RotaryOptions& options = {},
                     Where where = Where::current());

/// Weights of a cell: `input` (I, gates·H) for x, `hidden` (H, gates·H) for h, and biases
/// (gates·H), which may be empty. Gates are adjacent, in the order that each cell states.
struct CellParameters {
  Var input;
  Var hidden;
  Var bias = {};
  Var hidden_bias = {};  ///< added to the product with h; useful only for `gru_cell`
};

enum class CellActivation : std::uint8_t { tanh, relu };

// One step for x (…, I) and the state h (…, H), which is also the shape of the new state. One
// product computes all gates. Each cell is a composition of other operations. Throws `ShapeError`
// when the shapes do not fit.

/// h' = tanh(x·input + h·hidden + bias), or with relu instead of tanh.
Var rnn_cell(const Var& x, const Var& h, const CellParameters& parameters,
             CellActivation activation = CellActivation::tanh, Where where = Where::current());

/// The state of an LSTM cell, (…, H) each.
struct LstmState {
  Var h;
  Var c;
};

/// i, f, g, o are x·input + h·hidden + bias split in four. c' = σ(f)·c + σ(i)·tanh(g) and
/// h' = σ(o)·tanh(c') (Hochreiter and Schmidhuber, 1997; Gers, 2000).
LstmState lstm_cell(const Var& x, const LstmState& state, const CellParameters& parameters,
                    Where where = Where::current());

/// r, z, n are x·input + bias, and r', z', n' are h·hidden + hidden_bias, each split in three.
/// m = tanh(n + σ(r + r')·n') and h' = m + σ(z + z')·(h − m) (Cho et al., 2014).
Var gru_cell(const Var& x, const Var& h, const CellParameters& parameters,
             Where where = Where::current());

// All steps of a sequence x (T, …, I), T ≥ 1, from the state h (…, H). Equals one cell per step up
// to rounding. The products with x, and their adjoints, are computed for several steps at once.
// Throws `ShapeError` when the shapes do not fit.

/// The result of `rnn` and `gru`.
struct RecurrentOutput {
  Var outputs;  ///< (T, …, H): h after every step
  Var h;        ///< after the last step
};
/// `rnn_cell` for every step.
RecurrentOutput rnn(const Var& x, const Var& h, const CellParameters& parameters,
                    CellActivation activation = CellActivation::tanh,
                    Where where = Where::current());
/// `gru_cell` for every step.
RecurrentOutput gru(const Var& x, const Var& h, const CellParameters& parameters,
                    Where where = Where::current());

/// The result of `lstm`.
struct LstmOutput {
  Var outputs;      ///< (T, …, H): h after every step
  LstmState state;  ///< after the last step
};
/// `lstm_cell` for every step.
LstmOutput lstm(const Var& x, const LstmState& state, const CellParameters& parameters,
                Where where = Where::current());

}  // namespace palimpsest
