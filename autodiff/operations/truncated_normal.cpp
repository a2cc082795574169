#include <algorithm>
#include <cmath>

#include "autodiff/execute.h"
#include "autodiff/gradient.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/normal_quantile.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/random_attributes.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "autodiff/parallel.h"
#include "autodiff/philox.h"

namespace palimpsest {
namespace {

/// Inputs: the ends, each of one element or of as many as the output.
void compute_truncated_normal(const KernelCall& call) {
  const RandomStream stream = in_round(call.attributes.as<StreamAttributes>().stream, call.round);
  constexpr std::int64_t part = 256;
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    const auto at = [&](std::size_t input, std::int64_t i) {
      const Operand& end = call.input(input);
      return static_cast<double>(end.as<T>()[end.elements() == 1 ? 0 : i]);
    };
    parallel_chunks(call.output().elements(), part, [&](std::int64_t begin, std::int64_t end) {
      double u[part];
      fill_uniform(stream, u, end - begin, begin);
      for (std::int64_t i = begin; i < end; ++i) {
        const double share = std::max(u[i - begin], 0x1p-54);
        const double z = truncated_normal_quantile(at(0, i), at(1, i), share);
        call.output().as<T>()[i] = static_cast<T>(z);
      }
    });
  });
}

// Φ(z) = Φ(α) + u·(Φ(β) − Φ(α)), so ∂z/∂α = (1 − u)·φ(α)/φ(z) and ∂z/∂β = u·φ(β)/φ(z).
void pull_back_truncated_normal(const Pullback& p) {
  const Where where = p.where();
  const Var z = p.output();
  const Var u =
      record_uniform(p.tape(), p.attributes().as<StreamAttributes>().stream, z.shape(), where);
  const auto by_end = [&](const Var& end, const Var& share) {
    const Var slope = cast(share, z.dtype(), where) * exp((z * z - end * end) * 0.5, where);
    return sum_to(p.adjoint() * slope, end.shape(), where);
  };
  if (p.wants(0)) p.set(0, by_end(p.input(0), 1.0 - u));
  if (p.wants(1)) p.set(1, by_end(p.input(1), u));
}

const Operation truncated_normal_operation{
    .name = "truncated_normal",
    .formula =
        "z ~ N(0, 1) in [α, β], Φ(z) = Φ(α) + u·(Φ(β) - Φ(α)) for u ~ U(0, 1); "
        "∂z/∂α = (1 - u)·φ(α)/φ(z), ∂z/∂β = u·φ(β)/φ(z)",
    .summary = "standard normal numbers between given ends, by inversion",
    .compute = compute_truncated_normal,
    .vjp = pull_back_truncated_normal,
    .cost =
        [](const NodeView& node) {
          return Cost{300 * static_cast<double>(node.output().shape.elements()), bytes_moved(node)};
        },
    .mixed = MixedPrecision::recorded,
    .random = true,
};

/// mean + deviation·z, limited to [low, high]. A mean and a deviation of one element each need only
/// one pair of ends for z.
Var record_truncated_normal(const Var& mean, const Var& deviation, const Shape& shape, double low,
                            double high, const Where& where) {
  if (!(low < high)) {
    throw ArgumentError(
        "truncated_normal",
        "[" + number_text(low) + ", " + number_text(high) + "] is not an interval; give low < high",
        where);
  }
  const ValueType type{shape, mean.dtype()};
  // A deviation of 0 gives the mean, limited to [low, high]. For a mean in there, z has the ends of
  // the limit of small deviations. For another mean, any finite z is right.
  const Var is_zero = equal(deviation, 0, where);
  const Var divisor = palimpsest::where(is_zero, 1, deviation, where);
  // No normal number is beyond 40 deviations, so this stands for infinity. Derivatives stay finite.
  const auto end = [&](double bound, double far) {
    if (std::isinf(bound)) return full(mean.tape(), {}, far, type.dtype, where);
    const Var distance = bound - Located(mean, where);
    const Var limit =
        cast(palimpsest::where(equal(mean, bound, where), 0, far, where), type.dtype, where);
    const Var standard = palimpsest::where(is_zero, limit, divide(distance, divisor, where), where);
    const bool single = standard.rank() == 0;
    return single ? standard : broadcast_to(standard, shape, where);
  };
  const Var low_end = end(low, -40);
  const Var ends[] = {low_end, end(high, 40)};
  Tape& tape = mean.tape();
  const Var z = tape.record(truncated_normal_operation, ends, {&type, 1},
                            StreamAttributes{tape.fresh_stream(), where}, where);
  return clamp(add(mean, multiply(deviation, z, where), where), low, high, where);
}

}  // namespace

std::span<const Operation* const> truncated_normal_operations() {
  static const Operation* const family[] = {&truncated_normal_operation};
  return family;
}

Var truncated_normal(Tape& tape, const Shape& shape, double mean, double deviation, double low,
                     double high, DType dtype, Where where) {
  require_real(dtype, "truncated_normal", where);
  if (!(deviation > 0)) {
    throw ArgumentError("truncated_normal",
                        "the deviation is " + number_text(deviation) + "; give more than 0", where);
  }
  const DType wide = compute_dtype(dtype);
  const Var center = full(tape, {}, mean, wide, where);
  const Var width = full(tape, {}, deviation, wide, where);
  return cast(record_truncated_normal(center, width, shape, low, high, where), dtype, where);
}

Var truncated_normal(const Var& mean, const Var& deviation, double low, double high, Where where) {
  const Var both[] = {mean, deviation};
  common_tape(both, "truncated_normal", where);
  const DType dtype = promote(mean.dtype(), deviation.dtype());
  require_real(dtype, "truncated_normal", where);
  const Shape shape = broadcast(mean.shape(), deviation.shape(), "truncated_normal", where);
  const DType wide = compute_dtype(dtype);
  const Var center = cast(mean, wide, where);
  const Var width = cast(deviation, wide, where);
  return cast(record_truncated_normal(center, width, shape, low, high, where), dtype, where);
}

}  // namespace palimpsest
