#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "autodiff/located.h"
#include "autodiff/tape.h"

namespace palimpsest {

/// The tensor as a constant of the tape. Throws `ArgumentError` naming `operation` for an undefined
/// tensor.
Var constant_of(Tape& tape, const Tensor& tensor, std::string_view operation, const Where& where);

/// Computes one function of tensors at once, by recording it on a tape of its own: pass each tensor
/// through `operator()`, then what the function returns to `result`.
class Evaluation {
 public:
  Evaluation(std::string_view operation, const Where& where);
  /// For a function that draws random numbers.
  Evaluation(std::string_view operation, const Where& where, std::uint64_t seed);
  ~Evaluation();
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  /// The tensor as a constant of the tape. Throws `ArgumentError` for an undefined tensor.
  Var operator()(const Tensor& tensor);
  std::vector<Var> operator()(std::span<const Tensor> tensors);
  /// Likewise, or an empty handle for an undefined tensor.
  Var optional(const Tensor& tensor);

  Tape& tape() { return tape_; }

  /// The value of x.
  Tensor result(const Var& x);
  /// The values of xs, all computed in one run. Undefined ones give undefined tensors.
  std::vector<Tensor> results(std::span<const Var> xs);

 private:
  std::string_view operation_;
  Where where_;
  Tape tape_;
};

}  // namespace palimpsest
