#include "nn/composition.h"

#include "autodiff/number_text.h"
#include "autodiff/operations/random.h"

namespace palimpsest::nn {

Dropout::Dropout(Parameters parameters, double probability)
    : mode_(std::move(parameters)), probability_(probability) {
  if (probability >= 0 && probability < 1) return;
  throw ArgumentError("[dropout] the probability is " + number_text(probability) +
                      "; give 0 or more and less than 1");
}

Var Dropout::operator()(const Located& x) const {
  require_value(x.var, "dropout", x.where);
  const auto scope = mode_.scope(x.var.tape());
  return dropout(x.var, probability_, mode_.is_training(), x.where);
}

}  // namespace palimpsest::nn
