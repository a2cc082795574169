#include "autodiff/operations/sequence.h"

#include <algorithm>
#include <cmath>

#include "autodiff/composition.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/attention_blocks.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

constexpr MatmulOptions transpose_a{.transpose_a = true};
constexpr MatmulOptions transpose_b{.transpose_b = true};

/// The causal mask: bool (queries, keys), true for visible keys.
Var causal_mask(Tape& tape, std::int64_t queries, std::int64_t keys) {
  const Var i = reshape(tape.constant(Tensor::arange(queries)), {queries, 1});
  return less_equal(tape.constant(Tensor::arange(keys)), i + static_cast<double>(keys - queries));
}

/// op(a)·op(b) for every head of keys. Heads of queries that share it are taken as one, so that the
/// rows of a, and of b if it is transposed, are their queries.
Var multiply_heads(const Var& a, const Var& b, const Shape& keys, const MatmulOptions& options) {
  const auto merged = [&](const Var& x) {
    const Shape shape = x.shape();
    const int head_axis = shape.rank() - 3;
    if (head_axis < 0 || shape[head_axis] == keys[head_axis]) return x;
    Shape joint = shape;
    joint[head_axis] = keys[head_axis];
    joint[head_axis + 1] *= shape[head_axis] / std::max<std::int64_t>(1, keys[head_axis]);
    return reshape(x, joint);
  };
  return matmul(merged(a), merged(b), options);
}

/// The product with the keys or values of each head, with the leading axes of `queries`.
Var multiply_keys(const Var& a, const Var& keys, const MatmulOptions& options) {
  Shape shape = a.shape();
  shape[shape.rank() - 1] = keys.shape().size(options.transpose_b ? -2 : -1);
  const Var product = multiply_heads(a, keys, keys.shape(), options);
  return product.shape() == shape ? product : reshape(product, shape);
}

Var drop(const Var& weights, const Attention& attention) {
  if (attention.dropout == 0) return weights;
  return dropout(weights, attention.dropout, attention.stream);
}

/// softmax(scale·q·kᵀ + mask) by recorded operations; zeros for a query that sees no key.
Var compose_weights(const Attention& attention, const Var& q, const Var& k, const Var& mask) {
  Var scores = multiply_keys(q, k, transpose_b) * attention.scale;
  Var seen;
  if (mask.defined() && mask.dtype() == DType::boolean) {
    seen = mask;
  } else if (mask.defined()) {
    scores = scores + mask;
    // Derivatives of scores hidden by an infinite mask would be NaN.
    seen = greater(mask, -std::numeric_limits<double>::infinity());
  }
  if (attention.causal) {
    const Var past = causal_mask(q.tape(), q.shape().size(-2), k.shape().size(-2));
    seen = seen.defined() ? logical_and(seen, past) : past;
  }
  if (!seen.defined()) return softmax(scores);
  const double hidden = scores.dtype() == DType::f16 ? -3e4 : -1e30;
  return softmax(where(seen, scores, hidden)) * cast(seen, scores.dtype());
}

/// Attention from (q, k, v[, mask]) by recorded operations. A wider mask promotes the scores.
Var compose(const Attention& attention, std::span<const Var> in) {
  const Var mask = in.size() > 3 ? in[3] : Var();
  const Var weights = drop(compose_weights(attention, in[0], in[1], mask), attention);
  return cast(multiply_keys(weights, in[2], {}), in[2].dtype());
}

/// dq, dk and dv from (do, q, k, v[, mask]) by recorded operations.
std::vector<Var> compose_adjoint(const Attention& attention, std::span<const Var> in) {
  const Var& d = in[0];
  const Var weights = compose_weights(attention, in[1], in[2], in.size() > 4 ? in[4] : Var());
  const Var slopes = drop(multiply_keys(d, in[3], transpose_b), attention);
  const Var scores = softmax_adjoint(slopes, weights, -1) * attention.scale;
  const auto narrow = [&](const Var& x) { return cast(x, d.dtype()); };
  const auto over_queries = [&](const Var& a, const Var& b) {
    return narrow(multiply_heads(a, b, in[2].shape(), transpose_a));
  };
  const Var dq = narrow(multiply_keys(scores, in[2], {}));
  const Var dk = over_queries(scores, in[1]);
  return {dq, dk, over_queries(drop(weights, attention), d)};
}

/// `products` matrix products per pair of query and key; on average half of the pairs if causal.
Cost cost_of_products(const NodeView& node, std::size_t first, double products) {
  Cost cost{0, bytes_moved(node)};
  const Shape q = node.input(first).shape;
  const Shape v = node.input(first + 2).shape;
  const double pairs = static_cast<double>(q.elements()) /
                       static_cast<double>(std::max<std::int64_t>(1, q.size(-1))) *
                       static_cast<double>(v.size(-2));
  const auto depth = static_cast<double>(q.size(-1) + v.size(-1));
  const double seen = node.attributes().as<Attention>().causal ? 0.5 : 1;
  cost.flops = seen * pairs * (products * depth + 15);
  return cost;
}

void pull_back_attention(const Pullback& p);

const Operation attention_operation{
    .name = "attention",
    .formula = "o = softmax(scale·q·kᵀ + mask)·v",
    .summary = "scaled dot-product attention by blocks of queries; keeps q, k, v",
    .compute = compute_attention,
    .vjp = pull_back_attention,
    .cost = [](const NodeView& node) { return cost_of_products(node, 0, 2); },
    .workspace = attention_workspace,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::narrow,
    .random = true,
};

const Operation attention_adjoint_operation{
    .name = "attention_adjoint",
    .formula = "dv = wᵀ·do, s = w·(do·vᵀ - Σ w·do·vᵀ), dq = scale·s·k, dk = scale·sᵀ·q",
    .summary = "adjoint of attention; recomputes the weights w block by block",
    .compute = compute_attention_adjoint,
    .vjp =
        [](const Pullback& p) {
          const Attention attention = p.attributes().as<Attention>();
          pull_back_through(
              p, [&](std::span<const Var> inputs) { return compose_adjoint(attention, inputs); });
        },
    .cost = [](const NodeView& node) { return cost_of_products(node, 1, 5); },
    .workspace = attention_adjoint_workspace,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::narrow,
    .random = true,
};

void pull_back_attention(const Pullback& p) {
  const Attention attention = p.attributes().as<Attention>();
  std::vector<Var> inputs{p.adjoint()};
  for (std::size_t i = 0; i < p.input_count(); ++i) inputs.push_back(p.input(i));
  if (p.input_count() > 3 && p.wants(3)) {
    pull_back_through(
        p, [&](std::span<const Var> in) { return std::vector<Var>{compose(attention, in)}; });
    return;
  }
  const ValueType types[] = {p.input(0).type(), p.input(1).type(), p.input(2).type()};
  const Var adjoint =
      p.tape().record(attention_adjoint_operation, inputs, types, attention, Where::current());
  for (std::uint32_t i = 0; i < 3; ++i) p.set(i, adjoint.output(i));
}

std::string operands_text(const Var& q, const Var& k, const Var& v) {
  return "q " + to_string(q.type()) + ", k " + to_string(k.type()) + ", v " + to_string(v.type());
}

/// Returns the shape of the scores. Throws unless the operands are compatible.
Shape check(const Var& q, const Var& k, const Var& v, const Where& where) {
  for (const Var& operand : {q, k, v}) require_floating(operand, "attention", where);
  if (k.dtype() != q.dtype() || v.dtype() != q.dtype()) {
    throw DTypeError("attention", operands_text(q, k, v) + " differ in dtype; cast them", where);
  }
  const Shape qs = q.shape();
  const Shape ks = k.shape();
  const Shape vs = v.shape();
  const int rank = qs.rank();
  bool fits = rank >= 2 && ks.rank() == rank && vs.rank() == rank && qs.size(-1) == ks.size(-1) &&
              ks.size(-2) == vs.size(-2);
  for (int axis = 0; fits && axis + 2 < rank; ++axis) {
    const bool shared = axis + 3 == rank && ks[axis] > 0 && qs[axis] % ks[axis] == 0;
    fits = ks[axis] == vs[axis] && (qs[axis] == ks[axis] || shared);
  }
  if (!fits) {
    throw ShapeError("attention",
                     operands_text(q, k, v) +
                         " do not match; give (…, Tq, d), (…, Tk, d) and (…, Tk, dv) with equal "
                         "leading axes, or "
                         "with heads of queries that are a multiple of those of keys and values",
                     where);
  }
  Shape scores = qs;
  scores[rank - 1] = ks.size(-2);
  return scores;
}

void check_mask(const Var& mask, const Var& q, const Shape& scores, const Where& where) {
  require_value(mask, "attention", where);
  if (mask.dtype() != DType::boolean &&
      (!is_floating(mask.dtype()) || compute_dtype(mask.dtype()) != compute_dtype(q.dtype()))) {
    throw DTypeError("attention",
                     "the mask is " + to_string(mask.type()) + " for q " + to_string(q.type()) +
                         "; give bool, or the dtype of q",
                     where);
  }
  const Shape shape = mask.shape();
  bool fits = shape.rank() <= scores.rank();
  for (int axis = -shape.rank(); fits && axis < 0; ++axis) {
    fits = shape.size(axis) == 1 || shape.size(axis) == scores.size(axis);
  }
  if (!fits) {
    throw ShapeError("attention",
                     "the mask's shape " + to_string(shape) +
                         " does not broadcast to the shape of the scores, " + to_string(scores) +
                         "; aligned at the last axis, each size must be 1 or that of the scores",
                     where);
  }
}

}  // namespace

std::span<const Operation* const> attention_operations() {
  static const Operation* const family[] = {&attention_operation, &attention_adjoint_operation};
  return family;
}

Var scaled_dot_product_attention(const Var& q, const Var& k, const Var& v,
                                 const AttentionOptions& options, Where where) {
  const Shape scores = check(q, k, v, where);
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    throw ArgumentError(
        "attention", "dropout is " + number_text(options.dropout) + "; give a probability below 1",
        where);
  }
  std::vector<Var> inputs{q, k, v};
  if (options.mask.defined()) {
    check_mask(options.mask, q, scores, where);
    inputs.push_back(options.mask);
  }
  Attention attention;
  const auto depth = static_cast<double>(std::max<std::int64_t>(1, q.shape().size(-1)));
  attention.scale = options.scale.value_or(1 / std::sqrt(depth));
  attention.causal = options.causal;
  attention.dropout = options.dropout;
  if (options.dropout > 0) attention.stream = q.tape().fresh_stream();
  ValueType type = q.type();
  type.shape[type.shape.rank() - 1] = v.shape().size(-1);
  return q.tape().record(attention_operation, inputs, {&type, 1}, attention, where);
}

namespace {

/// Reshapes (…, T, heads·d) to (…, heads, T, d).
Var split_heads(const Var& x, std::int64_t heads, const Where& where) {
  Shape shape = x.shape();
  const std::int64_t width = shape.size(-1);
  if (heads < 1 || width % heads != 0) {
    throw ArgumentError("multi_head_attention",
                        std::to_string(heads) + " heads do not divide the projection " +
                            to_string(x.type()) +
                            "; give a number of heads that divides its last axis",
                        where);
  }
  shape[shape.rank() - 1] = heads;
  require_axes(shape.rank() + 1, "multi_head_attention", where);
  shape.push_back(width / heads);
  return transpose(reshape(x, shape, where), -3, -2, where);
}

}  // namespace

Var multi_head_attention(const Var& queries, const Var& keys, const Var& values,
                         const AttentionParameters& p, std::int64_t heads,
                         const AttentionOptions& options, Where where) {
  for (const Var& operand : {queries, keys, values}) {
    require_value(operand, "multi_head_attention", where);
    if (operand.rank() >= 2) continue;
    throw ShapeError("multi_head_attention",
                     "takes (…, T, E), not " + to_string(operand.type()) + "; reshape it first",
                     where);
  }
  const Var q = split_heads(linear(queries, p.query, p.query_bias, where), heads, where);
  const std::int64_t key_heads = p.key_heads == 0 ? heads : p.key_heads;
  const Var k = split_heads(linear(keys, p.key, p.key_bias, where), key_heads, where);
  const Var v = split_heads(linear(values, p.value, p.value_bias, where), key_heads, where);
  const Var attended = scaled_dot_product_attention(q, k, v, options, where);
  const Var joined = flatten(transpose(attended, -3, -2, where), -2, -1, where);
  return linear(joined, p.output, p.output_bias, where);
}

Var multi_head_attention(const Var& x, const AttentionParameters& parameters, std::int64_t heads,
                         const AttentionOptions& options, Where where) {
  return multi_head_attention(x, x, x, parameters, heads, options, where);
}

}  // namespace palimpsest
