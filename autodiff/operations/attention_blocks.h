#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// Attributes of attention.
struct Attention {
  double scale = 1;
  bool causal = false;
  double dropout = 0;
  RandomStream stream;  // for dropout; weight i of (…, Tq, Tk) uses number i

  bool operator==(const Attention& other) const {
    return same_number(scale, other.scale) && causal == other.causal &&
           same_number(dropout, other.dropout) && stream == other.stream;
  }
  friend Attention in_round(Attention attention, std::uint32_t round) {
    // Without dropout no stream is used, so the round does not matter.
    if (attention.dropout > 0) attention.stream = palimpsest::in_round(attention.stream, round);
    return attention;
  }
};

/// (q, k, v[, mask]) → o
void compute_attention(const KernelCall& call);
Bytes attention_workspace(const NodeView& node, int threads);

/// (do, q, k, v[, mask]) → dq, dk, dv
void compute_attention_adjoint(const KernelCall& call);
Bytes attention_adjoint_workspace(const NodeView& node, int threads);

}  // namespace palimpsest
