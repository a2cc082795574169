#include "nn/layers/attention.h"

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

Var Attention::operator()(const Var& x, const Var& mask) const { return (*this)(x, x, x, mask); }

Var Attention::operator()(const Var& queries, const Var& keys, const Var& values,
                          const Var& mask) const {
  const auto bias_of = [&](const Linear& layer) {
    return layer.bias.defined() ? layer.bias.on(queries) : Var();
  };
  return multi_head_attention(queries, keys, values,
                              {.query = query.weight.on(queries),
                               .key = key.weight.on(queries),
                               .value = value.weight.on(queries),
                               .output = output.weight.on(queries),
                               .query_bias = bias_of(query),
                               .key_bias = bias_of(key),
                               .value_bias = bias_of(value),
                               .output_bias = bias_of(output)},
                              heads,
                              {.mask = mask,
                               .causal = options.causal,
                               .dropout = mode_.is_training() ? options.dropout : 0});
}

}  // namespace palimpsest::nn
