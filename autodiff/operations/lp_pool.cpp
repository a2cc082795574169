#include <cmath>

#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {

Var lp_pool(const Var& x, double p, const PerAxis& kernel, const LpPoolOptions& options,
            Where where) {
  require_value(x, "lp_pool", where);
  if (!(p >= 1)) {
    throw ArgumentError("lp_pool", "p = " + number_text(p) + " does not define a norm; give p >= 1",
                        where);
  }
  const int axes = spatial_axes("lp_pool", x, where);
  if (std::isinf(p)) {
    return max_pool(abs(x, where), kernel, {.stride = options.stride, .channels = options.channels},
                    where);
  }
  double count = 1;
  for (const std::int64_t size : kernel.fill(axes, 1, 1, "lp_pool", "kernel", where)) {
    count *= static_cast<double>(size);
  }
  // An even power needs no magnitude, whose second derivative at 0 would be 0.
  const Var base = std::fmod(p, 2) == 0 ? x : abs(x, where);
  const Var powers = p == 1 ? base : pow(base, p, where);
  const Var means =
      average_pool(powers, kernel, {.stride = options.stride, .channels = options.channels}, where);
  const Var sums = Located(means, where) * count;
  if (p == 1) return sums;
  // The derivative of the root is infinite at 0, where that of the norm is defined as 0.
  const Var positive = greater(sums, 0, where);
  const Var root = pow(palimpsest::where(positive, sums, 1.0, where), 1 / p, where);
  return palimpsest::where(positive, root, 0.0, where);
}

}  // namespace palimpsest
