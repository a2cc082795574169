#include "autodiff/operations/random.h"

#include "autodiff/gradient.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/random_attributes.h"
#include "autodiff/operations/registry.h"
#include "autodiff/parallel.h"
#include "autodiff/philox.h"

namespace palimpsest {
namespace {

/// `first` and `second` are low and high, or mean and deviation; `first` may be a probability.
struct RandomAttributes {
  RandomStream stream;
  double first;
  double second = 0;
  DType dtype = DType::f32;  // dtype of the numbers, not the compute dtype

  bool operator==(const RandomAttributes& other) const {
    return stream == other.stream && same_number(first, other.first) &&
           same_number(second, other.second) && dtype == other.dtype;
  }
  friend RandomAttributes in_round(RandomAttributes attributes, std::uint32_t round) {
    attributes.stream = palimpsest::in_round(attributes.stream, round);
    return attributes;
  }
};

void compute_uniform(const KernelCall& call) {
  const auto& [stream, low, high, dtype] = call.attributes.as<RandomAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    fill_between(in_round(stream, call.round), call.output().as<T>(), call.output().elements(), low,
                 high, dtype);
  });
}

void compute_normal(const KernelCall& call) {
  const auto& [stream, mean, deviation, dtype] = call.attributes.as<RandomAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    fill_normal(in_round(stream, call.round), call.output().as<T>(), call.output().elements(), mean,
                deviation);
  });
}

/// Calls `f(begin, end, numbers)` for parts of [0, n), with one uniform number per element.
template <class F>
void with_uniform(const RandomStream& stream, std::int64_t n, F f) {
  constexpr std::int64_t part = 1024;
  parallel_chunks(n, part, [&](std::int64_t begin, std::int64_t end) {
    float numbers[part];
    fill_uniform(stream, numbers, end - begin, begin);
    f(begin, end, numbers);
  });
}

void compute_bernoulli(const KernelCall& call) {
  const auto& [stream, p, unused, dtype] = call.attributes.as<RandomAttributes>();
  const Operand& y = call.output();
  const auto limit = static_cast<float>(p);
  visit(y.dtype(), [&]<class T>(T) {
    constexpr bool is_class = std::is_class_v<T>;
    using Number = std::conditional_t<is_class, float, T>;
    with_uniform(in_round(stream, call.round), y.elements(),
                 [&](std::int64_t begin, std::int64_t end, const float* u) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     y.as<T>()[i] = static_cast<T>(static_cast<Number>(u[i - begin] < limit));
                   }
                 });
  });
}

void compute_dropout(const KernelCall& call) {
  const auto& [stream, p, unused, dtype] = call.attributes.as<RandomAttributes>();
  const auto limit = static_cast<float>(p);
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    const T* x = call.input().as<T>();
    T* y = call.output().as<T>();
    const T scale = static_cast<T>(1 / (1 - p));
    with_uniform(in_round(stream, call.round), call.output().elements(),
                 [&](std::int64_t begin, std::int64_t end, const float* u) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     y[i] = u[i - begin] < limit ? T(0) : x[i] * scale;
                   }
                 });
  });
}

Var record_dropout(const Var& x, const RandomAttributes& attributes, const Where& where);

Cost random_cost(const NodeView& node) {
  const ValueType type = node.output();
  return {20 * static_cast<double>(type.shape.elements()),
          static_cast<double>(type.bytes()) * (node.input_count() + 1.0)};
}

const Operation uniform_operation{
    .name = "uniform",
    .formula = "y ~ U[low, high)",
    .summary = "uniform random numbers",
    .compute = compute_uniform,
    .cost = random_cost,
    .mixed = MixedPrecision::recorded,
    .random = true,
};

const Operation normal_operation{
    .name = "normal",
    .formula = "y ~ N(mean, deviation²)",
    .summary = "normal random numbers",
    .compute = compute_normal,
    .cost = random_cost,
    .mixed = MixedPrecision::recorded,
    .random = true,
};

const Operation bernoulli_operation{
    .name = "bernoulli",
    .formula = "y = 1 with probability p, else 0",
    .summary = "random zeros and ones",
    .compute = compute_bernoulli,
    .cost = random_cost,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::recorded,
    .random = true,
};

const Operation dropout_operation{
    .name = "dropout",
    .formula = "y = m·x/(1 - p), x̄ = m·ȳ/(1 - p), m = 0 with probability p, else 1",
    .summary = "elements zeroed at random, the others scaled up",
    .compute = compute_dropout,
    .vjp =
        [](const Pullback& p) {
          const auto attributes = p.attributes().as<RandomAttributes>();
          p.set(0, record_dropout(p.adjoint(), attributes, p.where()));
        },
    .cost = random_cost,
    .mixed = MixedPrecision::follows,
    .random = true,
};

Var record_dropout(const Var& x, const RandomAttributes& attributes, const Where& where) {
  const ValueType type = x.type();
  return x.tape().record(dropout_operation, {&x, 1}, {&type, 1}, attributes, where);
}

Var record_random(const Operation& operation, Tape& tape, const ValueType& type, double first,
                  double second, const Where& where) {
  return tape.record(operation, {}, {&type, 1},
                     RandomAttributes{tape.fresh_stream(), first, second, type.dtype}, where);
}

void require_probability(double p, const char* operation, const Where& where) {
  if (p >= 0 && p <= 1) return;
  throw ArgumentError(operation, "p = " + number_text(p) + " is not a probability; give 0 to 1",
                      where);
}

}  // namespace

std::span<const Operation* const> random_operations() {
  static const Operation* const family[] = {&uniform_operation, &normal_operation,
                                            &bernoulli_operation, &dropout_operation};
  return family;
}

void require_real(DType dtype, const char* operation, const Where& where) {
  if (is_floating(dtype)) return;
  throw DTypeError(
      operation, "makes floating dtypes, not " + std::string(name_of(dtype)) + "; cast the result",
      where);
}

Var record_uniform(Tape& tape, const RandomStream& stream, const Shape& shape, const Where& where) {
  const ValueType type{shape, DType::f64};
  return tape.record(uniform_operation, {}, {&type, 1}, RandomAttributes{stream, 0, 1, DType::f64},
                     where);
}

Var uniform(Tape& tape, const Shape& shape, double low, double high, DType dtype, Where where) {
  require_real(dtype, "uniform", where);
  if (!is_interval(low, high)) {
    throw ArgumentError("uniform",
                        "[" + number_text(low) + ", " + number_text(high) +
                            ") is not a finite, non-empty range; give finite low < high",
                        where);
  }
  return record_random(uniform_operation, tape, {shape, dtype}, low, high, where);
}

Var normal(Tape& tape, const Shape& shape, double mean, double deviation, DType dtype,
           Where where) {
  require_real(dtype, "normal", where);
  if (!(deviation >= 0)) {
    throw ArgumentError("normal", "the deviation is " + number_text(deviation) + "; give 0 or more",
                        where);
  }
  return record_random(normal_operation, tape, {shape, dtype}, mean, deviation, where);
}

Var bernoulli(Tape& tape, const Shape& shape, double p, DType dtype, Where where) {
  require_probability(p, "bernoulli", where);
  return record_random(bernoulli_operation, tape, {shape, dtype}, p, 0, where);
}

Var dropout(const Var& x, double p, bool training, Where where) {
  require_floating(x, "dropout", where);
  require_probability(p, "dropout", where);
  if (!training || p == 0) return x;
  if (p == 1) return full_like(x, 0, where);
  return dropout(x, p, x.tape().fresh_stream(), where);
}

Var dropout(const Var& x, double p, const RandomStream& stream, Where where) {
  require_floating(x, "dropout", where);
  require_probability(p, "dropout", where);
  return record_dropout(x, {stream, p}, where);
}

}  // namespace palimpsest
