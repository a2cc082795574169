#pragma once

#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// The parameters of a tape, in the order in which they were recorded.
std::vector<Var> parameters_of(Tape& tape);

/// Throws the `ArgumentError` of `operation` for a tape without parameters, which has no gradients.
/// It names what computes values `instead`.
[[noreturn]] void throw_without_parameters(const char* operation, const char* instead,
                                           const Where& where);

/// Throws `ShapeError` unless the loss has one element.
void require_scalar(const Var& loss, const Where& where);
/// Where a value was recorded.
const Where& where_recorded(const Var& value);

}  // namespace palimpsest
