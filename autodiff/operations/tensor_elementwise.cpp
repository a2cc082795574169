// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_elementwise.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor relu(const Tensor& x, Where where) {
  Evaluation on("relu", where);
  return on.result(palimpsest::relu(on(x), where));
}

Tensor leaky_relu(const Tensor& x, double slope, Where where) {
  Evaluation on("leaky_relu", where);
  return on.result(palimpsest::leaky_relu(on(x), slope, where));
}

Tensor elu(const Tensor& x, double a, Where where) {
  Evaluation on("elu", where);
  return on.result(palimpsest::elu(on(x), a, where));
}

Tensor sigmoid(const Tensor& x, Where where) {
  Evaluation on("sigmoid", where);
  return on.result(palimpsest::sigmoid(on(x), where));
}

Tensor softplus(const Tensor& x, Where where) {
  Evaluation on("softplus", where);
  return on.result(palimpsest::softplus(on(x), where));
}

Tensor gelu(const Tensor& x, Where where) {
  Evaluation on("gelu", where);
  return on.result(palimpsest::gelu(on(x), where));
}

Tensor gelu_tanh(const Tensor& x, Where where) {
  Evaluation on("gelu_tanh", where);
  return on.result(palimpsest::gelu_tanh(on(x), where));
}

Tensor silu(const Tensor& x, Where where) {
  Evaluation on("silu", where);
  return on.result(palimpsest::silu(on(x), where));
}

Tensor mish(const Tensor& x, Where where) {
  Evaluation on("mish", where);
  return on.result(palimpsest::mish(on(x), where));
}

Tensor hardtanh(const Tensor& x, double low, double high, Where where) {
  Evaluation on("hardtanh", where);
  return on.result(palimpsest::hardtanh(on(x), low, high, where));
}

Tensor softsign(const Tensor& x, Where where) {
  Evaluation on("softsign", where);
  return on.result(palimpsest::softsign(on(x), where));
}

Tensor tanhshrink(const Tensor& x, Where where) {
  Evaluation on("tanhshrink", where);
  return on.result(palimpsest::tanhshrink(on(x), where));
}

Tensor negate(const Tensor& x, Where where) {
  Evaluation on("negate", where);
  return on.result(palimpsest::negate(on(x), where));
}

Tensor reciprocal(const Tensor& x, Where where) {
  Evaluation on("reciprocal", where);
  return on.result(palimpsest::reciprocal(on(x), where));
}

Tensor square(const Tensor& x, Where where) {
  Evaluation on("square", where);
  return on.result(palimpsest::square(on(x), where));
}

Tensor sqrt(const Tensor& x, Where where) {
  Evaluation on("sqrt", where);
  return on.result(palimpsest::sqrt(on(x), where));
}

Tensor rsqrt(const Tensor& x, Where where) {
  Evaluation on("rsqrt", where);
  return on.result(palimpsest::rsqrt(on(x), where));
}

Tensor pow(const Tensor& x, double exponent, Where where) {
  Evaluation on("pow", where);
  return on.result(palimpsest::pow(on(x), exponent, where));
}

Tensor abs(const Tensor& x, Where where) {
  Evaluation on("abs", where);
  return on.result(palimpsest::abs(on(x), where));
}

Tensor sign(const Tensor& x, Where where) {
  Evaluation on("sign", where);
  return on.result(palimpsest::sign(on(x), where));
}

Tensor floor(const Tensor& x, Where where) {
  Evaluation on("floor", where);
  return on.result(palimpsest::floor(on(x), where));
}

Tensor ceil(const Tensor& x, Where where) {
  Evaluation on("ceil", where);
  return on.result(palimpsest::ceil(on(x), where));
}

Tensor round(const Tensor& x, Where where) {
  Evaluation on("round", where);
  return on.result(palimpsest::round(on(x), where));
}

Tensor trunc(const Tensor& x, Where where) {
  Evaluation on("trunc", where);
  return on.result(palimpsest::trunc(on(x), where));
}

Tensor clamp(const Tensor& x, double low, double high, Where where) {
  Evaluation on("clamp", where);
  return on.result(palimpsest::clamp(on(x), low, high, where));
}

Tensor exp(const Tensor& x, Where where) {
  Evaluation on("exp", where);
  return on.result(palimpsest::exp(on(x), where));
}

Tensor exp2(const Tensor& x, Where where) {
  Evaluation on("exp2", where);
  return on.result(palimpsest::exp2(on(x), where));
}

Tensor expm1(const Tensor& x, Where where) {
  Evaluation on("expm1", where);
  return on.result(palimpsest::expm1(on(x), where));
}

Tensor log(const Tensor& x, Where where) {
  Evaluation on("log", where);
  return on.result(palimpsest::log(on(x), where));
}

Tensor log2(const Tensor& x, Where where) {
  Evaluation on("log2", where);
  return on.result(palimpsest::log2(on(x), where));
}

Tensor log10(const Tensor& x, Where where) {
  Evaluation on("log10", where);
  return on.result(palimpsest::log10(on(x), where));
}

Tensor log1p(const Tensor& x, Where where) {
  Evaluation on("log1p", where);
  return on.result(palimpsest::log1p(on(x), where));
}

Tensor erf(const Tensor& x, Where where) {
  Evaluation on("erf", where);
  return on.result(palimpsest::erf(on(x), where));
}

Tensor erfc(const Tensor& x, Where where) {
  Evaluation on("erfc", where);
  return on.result(palimpsest::erfc(on(x), where));
}

Tensor logit(const Tensor& x, Where where) {
  Evaluation on("logit", where);
  return on.result(palimpsest::logit(on(x), where));
}

Tensor lgamma(const Tensor& x, Where where) {
  Evaluation on("lgamma", where);
  return on.result(palimpsest::lgamma(on(x), where));
}

Tensor digamma(const Tensor& x, Where where) {
  Evaluation on("digamma", where);
  return on.result(palimpsest::digamma(on(x), where));
}

Tensor polygamma(int n, const Tensor& x, Where where) {
  Evaluation on("polygamma", where);
  return on.result(palimpsest::polygamma(n, on(x), where));
}

Tensor erfinv(const Tensor& x, Where where) {
  Evaluation on("erfinv", where);
  return on.result(palimpsest::erfinv(on(x), where));
}

Tensor bessel_i(int n, bool scaled, const Tensor& x, Where where) {
  Evaluation on("bessel_i", where);
  return on.result(palimpsest::bessel_i(n, scaled, on(x), where));
}

Tensor i0(const Tensor& x, Where where) {
  Evaluation on("i0", where);
  return on.result(palimpsest::i0(on(x), where));
}

Tensor i1(const Tensor& x, Where where) {
  Evaluation on("i1", where);
  return on.result(palimpsest::i1(on(x), where));
}

Tensor i0e(const Tensor& x, Where where) {
  Evaluation on("i0e", where);
  return on.result(palimpsest::i0e(on(x), where));
}

Tensor i1e(const Tensor& x, Where where) {
  Evaluation on("i1e", where);
  return on.result(palimpsest::i1e(on(x), where));
}

Tensor spherical_bessel_j(int n, bool times_pi, const Tensor& x, Where where) {
  Evaluation on("spherical_bessel_j", where);
  return on.result(palimpsest::spherical_bessel_j(n, times_pi, on(x), where));
}

Tensor sinc(const Tensor& x, Where where) {
  Evaluation on("sinc", where);
  return on.result(palimpsest::sinc(on(x), where));
}

Tensor sin(const Tensor& x, Where where) {
  Evaluation on("sin", where);
  return on.result(palimpsest::sin(on(x), where));
}

Tensor cos(const Tensor& x, Where where) {
  Evaluation on("cos", where);
  return on.result(palimpsest::cos(on(x), where));
}

Tensor tan(const Tensor& x, Where where) {
  Evaluation on("tan", where);
  return on.result(palimpsest::tan(on(x), where));
}

Tensor asin(const Tensor& x, Where where) {
  Evaluation on("asin", where);
  return on.result(palimpsest::asin(on(x), where));
}

Tensor acos(const Tensor& x, Where where) {
  Evaluation on("acos", where);
  return on.result(palimpsest::acos(on(x), where));
}

Tensor atan(const Tensor& x, Where where) {
  Evaluation on("atan", where);
  return on.result(palimpsest::atan(on(x), where));
}

Tensor sinh(const Tensor& x, Where where) {
  Evaluation on("sinh", where);
  return on.result(palimpsest::sinh(on(x), where));
}

Tensor cosh(const Tensor& x, Where where) {
  Evaluation on("cosh", where);
  return on.result(palimpsest::cosh(on(x), where));
}

Tensor tanh(const Tensor& x, Where where) {
  Evaluation on("tanh", where);
  return on.result(palimpsest::tanh(on(x), where));
}

Tensor asinh(const Tensor& x, Where where) {
  Evaluation on("asinh", where);
  return on.result(palimpsest::asinh(on(x), where));
}

Tensor acosh(const Tensor& x, Where where) {
  Evaluation on("acosh", where);
  return on.result(palimpsest::acosh(on(x), where));
}

Tensor atanh(const Tensor& x, Where where) {
  Evaluation on("atanh", where);
  return on.result(palimpsest::atanh(on(x), where));
}

Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcOptions& options, Where where) {
  Evaluation on("ctc_loss", where);
  const Var on_log_probabilities = on(log_probabilities);
  const Var on_targets = on(targets);
  const Var on_input_lengths = on(input_lengths);
  const Var on_target_lengths = on(target_lengths);
  return on.result(palimpsest::ctc_loss(on_log_probabilities, on_targets, on_input_lengths,
                                        on_target_lengths, options, where));
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int axis, double eps, Where where) {
  Evaluation on("cosine_similarity", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::cosine_similarity(on_a, on_b, axis, eps, where));
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, const DistanceOptions& options,
                         Where where) {
  Evaluation on("pairwise_distance", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::pairwise_distance(on_a, on_b, options, where));
}

Tensor cdist(const Tensor& a, const Tensor& b, double p, Where where) {
  Evaluation on("cdist", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::cdist(on_a, on_b, p, where));
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& targets, double margin,
                             Reduction reduction, Where where) {
  Evaluation on("cosine_embedding_loss", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  const Var on_targets = on(targets);
  return on.result(
      palimpsest::cosine_embedding_loss(on_a, on_b, on_targets, margin, reduction, where));
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& targets, double margin,
                           Reduction reduction, Where where) {
  Evaluation on("margin_ranking_loss", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  const Var on_targets = on(targets);
  return on.result(
      palimpsest::margin_ranking_loss(on_a, on_b, on_targets, margin, reduction, where));
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& targets, double margin,
                            Reduction reduction, Where where) {
  Evaluation on("hinge_embedding_loss", where);
  const Var on_x = on(x);
  const Var on_targets = on(targets);
  return on.result(palimpsest::hinge_embedding_loss(on_x, on_targets, margin, reduction, where));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& options, Where where) {
  Evaluation on("triplet_margin_loss", where);
  const Var on_anchor = on(anchor);
  const Var on_positive = on(positive);
  const Var on_negative = on(negative);
  return on.result(
      palimpsest::triplet_margin_loss(on_anchor, on_positive, on_negative, options, where));
}

Tensor reduce_loss(const Tensor& losses, Reduction reduction, Where where) {
  Evaluation on("reduce_loss", where);
  return on.result(palimpsest::reduce_loss(on(losses), reduction, where));
}

}  // namespace palimpsest
