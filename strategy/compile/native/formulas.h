#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "autodiff/arithmetic.h"
#include "autodiff/dtype.h"

namespace palimpsest {

/// The name of a dtype in generated code. Not for 16-bit floating types.
std::string_view c_type(DType dtype);

/// An operation applied to operands, as generated code sees it.
struct FormulaCall {
  std::string_view operation;  ///< its name
  DType result;
  std::span<const DType> dtypes;        ///< of the operands
  std::span<const std::string> inputs;  ///< expressions without side effects, of one token
  std::string_view number;              ///< expression of the operation's number; empty without one
};

/// A C expression that has the bits of the operation's kernels at every level, or nothing. Then the
/// code calls the kernel. These are operations without functions that levels compute differently.
/// Only one has a product and a sum that kernels may contract: the adjoint of tanh.
std::optional<std::string> formula_of(const FormulaCall& call);

/// The C expression of arithmetic steps in a row, each rounded. `inputs` has one operand more.
std::string arithmetic_formula(std::span<const ArithmeticStep> steps,
                               std::span<const std::string> inputs);

}  // namespace palimpsest
