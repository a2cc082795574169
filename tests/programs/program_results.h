#pragma once

#include <span>
#include <string>
#include <vector>

#include "tests/programs/composed_program.h"

namespace palimpsest {

/// A named result of a program.
struct Result {
  std::string name;
  Tensor tensor;
};
/// The loss of a program and the gradients of its parameters, the same for its other loss, and the
/// result of its last step. Some modes compute only the first of these.
using Results = std::vector<Result>;
/// Computes node by node, without planning, fusion or simplification.
Results reference_of(const ProgramText& text);
/// The reference in another precision.
Results reference_of(const ProgramText& text, const Precision& precision);

/// The results of `backward`.
Results results_of(const Gradients& gradients, std::span<const Var> parameters);

/// Likewise, for all parameters in the order in which they were recorded.
Results results_of(const Gradients& gradients);

/// The same bits, except for NaN: which of two NaNs a sum keeps is unspecified.
bool same_numbers(const Tensor& a, const Tensor& b);

/// Describes the first result that differs from the expected one; empty when none does.
std::string difference(const Results& found, const Results& expected);

/// What follows the names of results of the other loss.
inline constexpr const char* of_other = " of the other loss";

/// Appends a loss and its gradients.
void add(Results& results, const std::string& of, const Tensor& loss,
         std::span<const Tensor> gradients);

/// The values of these.
std::vector<Tensor> tensors_of(std::span<const Var> values);

/// A sum of losses may start from 0, so it is never −0.
Tensor with_positive_zero(const Tensor& loss);

}  // namespace palimpsest
