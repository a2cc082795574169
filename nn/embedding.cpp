#include "nn/embedding.h"

#include "autodiff/operations/index.h"

namespace palimpsest::nn {

Embedding::Embedding(Parameters parameters, std::int64_t rows, std::int64_t width,
                     const init::Initializer& weight_init)
    : weight(parameters.add("weight", {rows, width}, weight_init, {rows, width})) {}

Var Embedding::operator()(const Located& ids) const {
  const auto scope = weight.scope(ids.var.tape());
  return embedding(weight.on(ids), ids.var, ids.where);
}

}  // namespace palimpsest::nn
