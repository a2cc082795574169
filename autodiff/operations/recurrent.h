#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Weights of a cell: `input` (I, gates·H) for x, `hidden` (H, gates·H) for h, and biases
/// (gates·H), which may be empty. Gates are adjacent, in the order that each cell states.
struct CellParameters {
  Var input;
  Var hidden;
  Var bias = {};
  Var hidden_bias = {};  ///< added to the product with h; useful only for `gru_cell`
};

enum class CellActivation : std::uint8_t { tanh, relu };

// One step for x (…, I) and the state h (…, H). Everything is recorded operations; one product
// computes all gates. Throws `ShapeError` when the shapes do not fit.

/// h' = tanh(x·input + h·hidden + bias), or with relu instead of tanh.
Var rnn_cell(const Var& x, const Var& h, const CellParameters& parameters,
             CellActivation activation = CellActivation::tanh, Where where = Where::current());

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

struct RecurrentOutput {
  Var outputs;  ///< (T, …, H): h after every step
  Var h;        ///< after the last step
};
RecurrentOutput rnn(const Var& x, const Var& h, const CellParameters& parameters,
                    CellActivation activation = CellActivation::tanh,
                    Where where = Where::current());
RecurrentOutput gru(const Var& x, const Var& h, const CellParameters& parameters,
                    Where where = Where::current());

struct LstmOutput {
  Var outputs;      ///< (T, …, H): h after every step
  LstmState state;  ///< after the last step
};
LstmOutput lstm(const Var& x, const LstmState& state, const CellParameters& parameters,
                Where where = Where::current());

}  // namespace palimpsest
