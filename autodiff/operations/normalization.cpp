#include "autodiff/operations/normalization.h"

#include <algorithm>

#include "autodiff/composition.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/normalize.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {
namespace {

void pull_back_normalize(const Pullback& p);

template <int per_element>
Cost normalize_cost(const NodeView& node) {
  return {per_element * static_cast<double>(node.output().shape.elements()), bytes_moved(node)};
}

constexpr Operation forward(std::string_view name, std::string_view formula,
                            std::string_view summary) {
  return {.name = name,
          .formula = formula,
          .summary = summary,
          .compute = compute_normalization,
          .vjp = pull_back_normalize,
          .cost = normalize_cost<6>,
          .workspace = normalization_workspace,
          .half = HalfSupport::native,
          .mixed = MixedPrecision::first};
}

const Operation layer_norm_operation = forward("layer_norm", "y = (x - mean x)/√(var x + ε)·w + b",
                                               "normalisation of the last axes; keeps x");
const Operation rms_norm_operation =
    forward("rms_norm", "y = x/√(mean x² + ε)·w",
            "division by the root mean square of the last axes; keeps x");
const Operation group_norm_operation =
    forward("group_norm", "y = (x - mean x)/√(var x + ε)·w + b",
            "normalisation of groups of channels of each sample; keeps x");
const Operation batch_norm_operation =
    forward("batch_norm", "y = (x - mean x)/√(var x + ε)·w + b",
            "normalisation of channels over a batch, with its statistics; keeps x");

/// Adjoint of a normalization from (dy, x[, weight]) by recorded operations; see `Normalization`.
/// 16-bit values are converted to f32, since squares and statistics leave their range.
std::vector<Var> compose_adjoint(const Normalization& n, std::size_t outputs,
                                 std::span<const Var> inputs) {
  const auto wide = [&](std::size_t i, const Shape& shape) {
    return reshape(cast(inputs[i], compute_dtype(inputs[i].dtype())), shape);
  };
  const Var dy = wide(0, n.shape());
  const Var x = wide(1, n.shape());
  const bool weighted = inputs.size() > 2;
  const auto mean = [&](const Var& v) {
    const Axes axes = n.over_batch ? Axes{0, 2, 3} : Axes{2, 3};
    return sum(v, axes, true) * (1 / static_cast<double>(n.count()));
  };
  const Var centered = n.centered ? x - mean(x) : x;
  const Var scale = rsqrt(mean(centered * centered) + n.epsilon);
  const Var normal = centered * scale;
  const Var slope = weighted ? dy * wide(2, {1, n.groups, n.channels, 1}) : dy;
  const Var along = slope - normal * mean(slope * normal);
  const Var dx = (n.centered ? along - mean(slope) : along) * scale;
  std::vector<Var> results{cast(reshape(dx, inputs[1].shape()), inputs[1].dtype())};
  if (outputs == 1) return results;
  const auto to_weight = [&](const Var& v) {
    return cast(reshape(sum(v, {0, 3}), inputs[2].shape()), inputs[2].dtype());
  };
  results.push_back(to_weight(dy * normal));
  if (outputs == 3) results.push_back(to_weight(dy));
  return results;
}

const Operation normalization_adjoint_operation{
    .name = "normalization_adjoint",
    .formula = "dx = (dy·w - mean(dy·w) - x̂·mean(dy·w·x̂))/√(var x + ε), dw = Σ dy·x̂, db = Σ dy",
    .summary = "adjoint of every normalisation; recomputes the statistics",
    .compute = compute_normalization_adjoint,
    .vjp =
        [](const Pullback& p) {
          const Normalization n = p.attributes().as<Normalization>();
          pull_back_through(p, [&](std::span<const Var> inputs) {
            return compose_adjoint(n, p.output_count(), inputs);
          });
        },
    .cost = normalize_cost<12>,
    .workspace = normalization_adjoint_workspace,
    .half = HalfSupport::native,
};

/// Reshapes (C) to (1, C, 1, …), to broadcast with x.
Var beside_channels(const Var& v, const Var& x) {
  Shape shape = x.shape();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis != 1) shape[axis] = 1;
  }
  return reshape(v, shape);
}

void pull_back_normalize(const Pullback& p) {
  const Normalization n = p.attributes().as<Normalization>();
  const Var x = p.input(0);
  std::vector<Var> inputs{p.adjoint(0), x};
  if (p.input_count() > 1) inputs.push_back(p.input(1));
  std::vector<ValueType> types;
  for (std::size_t i = 0; i < p.input_count(); ++i) types.push_back(p.input(i).type());
  const Var adjoint =
      p.tape().record(normalization_adjoint_operation, inputs, types, n, Where::current());
  for (std::uint32_t i = 1; i < types.size(); ++i) p.set(i, adjoint.output(i));

  Var dx = adjoint;
  if (p.output_count() > 1) {  // batch statistics are results too
    const double share = 1 / static_cast<double>(n.count());
    const auto add_to_dx = [&](const Var& v) { dx = dx + cast(v, x.dtype()); };
    if (p.has_adjoint(1)) {
      add_to_dx(broadcast_to(beside_channels(p.adjoint(1) * share, x), x.shape()));
    }
    if (p.has_adjoint(2)) {
      add_to_dx((x - beside_channels(p.output(1), x)) *
                beside_channels(p.adjoint(2) * (2 * share), x));
    }
  }
  p.set(0, dx);
}

/// Throws unless `v`, a weight or another value that accompanies x, has the given shape and a
/// fitting dtype.
void require_beside(const Var& x, const Var& v, const char* role, const Shape& shape,
                    std::string_view operation, const Where& where) {
  require_value(v, operation, where);
  if (v.shape() != shape) {
    throw ShapeError(operation,
                     std::string(role) + " has shape " + to_string(v.shape()) + " for " +
                         to_string(x.shape()) + "; give shape " + to_string(shape),
                     where);
  }
  if (!is_floating(v.dtype()) || compute_dtype(v.dtype()) != compute_dtype(x.dtype())) {
    throw DTypeError(operation,
                     std::string(role) + " is " + std::string(name_of(v.dtype())) + " for " +
                         to_string(x.type()) + "; cast one of them",
                     where);
  }
}

/// Throws for a negative epsilon and for a bias without a weight.
void require_settings(std::string_view operation, const Var& weight, const Var& bias,
                      double epsilon, const Where& where) {
  if (!(epsilon >= 0)) {
    throw ArgumentError(operation, "epsilon is " + number_text(epsilon) + "; give a number ≥ 0",
                        where);
  }
  if (bias.defined() && !weight.defined()) {
    throw ArgumentError(operation, "a bias needs a weight; give a weight of ones", where);
  }
}

Var record(const Operation& operation, const Var& x, const Var& weight, const Var& bias,
           const Shape& beside, Normalization n, const Where& where) {
  require_settings(operation.name, weight, bias, n.epsilon, where);
  std::vector<Var> inputs{x};
  if (weight.defined()) {
    require_beside(x, weight, "weight", beside, operation.name, where);
    inputs.push_back(weight);
  }
  if (bias.defined()) {
    require_beside(x, bias, "bias", beside, operation.name, where);
    inputs.push_back(bias);
  }
  const ValueType statistics{beside, compute_dtype(x.dtype())};
  const ValueType types[] = {x.type(), statistics, statistics};
  return x.tape().record(operation, inputs, std::span(types, n.over_batch ? 3 : 1), n, where);
}

/// Normalization over the last axes, as many as `weight` has; over the last one without a weight.
Var over_last_axes(const Operation& operation, const Var& x, const Var& weight, const Var& bias,
                   double epsilon, const Where& where) {
  require_floating(x, operation.name, where);
  const Shape shape = x.shape();
  const int count = weight.defined() ? weight.rank() : 1;
  if (count > shape.rank() || count == 0) {
    throw ShapeError(operation.name,
                     "cannot normalise " + std::to_string(count) + " axes of shape " +
                         to_string(shape) + "; give a weight of the shape of its last axes",
                     where);
  }
  const Shape beside(shape.sizes().last(static_cast<std::size_t>(count)));
  Normalization n;
  n.channels = beside.elements();
  for (int axis = 0; axis + count < shape.rank(); ++axis) n.batch *= shape[axis];
  n.centered = &operation == &layer_norm_operation;
  n.epsilon = epsilon;
  return record(operation, x, weight, bias, beside, n, where);
}

/// x (N, C, …) with one group per channel.
Normalization channels_of(const Var& x, double epsilon, std::string_view operation,
                          const Where& where) {
  require_floating(x, operation, where);
  const Shape shape = x.shape();
  if (shape.rank() < 2) {
    throw ShapeError(
        operation, "takes (N, C, …), not shape " + to_string(shape) + "; reshape it first", where);
  }
  Normalization n;
  n.batch = shape[0];
  n.groups = shape[1];
  for (int axis = 2; axis < shape.rank(); ++axis) n.spatial *= shape[axis];
  n.epsilon = epsilon;
  return n;
}

}  // namespace

std::span<const Operation* const> normalization_operations() {
  static const Operation* const family[] = {&layer_norm_operation, &rms_norm_operation,
                                            &group_norm_operation, &batch_norm_operation,
                                            &normalization_adjoint_operation};
  return family;
}

Var layer_norm(const Var& x, const Var& weight, const Var& bias, double epsilon, Where where) {
  return over_last_axes(layer_norm_operation, x, weight, bias, epsilon, where);
}

Var rms_norm(const Var& x, const Var& weight, double epsilon, Where where) {
  return over_last_axes(rms_norm_operation, x, weight, {}, epsilon, where);
}

Var group_norm(const Var& x, std::int64_t groups, const Var& weight, const Var& bias,
               double epsilon, Where where) {
  Normalization n = channels_of(x, epsilon, group_norm_operation.name, where);
  const std::int64_t channels = n.groups;
  if (groups < 1 || channels % groups != 0) {
    throw ArgumentError("group_norm",
                        std::to_string(groups) + " groups do not divide the " +
                            std::to_string(channels) + " channels of shape " +
                            to_string(x.shape()) + "; give a divisor",
                        where);
  }
  n.groups = groups;
  n.channels = channels / groups;
  return record(group_norm_operation, x, weight, bias, {channels}, n, where);
}

Var instance_norm(const Var& x, const Var& weight, const Var& bias, double epsilon, Where where) {
  const std::int64_t channels = channels_of(x, epsilon, "instance_norm", where).groups;
  return group_norm(x, std::max<std::int64_t>(1, channels), weight, bias, epsilon, where);
}

BatchNorm batch_norm(const Var& x, const Var& weight, const Var& bias, double epsilon,
                     Where where) {
  Normalization n = channels_of(x, epsilon, batch_norm_operation.name, where);
  n.over_batch = true;
  const Var y = record(batch_norm_operation, x, weight, bias, {n.groups}, n, where);
  return {y, y.output(1), y.output(2)};
}

Var batch_norm(const Var& x, const Var& mean, const Var& variance, const Var& weight,
               const Var& bias, double epsilon, Where where) {
  require_value(x, batch_norm_operation.name, where);
  const Blame blame(x.tape(), where);
  require_settings(batch_norm_operation.name, weight, bias, epsilon, where);
  const Shape channels{channels_of(x, epsilon, batch_norm_operation.name, where).groups};
  require_beside(x, mean, "mean", channels, batch_norm_operation.name, where);
  require_beside(x, variance, "variance", channels, batch_norm_operation.name, where);
  Var scale = rsqrt(variance + epsilon);
  if (weight.defined()) {
    require_beside(x, weight, "weight", channels, batch_norm_operation.name, where);
    scale = scale * weight;
  }
  Var shift = -(mean * scale);
  if (bias.defined()) {
    require_beside(x, bias, "bias", channels, batch_norm_operation.name, where);
    shift = shift + bias;
  }
  return cast(x * beside_channels(scale, x) + beside_channels(shift, x), x.dtype());
}

}  // namespace palimpsest
