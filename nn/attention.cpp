#include "nn/attention.h"

namespace palimpsest::nn {
namespace {

LinearOptions projection(const AttentionLayerOptions& options) {
  return {.bias = options.bias, .weight_init = init::xavier_uniform(), .bias_init = init::zeros()};
}

}  // namespace

Attention::Attention(Parameters parameters, std::int64_t width, std::int64_t head_count,
                     const AttentionLayerOptions& given)
    : query(parameters / "query", width, width, projection(given)),
      key(parameters / "key", width, width, projection(given)),
      value(parameters / "value", width, width, projection(given)),
      output(parameters / "output", width, width, projection(given)),
      heads(head_count),
      options(given),
      mode_(parameters) {
  if (heads >= 1 && width % heads == 0) return;
  throw ArgumentError("[attention] " + std::to_string(heads) + " heads do not divide a width of " +
                      std::to_string(width) + "; give a number of heads that does");
}

Var Attention::operator()(const Located& x, const Var& mask) const {
  return (*this)(x, x.var, x.var, mask);
}

Var Attention::operator()(const Located& queries, const Var& keys, const Var& values,
                          const Var& mask) const {
  AttentionParameters parameters;
  const auto record = [&](const Linear& layer, Var& weight, Var& bias) {
    weight = layer.weight.on(queries);
    if (layer.bias.defined()) bias = layer.bias.on(queries);
  };
  record(query, parameters.query, parameters.query_bias);
  record(key, parameters.key, parameters.key_bias);
  record(value, parameters.value, parameters.value_bias);
  record(output, parameters.output, parameters.output_bias);
  const double dropped = mode_.is_training() ? options.dropout : 0;
  return multi_head_attention(queries.var, keys, values, parameters, heads,
                              {.mask = mask, .causal = options.causal, .dropout = dropped},
                              queries.where);
}

}  // namespace palimpsest::nn
