// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_random.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor uniform(RandomSeed seed, const Shape& shape, double low, double high, DType dtype,
               Where where) {
  Evaluation on("uniform", where, seed.number);
  return on.result(palimpsest::uniform(on.tape(), shape, low, high, dtype, where));
}

Tensor normal(RandomSeed seed, const Shape& shape, double mean, double deviation, DType dtype,
              Where where) {
  Evaluation on("normal", where, seed.number);
  return on.result(palimpsest::normal(on.tape(), shape, mean, deviation, dtype, where));
}

Tensor normal(RandomSeed seed, const Tensor& mean, const Tensor& deviation, Where where) {
  Evaluation on("normal", where, seed.number);
  const Var on_mean = on(mean);
  const Var on_deviation = on(deviation);
  return on.result(palimpsest::normal(on_mean, on_deviation, where));
}

Tensor truncated_normal(RandomSeed seed, const Shape& shape, double mean, double deviation,
                        double low, double high, DType dtype, Where where) {
  Evaluation on("truncated_normal", where, seed.number);
  return on.result(
      palimpsest::truncated_normal(on.tape(), shape, mean, deviation, low, high, dtype, where));
}

Tensor truncated_normal(RandomSeed seed, const Tensor& mean, const Tensor& deviation, double low,
                        double high, Where where) {
  Evaluation on("truncated_normal", where, seed.number);
  const Var on_mean = on(mean);
  const Var on_deviation = on(deviation);
  return on.result(palimpsest::truncated_normal(on_mean, on_deviation, low, high, where));
}

Tensor bernoulli(RandomSeed seed, const Shape& shape, double p, DType dtype, Where where) {
  Evaluation on("bernoulli", where, seed.number);
  return on.result(palimpsest::bernoulli(on.tape(), shape, p, dtype, where));
}

Tensor bernoulli(RandomSeed seed, const Tensor& p, DType dtype, Where where) {
  Evaluation on("bernoulli", where, seed.number);
  return on.result(palimpsest::bernoulli(on(p), dtype, where));
}

Tensor randint(RandomSeed seed, std::int64_t low, std::int64_t high, const Shape& shape,
               DType dtype, Where where) {
  Evaluation on("randint", where, seed.number);
  return on.result(palimpsest::randint(on.tape(), low, high, shape, dtype, where));
}

Tensor exponential(RandomSeed seed, const Shape& shape, double rate, DType dtype, Where where) {
  Evaluation on("exponential", where, seed.number);
  return on.result(palimpsest::exponential(on.tape(), shape, rate, dtype, where));
}

Tensor laplace(RandomSeed seed, const Shape& shape, double location, double scale, DType dtype,
               Where where) {
  Evaluation on("laplace", where, seed.number);
  return on.result(palimpsest::laplace(on.tape(), shape, location, scale, dtype, where));
}

Tensor gumbel(RandomSeed seed, const Shape& shape, double location, double scale, DType dtype,
              Where where) {
  Evaluation on("gumbel", where, seed.number);
  return on.result(palimpsest::gumbel(on.tape(), shape, location, scale, dtype, where));
}

Tensor cauchy(RandomSeed seed, const Shape& shape, double location, double scale, DType dtype,
              Where where) {
  Evaluation on("cauchy", where, seed.number);
  return on.result(palimpsest::cauchy(on.tape(), shape, location, scale, dtype, where));
}

Tensor gamma(RandomSeed seed, const Tensor& concentration, Where where) {
  Evaluation on("gamma", where, seed.number);
  return on.result(palimpsest::gamma(on(concentration), where));
}

Tensor gamma(RandomSeed seed, const Shape& shape, double concentration, double scale, DType dtype,
             Where where) {
  Evaluation on("gamma", where, seed.number);
  return on.result(palimpsest::gamma(on.tape(), shape, concentration, scale, dtype, where));
}

Tensor log_gamma_variate(RandomSeed seed, const Tensor& concentration, Where where) {
  Evaluation on("log_gamma_variate", where, seed.number);
  return on.result(palimpsest::log_gamma_variate(on(concentration), where));
}

Tensor beta(RandomSeed seed, const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("beta", where, seed.number);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::beta(on_a, on_b, where));
}

Tensor dirichlet(RandomSeed seed, const Tensor& concentration, Where where) {
  Evaluation on("dirichlet", where, seed.number);
  return on.result(palimpsest::dirichlet(on(concentration), where));
}

Tensor poisson(RandomSeed seed, const Tensor& rate, Where where) {
  Evaluation on("poisson", where, seed.number);
  return on.result(palimpsest::poisson(on(rate), where));
}

Tensor categorical(RandomSeed seed, const Tensor& logits, int axis, Where where) {
  Evaluation on("categorical", where, seed.number);
  return on.result(palimpsest::categorical(on(logits), axis, where));
}

Tensor multinomial(RandomSeed seed, const Tensor& weights, std::int64_t count, bool replacement,
                   Where where) {
  Evaluation on("multinomial", where, seed.number);
  return on.result(palimpsest::multinomial(on(weights), count, replacement, where));
}

Tensor randperm(RandomSeed seed, std::int64_t n, DType dtype, Where where) {
  Evaluation on("randperm", where, seed.number);
  return on.result(palimpsest::randperm(on.tape(), n, dtype, where));
}

Tensor permutation(RandomSeed seed, const Tensor& x, int axis, Where where) {
  Evaluation on("permutation", where, seed.number);
  return on.result(palimpsest::permutation(on(x), axis, where));
}

Tensor dropout(RandomSeed seed, const Tensor& x, double p, bool training, Where where) {
  Evaluation on("dropout", where, seed.number);
  return on.result(palimpsest::dropout(on(x), p, training, where));
}

}  // namespace palimpsest
