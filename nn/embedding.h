#pragma once

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "nn/parameters.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

/// Rows of a table by their numbers: ids of any shape to (…, width). Adds "weight". Calls throw as
/// `embedding`.
struct Embedding {
  Parameter weight;  ///< (rows, width)

  Embedding(Parameters parameters, std::int64_t rows, std::int64_t width,
            const init::Initializer& weight_init = init::normal(1));
  Var operator()(const Located& ids) const;
};

}  // namespace nn
}  // namespace palimpsest
