#pragma once

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/operations/mixed_elementwise.h"
#include "autodiff/operations/mixed_functions.h"
#include "autodiff/operations/mixed_layers.h"
#include "autodiff/operations/mixed_matrices.h"
#include "autodiff/operations/tensor_elementwise.h"
#include "autodiff/operations/tensor_functions.h"
#include "autodiff/operations/tensor_layers.h"
#include "autodiff/operations/tensor_random.h"
#include "autodiff/tensor.h"

/// Operators of tensors, and of tensors and `Var`s. They are those of binary.h: computed at once
/// for tensors, and recorded with the tensor as a constant if one operand is a `Var`.
namespace palimpsest PALIMPSEST_EXPORT {

Tensor operator+(const LocatedTensor& a, const Tensor& b);
Tensor operator-(const LocatedTensor& a, const Tensor& b);
Tensor operator*(const LocatedTensor& a, const Tensor& b);
Tensor operator/(const LocatedTensor& a, const Tensor& b);
Tensor operator>(const LocatedTensor& a, const Tensor& b);
Tensor operator>=(const LocatedTensor& a, const Tensor& b);
Tensor operator<(const LocatedTensor& a, const Tensor& b);
Tensor operator<=(const LocatedTensor& a, const Tensor& b);
Tensor operator-(const LocatedTensor& t);
Tensor operator+(const LocatedTensor& t, double a);
Tensor operator+(double a, const LocatedTensor& t);
Tensor operator-(const LocatedTensor& t, double a);
Tensor operator-(double a, const LocatedTensor& t);
Tensor operator*(const LocatedTensor& t, double a);
Tensor operator*(double a, const LocatedTensor& t);
Tensor operator/(const LocatedTensor& t, double a);
Tensor operator/(double a, const LocatedTensor& t);
Tensor operator>(const LocatedTensor& t, double a);
Tensor operator>(double a, const LocatedTensor& t);
Tensor operator>=(const LocatedTensor& t, double a);
Tensor operator>=(double a, const LocatedTensor& t);
Tensor operator<(const LocatedTensor& t, double a);
Tensor operator<(double a, const LocatedTensor& t);
Tensor operator<=(const LocatedTensor& t, double a);
Tensor operator<=(double a, const LocatedTensor& t);

Var operator+(const Located& a, const Tensor& b);
Var operator+(const LocatedTensor& a, const Var& b);
Var operator-(const Located& a, const Tensor& b);
Var operator-(const LocatedTensor& a, const Var& b);
Var operator*(const Located& a, const Tensor& b);
Var operator*(const LocatedTensor& a, const Var& b);
Var operator/(const Located& a, const Tensor& b);
Var operator/(const LocatedTensor& a, const Var& b);
Var operator>(const Located& a, const Tensor& b);
Var operator>(const LocatedTensor& a, const Var& b);
Var operator>=(const Located& a, const Tensor& b);
Var operator>=(const LocatedTensor& a, const Var& b);
Var operator<(const Located& a, const Tensor& b);
Var operator<(const LocatedTensor& a, const Var& b);
Var operator<=(const Located& a, const Tensor& b);
Var operator<=(const LocatedTensor& a, const Var& b);

// Operators of bools. Both sides are always computed.
Tensor operator!(const LocatedTensor& t);
Tensor operator&&(const LocatedTensor& a, const Tensor& b);
Var operator&&(const Located& a, const Tensor& b);
Var operator&&(const LocatedTensor& a, const Var& b);
Tensor operator||(const LocatedTensor& a, const Tensor& b);
Var operator||(const Located& a, const Tensor& b);
Var operator||(const LocatedTensor& a, const Var& b);

// These change the elements of t, so all tensors that share its storage change too. They throw
// `ShapeError` when the result has another shape than t, and `DTypeError` when it is floating but t
// is not.
Tensor& operator+=(Tensor& t, const LocatedTensor& u);
Tensor& operator+=(Tensor& t, const LocatedNumber& a);
Tensor& operator-=(Tensor& t, const LocatedTensor& u);
Tensor& operator-=(Tensor& t, const LocatedNumber& a);
Tensor& operator*=(Tensor& t, const LocatedTensor& u);
Tensor& operator*=(Tensor& t, const LocatedNumber& a);
Tensor& operator/=(Tensor& t, const LocatedTensor& u);
Tensor& operator/=(Tensor& t, const LocatedNumber& a);

// x = x + t and so on, as for two `Var`s.
Var& operator+=(Var& x, const LocatedTensor& t);
Var& operator-=(Var& x, const LocatedTensor& t);
Var& operator*=(Var& x, const LocatedTensor& t);
Var& operator/=(Var& x, const LocatedTensor& t);

}  // namespace palimpsest
