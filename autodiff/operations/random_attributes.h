#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// Attributes of an operation that draws numbers from a stream and may fail for some values.
struct StreamAttributes {
  RandomStream stream;
  Where where;  ///< the source line for its errors

  bool operator==(const StreamAttributes& other) const {
    return stream == other.stream && same_line(where, other.where);
  }
  friend StreamAttributes in_round(StreamAttributes attributes, std::uint32_t round) {
    attributes.stream = palimpsest::in_round(attributes.stream, round);
    return attributes;
  }
};

/// Uniform f64 numbers of a stream, one for each element of the shape.
Var record_uniform(Tape& tape, const RandomStream& stream, const Shape& shape, const Where& where);

/// −∂P(a, eˡ)/∂a divided by the density exp(a·l − eˡ)/Γ(a), with derivatives up to order
/// `max_gamma_order` - 1.
Var record_gamma_slope(const Var& a, const Var& l, const Where& where);

/// Throws `DTypeError` naming `operation` unless the dtype of random numbers is floating.
void require_real(DType dtype, const char* operation, const Where& where);

}  // namespace palimpsest
