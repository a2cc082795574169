#include "docs/cost_examples.h"

#include "palimpsest.h"

namespace palimpsest {
namespace {

using In = const CostOperands&;

/// (rows, columns) with 8 entries in every row.
SparsePattern pattern_of(std::int64_t rows, std::int64_t columns, std::int64_t entries) {
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row <= rows; ++row) starts.push_back(row * entries / rows);
  std::vector<std::int32_t> columns_of;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t count =
        starts[static_cast<std::size_t>(row) + 1] - starts[static_cast<std::size_t>(row)];
    for (std::int64_t e = 0; e < count; ++e) {
      columns_of.push_back(static_cast<std::int32_t>(e * columns / count));
    }
  }
  return {rows, columns, std::move(starts), std::move(columns_of)};
}

std::vector<CostExample> creation() {
  return {
      {"full full_like zeros ones zeros_like ones_like", "", "n=65536",
       [](In in) { return full(in.tape(), {in.size("n")}, 2.0); }},
      {"linspace arange", "", "n=65536",
       [](In in) { return linspace(in.tape(), 0, 1, in.size("n")); }},
      {"stop_gradient", "x (n)", "", [](In in) { return stop_gradient(in[0]); }},
      {"identity", "x (n)", "", [](In in) { return identity(in[0]); }},
      {"cast", "x (n)", "", [](In in) { return cast(in[0], DType::f64); }},
      {"logspace", "", "n=65536", [](In in) { return logspace(in.tape(), 0, 1, in.size("n")); }},
      {"eye", "", "n=1024", [](In in) { return eye(in.tape(), in.size("n")); }},
      {"diag_embed", "x (n)", "", [](In in) { return diag_embed(in[0]); }},
      {"block_diag", "a (n, n), b (n, n)", "", [](In in) { return block_diag({in[0], in[1]}); }},
      {"meshgrid", "x (m), y (n)", "", [](In in) { return CostResults(meshgrid({in[0], in[1]})); }},
      {"diagonal diag", "x (n, n)", "", [](In in) { return diagonal(in[0]); }},
      {"trace", "x (n, n)", "", [](In in) { return trace(in[0]); }},
      {"kron", "a (m, n), b (p, q)", "m=512 n=512 p=512 q=512",
       [](In in) { return kron(in[0], in[1]); }},
      {"cross", "a (n, 3), b (n, 3)", "", [](In in) { return cross(in[0], in[1]); }},
  };
}

std::vector<CostExample> elementwise() {
  return {
      {"igamma", "a (n), x (n)", "", [](In in) { return igamma(in[0], in[1]); }},
      {"igammac", "a (n), x (n)", "", [](In in) { return igammac(in[0], in[1]); }},
      {"zeta", "x (n), q (n)", "", [](In in) { return zeta(stop_gradient(in[0]), in[1]); }},
      {"where", "c (n) bool, a (n), b (n)", "", [](In in) { return where(in[0], in[1], in[2]); }},
      {"logical_and logical_or", "a (n) bool, b (n) bool", "",
       [](In in) { return logical_and(in[0], in[1]); }},
      {"logical_not", "x (n) bool", "", [](In in) { return logical_not(in[0]); }},
  };
}

/// Elementwise functions that record several operations.
std::vector<CostExample> composed() {
  return {
      {"digamma", "x (n)", "", [](In in) { return digamma(in[0]); }},
      {"i0", "x (n)", "", [](In in) { return i0(in[0]); }},
      {"i1", "x (n)", "", [](In in) { return i1(in[0]); }},
      {"i0e", "x (n)", "", [](In in) { return i0e(in[0]); }},
      {"i1e", "x (n)", "", [](In in) { return i1e(in[0]); }},
      {"sinc", "x (n)", "", [](In in) { return sinc(in[0]); }},
      {"isinf isfinite", "x (n)", "", [](In in) { return isinf(in[0]); }},
      {"isposinf isneginf isnan", "x (n)", "", [](In in) { return isposinf(in[0]); }},
      {"signbit", "x (n)", "", [](In in) { return signbit(in[0]); }},
      {"nan_to_num", "x (n)", "", [](In in) { return nan_to_num(in[0]); }},
      {"frac", "x (n)", "", [](In in) { return frac(in[0]); }},
      {"rad2deg deg2rad", "x (n)", "", [](In in) { return rad2deg(in[0]); }},
      {"logsigmoid", "x (n)", "", [](In in) { return logsigmoid(in[0]); }},
      {"entr", "x (n)", "", [](In in) { return entr(in[0]); }},
      {"ndtr", "x (n)", "", [](In in) { return ndtr(in[0]); }},
      {"relu6", "x (n)", "", [](In in) { return relu6(in[0]); }},
      {"hardsigmoid", "x (n)", "", [](In in) { return hardsigmoid(in[0]); }},
      {"hardswish", "x (n)", "", [](In in) { return hardswish(in[0]); }},
      {"celu", "x (n)", "", [](In in) { return celu(in[0]); }},
      {"selu", "x (n)", "", [](In in) { return selu(in[0]); }},
      {"softshrink", "x (n)", "", [](In in) { return softshrink(in[0]); }},
      {"hardshrink", "x (n)", "", [](In in) { return hardshrink(in[0]); }},
      {"clamp_min clamp_max", "x (n)", "", [](In in) { return clamp_min(in[0], 0); }},
      {"threshold", "x (n)", "", [](In in) { return threshold(in[0], 0.5, 0); }},
      {"mvlgamma", "x (n)", "p=64",
       [](In in) { return mvlgamma(in[0], static_cast<int>(in.size("p"))); }},
      {"glu", "x (m, 2n)", "", [](In in) { return glu(in[0]); }},
      {"prelu", "x (m, c, n), w (c)", "c=64", [](In in) { return prelu(in[0], in[1]); }},
      {"isclose", "a (n), b (n)", "", [](In in) { return isclose(in[0], in[1]); }},
      {"fmax fmin", "a (n), b (n)", "", [](In in) { return fmax(in[0], in[1]); }},
      {"heaviside", "a (n), b (n)", "", [](In in) { return heaviside(in[0], in[1]); }},
      {"floor_divide", "a (n), b (n)", "", [](In in) { return floor_divide(in[0], in[1]); }},
      {"logaddexp2", "a (n), b (n)", "", [](In in) { return logaddexp2(in[0], in[1]); }},
      {"ldexp", "a (n), b (n)", "", [](In in) { return ldexp(in[0], in[1]); }},
      {"logical_xor", "a (n) bool, b (n) bool", "",
       [](In in) { return logical_xor(in[0], in[1]); }},
      {"addcmul", "x (n), a (n), b (n)", "", [](In in) { return addcmul(in[0], in[1], in[2]); }},
      {"addcdiv", "x (n), a (n), b (n)", "", [](In in) { return addcdiv(in[0], in[1], in[2]); }},
      {"lerp", "a (n), b (n), w (n)", "", [](In in) { return lerp(in[0], in[1], in[2]); }},
  };
}

std::vector<CostExample> reductions() {
  return {
      {"sum", "x (m, n)", "", [](In in) { return sum(in[0], {1}); }},
      {"mean", "x (m, n)", "", [](In in) { return mean(in[0], {1}); }},
      {"prod", "x (m, n)", "", [](In in) { return prod(in[0], {1}); }},
      {"max", "x (m, n)", "", [](In in) { return max(in[0], {1}); }},
      {"min", "x (m, n)", "", [](In in) { return min(in[0], {1}); }},
      {"argmax argmin", "x (m, n)", "", [](In in) { return argmax(in[0], {1}); }},
      {"all", "x (m, n) bool", "", [](In in) { return all(in[0], {1}); }},
      {"any", "x (m, n) bool", "", [](In in) { return any(in[0], {1}); }},
      {"variance", "x (m, n)", "", [](In in) { return variance(in[0], {1}); }},
      {"standard_deviation", "x (m, n)", "", [](In in) { return standard_deviation(in[0], {1}); }},
      {"norm", "x (m, n)", "", [](In in) { return norm(in[0], 2, {1}); }},
      {"logsumexp", "x (m, n)", "", [](In in) { return logsumexp(in[0], {1}); }},
      {"cumsum", "x (m, n)", "", [](In in) { return cumsum(in[0], 1); }},
      {"cumprod", "x (m, n)", "", [](In in) { return cumprod(in[0], 1); }},
      {"cummax", "x (m, n)", "", [](In in) { return cummax(in[0], 1).values; }},
      {"cummin", "x (m, n)", "", [](In in) { return cummin(in[0], 1).values; }},
      {"logcumsumexp", "x (m, n)", "", [](In in) { return logcumsumexp(in[0], 1); }},
      {"linear_recurrence", "a (m, n), b (m, n)", "",
       [](In in) { return linear_recurrence(in[0], in[1], 1); }},
      {"sum_to", "x (m, n)", "", [](In in) { return sum_to(in[0], {in.size("n")}); }},
  };
}

std::vector<CostExample> shapes() {
  return {
      {"reshape flatten unflatten squeeze unsqueeze", "x (m, n)", "",
       [](In in) { return reshape(in[0], {-1}); }},
      {"broadcast_to", "x (n)", "m=1024",
       [](In in) { return broadcast_to(in[0], {in.size("m"), in.size("n")}); }},
      {"permute transpose swapaxes movedim", "x (m, n)", "",
       [](In in) { return transpose(in[0]); }},
      {"slice select flip fliplr flipud", "x (n)", "n=65536",
       [](In in) { return slice(in[0], 0, {.start = 0, .stop = in.size("n") / 2}); }},
      {"pad", "x (n)", "n=65536", [](In in) { return pad(in[0], {{1, 1}}); }},
      {"concat stack", "a (n), b (n)", "", [](In in) { return concat({in[0], in[1]}, 0); }},
      {"split chunk unstack", "x (n)", "", [](In in) { return CostResults(chunk(in[0], 2, 0)); }},
      {"roll", "x (n)", "", [](In in) { return roll(in[0], 1, 0); }},
      {"tile", "x (n)", "", [](In in) { return tile(in[0], {3}); }},
      {"rot90", "x (m, n)", "", [](In in) { return rot90(in[0]); }},
      {"repeat repeat_interleave", "x (n)", "", [](In in) { return repeat(in[0], 3, 0); }},
  };
}

std::vector<CostExample> normalizations() {
  return {
      {"softmax", "x (m, n)", "", [](In in) { return softmax(in[0]); }},
      {"log_softmax", "x (m, n)", "", [](In in) { return log_softmax(in[0]); }},
      {"layer_norm", "x (m, n), w (n), b (n)", "",
       [](In in) { return layer_norm(in[0], in[1], in[2]); }},
      {"rms_norm", "x (m, n), w (n)", "", [](In in) { return rms_norm(in[0], in[1]); }},
      {"group_norm", "x (m, c, n), w (c), b (c)", "c=64",
       [](In in) { return group_norm(in[0], 8, in[1], in[2]); }},
      {"instance_norm", "x (m, c, n), w (c), b (c)", "c=64",
       [](In in) { return instance_norm(in[0], in[1], in[2]); }},
      {"batch_norm", "x (m, c, n), w (c), b (c)", "c=64",
       [](In in) { return batch_norm(in[0], in[1], in[2]).y; }},
      {"weight_norm", "v (m, n), g (m)", "", [](In in) { return weight_norm(in[0], in[1]); }},
      {"spectral_norm", "w (m, n), u (m)", "m=1048576 n=1024",
       [](In in) { return spectral_norm(in[0], in[1]).weight; }},
  };
}

std::vector<CostExample> products() {
  return {
      {"matmul", "a (m, k), b (k, n)", "", [](In in) { return matmul(in[0], in[1]); }},
      {"linear", "x (m, k), w (k, n), b (n)", "",
       [](In in) { return linear(in[0], in[1], in[2]); }},
      {"dot", "a (n), b (n)", "", [](In in) { return dot(in[0], in[1]); }},
      {"outer", "a (m), b (n)", "", [](In in) { return outer(in[0], in[1]); }},
      {"vecdot", "a (m, n), b (m, n)", "", [](In in) { return vecdot(in[0], in[1]); }},
      {"tensordot", "a (m, k), b (k, n)", "", [](In in) { return tensordot(in[0], in[1], 1); }},
      {"einsum", "a (p, m, k), b (p, k, n)", "p=64",
       [](In in) { return einsum("pmk,pkn->pmn", {in[0], in[1]}); }},
      {"sparse_matmul", "v (e), x (m, n)", "r=64 e=4096 m=1024 n=1024",
       [](In in) {
         const std::int64_t m = in.size("m");
         return sparse_matmul(pattern_of(in.size("r"), m, in.size("e")), in[0], in[1]);
       }},
      {"sampled_matmul", "a (m, k), b (n, k)", "m=64 n=64 k=1024 e=2048",
       [](In in) {
         const SparsePattern pattern = pattern_of(in.size("m"), in.size("n"), in.size("e"));
         return sampled_matmul(pattern, in[0], in[1]);
       }},
      {"matmul_sum", "a (p, m, k), b (p, k, n)", "p=64",
       [](In in) { return matmul_sum(in[0], in[1], {}, {}); }},
      {"multi_dot", "a (m, n), b (n, n), c (n, k)", "m=16 k=1024",
       [](In in) { return multi_dot({in[0], in[1], in[2]}); }},
      {"scaled_dot_product_attention", "q (b, t, d), k (b, s, d), v (b, s, d)", "b=16 d=512",
       [](In in) { return scaled_dot_product_attention(in[0], in[1], in[2]); }},
      {"multi_head_attention", "x (t, d), wq (d, d), wk (d, d), wv (d, d), wo (d, d)",
       "t=2048 d=65536",
       [](In in) {
         return multi_head_attention(
             in[0], {.query = in[1], .key = in[2], .value = in[3], .output = in[4]}, 4);
       }},
      {"rotary_embedding", "x (t, d)", "t=256 d=64", [](In in) { return rotary_embedding(in[0]); }},
  };
}

std::vector<CostExample> linear_algebra() {
  return {
      {"tril triu", "x (n, n)", "", [](In in) { return tril(in[0]); }},
      {"cholesky", "a (n, n)", "", [](In in) { return cholesky(in[0]); }},
      {"triangular_solve", "a (n, n), b (n, k)", "",
       [](In in) { return triangular_solve(in[0], in[1]); }},
      {"solve", "a (n, n), b (n, k)", "k=64", [](In in) { return solve(in[0], in[1]); }},
      {"inverse inv", "a (n, n)", "", [](In in) { return inverse(in[0]); }},
      {"det", "a (n, n)", "", [](In in) { return det(in[0]); }},
      {"logdet", "a (n, n)", "", [](In in) { return logdet(in[0]); }},
      {"slogdet", "a (n, n)", "", [](In in) { return slogdet(in[0]).log_magnitude; }},
      {"qr", "a (m, n)", "m=1048576 n=1024",
       [](In in) {
         const auto [q, r] = qr(in[0]);
         return CostResults{q, r};
       }},
      {"eigh", "a (n, n)", "",
       [](In in) {
         const auto [values, vectors] = eigh(in[0]);
         return CostResults{values, vectors};
       }},
      {"svd", "a (m, n)", "m=1048576 n=1024",
       [](In in) {
         const auto [u, values, vh] = svd(in[0]);
         return CostResults{u, values, vh};
       }},
      {"svdvals", "a (m, n)", "m=1048576 n=1024", [](In in) { return svdvals(in[0]); }},
      {"pinv", "a (m, n)", "m=1048576 n=1024", [](In in) { return pinv(in[0]); }},
      {"lstsq", "a (m, n), b (m, k)", "m=1048576 n=1024 k=8",
       [](In in) { return lstsq(in[0], in[1]); }},
      {"matrix_exp", "a (n, n)", "", [](In in) { return matrix_exp(in[0]); }},
      {"matrix_power", "a (m, m)", "n=1048576",
       [](In in) { return matrix_power(in[0], in.size("n")); }},
      {"matrix_norm", "a (m, n)", "", [](In in) { return matrix_norm(in[0]); }},
  };
}

std::vector<CostExample> indexing() {
  return {
      {"gather", "x (m, n), i (p, n) i64", "p=2048", [](In in) { return gather(in[0], 0, in[1]); }},
      {"scatter_add", "x (p, n), i (p, n) i64", "m=2048",
       [](In in) { return scatter_add(in[0], 0, in[1], in.size("m")); }},
      {"scatter_add(source)", "x (m, n), i (p, n) i64, s (p, n)", "p=512",
       [](In in) { return scatter_add(in[0], 0, in[1], in[2]); }},
      {"scatter", "x (m, n), i (p, n) i64, s (p, n)", "p=512",
       [](In in) { return scatter(in[0], 0, in[1], in[2]); }},
      {"scatter_reduce(amax)", "x (m, n), i (p, n) i64, s (p, n)", "p=512",
       [](In in) { return scatter_reduce(in[0], 0, in[1], in[2], ScatterReduction::amax); }},
      {"scatter_reduce", "x (m, n), i (p, n) i64, s (p, n)", "p=512",
       [](In in) { return scatter_reduce(in[0], 0, in[1], in[2], ScatterReduction::prod); }},
      {"index_select", "x (m, n), i (p) i64", "p=2048",
       [](In in) { return index_select(in[0], 0, in[1]); }},
      {"embedding", "x (m, n), i (p) i64", "p=2048", [](In in) { return embedding(in[0], in[1]); }},
      {"index_add", "x (p, n), i (p) i64", "m=2048",
       [](In in) { return index_add(in[0], 0, in[1], in.size("m")); }},
      {"index_add(source)", "x (m, n), i (p) i64, s (p, n)", "p=512",
       [](In in) { return index_add(in[0], 0, in[1], in[2]); }},
      {"index_copy", "x (m, n), i (p) i64, s (p, n)", "p=512",
       [](In in) { return index_copy(in[0], 0, in[1], in[2]); }},
      {"index", "x (m, n), i (p) i64", "p=2048", [](In in) { return index(in[0], {in[1]}); }},
      {"index_put", "x (m, n), i (p) i64, v (p, n)", "p=512",
       [](In in) { return index_put(in[0], {in[1]}, in[2]); }},
      {"ravel_multi_index", "i (n) i64, j (n) i64", "",
       [](In in) {
         const Var indices[] = {in[0], in[1]};
         return ravel_multi_index(indices, {64, 64});
       }},
      {"nonzero", "x (n)", "", [](In in) { return nonzero(in[0], 16); }},
      {"masked_select", "x (n), m (n) bool", "",
       [](In in) { return masked_select(in[0], in[1], 16); }},
      {"one_hot", "i (m) i64", "c=1024", [](In in) { return one_hot(in[0], in.size("c")); }},
  };
}

std::vector<CostExample> sorting() {
  return {
      {"sort argsort", "x (m, n)", "n=65536", [](In in) { return sort(in[0]).values; }},
      {"topk", "x (m, n)", "n=65536", [](In in) { return topk(in[0], 16).values; }},
      {"kthvalue median", "x (m, n)", "n=65536", [](In in) { return kthvalue(in[0], 16).values; }},
      {"lexsort", "x (k, n)", "n=65536 k=4", [](In in) { return lexsort(in[0]); }},
      {"nanmedian", "x (n)", "n=65536", [](In in) { return nanmedian(in[0]); }},
      {"quantile", "x (n)", "n=65536", [](In in) { return quantile(in[0], 0.25); }},
      {"nanquantile", "x (n)", "n=65536", [](In in) { return nanquantile(in[0], 0.25); }},
      {"histogram histc", "x (n), e (m)", "m=65",
       [](In in) { return histogram(in[0], in[1]).counts; }},
      {"unique", "x (n)", "n=65536 k=64",
       [](In in) { return unique(in[0], {.size = in.size("k")}).values; }},
      {"unique_consecutive", "x (n)", "n=65536 k=64",
       [](In in) { return unique_consecutive(in[0], {.size = in.size("k")}).values; }},
      {"searchsorted bucketize", "s (n), x (m)", "n=65536",
       [](In in) { return searchsorted(in[0], in[1]); }},
      {"bincount", "x (n) i64, w (n)", "",
       [](In in) { return bincount(in[0], {.weights = in[1], .size = 64}); }},
  };
}

std::vector<CostExample> random_numbers() {
  return {
      {"uniform", "", "n=65536", [](In in) { return uniform(in.tape(), {in.size("n")}); }},
      {"normal", "", "n=65536", [](In in) { return normal(in.tape(), {in.size("n")}); }},
      {"bernoulli", "", "n=65536", [](In in) { return bernoulli(in.tape(), {in.size("n")}, 0.5); }},
      {"randint", "", "n=65536", [](In in) { return randint(in.tape(), 0, 10, {in.size("n")}); }},
      {"exponential", "", "n=65536", [](In in) { return exponential(in.tape(), {in.size("n")}); }},
      {"laplace", "", "n=65536", [](In in) { return laplace(in.tape(), {in.size("n")}); }},
      {"gumbel", "", "n=65536", [](In in) { return gumbel(in.tape(), {in.size("n")}); }},
      {"cauchy", "", "n=65536", [](In in) { return cauchy(in.tape(), {in.size("n")}); }},
      {"truncated_normal", "m (n), s (n)", "",
       [](In in) { return truncated_normal(in[0], in[1], -2, 2); }},
      {"log_gamma_variate", "a (n)", "", [](In in) { return log_gamma_variate(in[0]); }},
      {"gamma", "a (n)", "", [](In in) { return gamma(in[0]); }},
      {"beta", "a (n), b (n)", "", [](In in) { return beta(in[0], in[1]); }},
      {"dirichlet", "a (m, n)", "", [](In in) { return dirichlet(in[0]); }},
      {"poisson", "x (n)", "", [](In in) { return poisson(in[0]); }},
      {"categorical", "x (m, n)", "", [](In in) { return categorical(in[0]); }},
      {"multinomial", "x (m, n)", "n=65536", [](In in) { return multinomial(in[0], 16); }},
      {"randperm", "", "n=65536", [](In in) { return randperm(in.tape(), in.size("n")); }},
      {"permutation", "x (m, n)", "m=65536", [](In in) { return permutation(in[0]); }},
      {"dropout", "x (n)", "", [](In in) { return dropout(in[0], 0.5); }},
  };
}

std::vector<CostExample> convolutions() {
  return {
      {"convolution conv2d", "x (b, c, h, w), w (o, c, k, k)", "b=16 c=64 o=64 k=3 h=4096 w=4096",
       [](In in) { return conv2d(in[0], in[1], {}, {.padding = 1}); }},
      {"conv1d", "x (b, c, n), w (o, c, k)", "b=16 c=64 o=64 k=3",
       [](In in) { return conv1d(in[0], in[1], {}, {.padding = 1}); }},
      {"conv3d", "x (b, c, d, h, w), w (o, c, k, k, k)", "b=4 c=64 o=64 d=256 h=256 w=256 k=3",
       [](In in) { return conv3d(in[0], in[1], {}, {.padding = 1}); }},
      {"transposed_convolution", "x (b, c, h, w), w (c, o, k, k)",
       "b=16 c=64 o=64 k=3 h=4096 w=4096",
       [](In in) { return transposed_convolution(in[0], in[1], {}, {.padding = 1}); }},
      {"unfold fold", "x (b, c, h, w)", "b=16 c=64 k=3 h=4096 w=4096",
       [](In in) { return unfold(in[0], in.size("k"), {.padding = 1}); }},
      {"max_pool", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return max_pool(in[0], 2); }},
      {"average_pool", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return average_pool(in[0], 2); }},
      {"lp_pool", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return lp_pool(in[0], 2, 2); }},
      {"adaptive_max_pool", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return adaptive_max_pool(in[0], 8); }},
      {"adaptive_average_pool", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return adaptive_average_pool(in[0], 8); }},
      {"global_max_pool", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return global_max_pool(in[0]); }},
      {"global_average_pool", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return global_average_pool(in[0]); }},
      {"upsample resize interpolate", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return upsample(in[0], 2, {.interpolation = Interpolation::linear}); }},
      {"grid_sample", "x (b, c, h, w), g (b, p, q, 2)", "b=16 c=64 h=4096 w=4096 p=16384 q=16384",
       [](In in) { return grid_sample(in[0], in[1]); }},
      {"pixel_shuffle pixel_unshuffle channel_shuffle", "x (b, c, h, w)", "b=16 c=64 h=4096 w=4096",
       [](In in) { return pixel_shuffle(in[0], 2); }},
  };
}

std::vector<CostExample> losses() {
  return {
      {"cross_entropy", "x (m, n), c (m) i64", "",
       [](In in) { return cross_entropy(in[0], in[1]); }},
      {"nll nll_loss", "x (m, n), c (m) i64", "", [](In in) { return nll(in[0], in[1]); }},
      {"ctc_loss", "x (t, b, n), y (b, l) i64, i (b) i64, j (b) i64", "b=16 n=64 l=64",
       [](In in) { return ctc_loss(in[0], in[1], in[2], in[3]); }},
      {"mse mse_loss", "x (n), y (n)", "", [](In in) { return mse(in[0], in[1]); }},
      {"l1 l1_loss", "x (n), y (n)", "", [](In in) { return l1(in[0], in[1]); }},
      {"huber huber_loss", "x (n), y (n)", "", [](In in) { return huber(in[0], in[1]); }},
      {"smooth_l1_loss", "x (n), y (n)", "", [](In in) { return smooth_l1_loss(in[0], in[1]); }},
      {"binary_cross_entropy", "x (n), y (n)", "",
       [](In in) { return binary_cross_entropy(in[0], in[1]); }},
      {"bce_with_logits binary_cross_entropy_with_logits", "x (n), y (n)", "",
       [](In in) { return bce_with_logits(in[0], in[1]); }},
      {"soft_margin_loss", "x (n), y (n)", "",
       [](In in) { return soft_margin_loss(in[0], in[1]); }},
      {"multilabel_soft_margin_loss", "x (m, n), y (m, n)", "",
       [](In in) { return multilabel_soft_margin_loss(in[0], in[1]); }},
      {"multi_margin_loss", "x (m, n), c (m) i64", "",
       [](In in) { return multi_margin_loss(in[0], in[1]); }},
      {"cosine_embedding_loss", "a (m, n), b (m, n), y (m)", "",
       [](In in) { return cosine_embedding_loss(in[0], in[1], in[2]); }},
      {"margin_ranking_loss", "a (n), b (n), y (n)", "",
       [](In in) { return margin_ranking_loss(in[0], in[1], in[2]); }},
      {"hinge_embedding_loss", "x (n), y (n)", "",
       [](In in) { return hinge_embedding_loss(in[0], in[1]); }},
      {"kl_div", "x (m, n), y (m, n)", "", [](In in) { return kl_div(in[0], in[1]); }},
      {"gaussian_nll_loss", "x (n), y (n), v (n)", "",
       [](In in) { return gaussian_nll_loss(in[0], in[1], in[2]); }},
      {"poisson_nll_loss", "x (n), y (n)", "",
       [](In in) { return poisson_nll_loss(in[0], in[1]); }},
      {"cosine_similarity", "a (m, n), b (m, n)", "",
       [](In in) { return cosine_similarity(in[0], in[1]); }},
      {"pairwise_distance", "a (m, n), b (m, n)", "",
       [](In in) { return pairwise_distance(in[0], in[1]); }},
      {"cdist", "a (m, k), b (n, k)", "m=4096 n=4096 k=4096",
       [](In in) { return cdist(in[0], in[1]); }},
      {"triplet_margin_loss", "a (m, n), p (m, n), q (m, n)", "",
       [](In in) { return triplet_margin_loss(in[0], in[1], in[2]); }},
  };
}

std::vector<CostExample> recurrences() {
  return {
      {"rnn_cell", "x (b, d), h (b, n), u (d, n), v (n, n)", "b=1024 n=512",
       [](In in) { return rnn_cell(in[0], in[1], {.input = in[2], .hidden = in[3]}); }},
      {"lstm_cell", "x (b, d), h (b, n), c (b, n), u (d, 4n), v (n, 4n)", "b=1024 n=512",
       [](In in) {
         const auto [h, c] = lstm_cell(in[0], {in[1], in[2]}, {.input = in[3], .hidden = in[4]});
         return CostResults{h, c};
       }},
      {"gru_cell", "x (b, d), h (b, n), u (d, 3n), v (n, 3n)", "b=1024 n=512",
       [](In in) { return gru_cell(in[0], in[1], {.input = in[2], .hidden = in[3]}); }},
      {"rnn", "x (t, b, d), h (b, n), u (d, n), v (n, n)", "t=512 b=16384 d=1048576 n=4096",
       [](In in) { return rnn(in[0], in[1], {.input = in[2], .hidden = in[3]}).outputs; }},
      {"lstm", "x (t, b, d), h (b, n), c (b, n), u (d, 4n), v (n, 4n)",
       "t=512 b=16384 d=1048576 n=4096",
       [](In in) {
         return lstm(in[0], {in[1], in[2]}, {.input = in[3], .hidden = in[4]}).outputs;
       }},
      {"gru", "x (t, b, d), h (b, n), u (d, 3n), v (n, 3n)", "t=512 b=16384 d=1048576 n=4096",
       [](In in) { return gru(in[0], in[1], {.input = in[2], .hidden = in[3]}).outputs; }},
  };
}

}  // namespace

const std::vector<CostExample>& cost_examples() {
  static const std::vector<CostExample> all = [] {
    std::vector<CostExample> list;
    for (const auto family :
         {creation, elementwise, composed, reductions, shapes, normalizations, products,
          linear_algebra, indexing, sorting, random_numbers, convolutions, losses, recurrences}) {
      for (CostExample& each : family()) list.push_back(std::move(each));
    }
    return list;
  }();
  return all;
}

}  // namespace palimpsest
