#include "nn/attention.h"

namespace palimpsest::nn {
namespace {

LinearOptions projection(const AttentionLayerOptions& options) {
  return {.bias = options.bias, .weight_init = init::xavier_uniform(), .bias_init = init::zeros()};
}

/// The width of keys and values, or `width` if the numbers of heads are wrong.
std::int64_t key_width(std::int64_t width, std::int64_t heads,
                       const AttentionLayerOptions& options) {
  const bool fewer = options.key_heads > 0 && heads > 0;
  return fewer ? width / heads * options.key_heads : width;
}

}  // namespace

Attention::Attention(Parameters parameters, std::int64_t width, std::int64_t head_count,
                     const AttentionLayerOptions& given)
    : query(parameters / "query", width, width, projection(given)),
      key(parameters / "key", width, key_width(width, head_count, given), projection(given)),
      value(parameters / "value", width, key_width(width, head_count, given), projection(given)),
      output(parameters / "output", width, width, projection(given)),
      heads(head_count),
      options(given),
      mode_(parameters) {
  const std::int64_t of_keys = options.key_heads;
  if (of_keys < 0 || (of_keys > 0 && heads % of_keys != 0)) {
    throw ArgumentError("[attention] " + std::to_string(of_keys) + " heads of keys do not divide " +
                        std::to_string(heads) + " heads; give a number that does");
  }
  if (heads >= 1 && width % heads == 0) return;
  throw ArgumentError("[attention] " + std::to_string(heads) + " heads do not divide a width of " +
                      std::to_string(width) + "; give a number of heads that does");
}

Var Attention::operator()(const Located& x, const Var& mask) const {
  return (*this)(x, x.var, x.var, mask);
}

Var Attention::operator()(const Located& queries, const Var& keys, const Var& values,
                          const Var& mask) const {
  const auto scope = mode_.scope(queries.var.tape());
  AttentionParameters parameters;
  const auto record = [&](const Linear& layer, Var& weight, Var& bias) {
    weight = layer.weight.on(queries);
    if (layer.bias.defined()) bias = layer.bias.on(queries);
  };
  record(query, parameters.query, parameters.query_bias);
  record(key, parameters.key, parameters.key_bias);
  record(value, parameters.value, parameters.value_bias);
  record(output, parameters.output, parameters.output_bias);
  parameters.key_heads = options.key_heads;
  const double dropped = mode_.is_training() ? options.dropout : 0;
  return multi_head_attention(queries.var, keys, values, parameters, heads,
                              {.mask = mask, .causal = options.causal, .dropout = dropped},
                              queries.where);
}

}  // namespace palimpsest::nn
