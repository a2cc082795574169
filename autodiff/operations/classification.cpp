#include "autodiff/execute.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/counted_mean.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/lines.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// Calls `f(X, Class)` with the types of the floating operand and of the classes.
template <class F>
void visit_types(DType dtype, DType classes, F f) {
  visit(dtype, [&]<class X>(X) {
    if constexpr (is_floating(dtype_of<X>())) {
      if (classes == DType::i64)
        f(X{}, std::int64_t{});
      else
        f(X{}, std::int32_t{});
    }
  });
}

template <class X>
using Computed = std::conditional_t<std::is_class_v<X>, float, X>;

template <class T>
T element(const Operand& operand, std::int64_t i) {
  return visit(operand.dtype(), [&]<class E>(E) { return convert_element<T>(operand.as<E>()[i]); });
}

template <class T>
void set_element(const Operand& operand, std::int64_t i, T value) {
  visit(operand.dtype(), [&]<class E>(E) { operand.as<E>()[i] = convert_element<E>(value); });
}

/// A batch of lines in its compute type: in place, or for 16-bit types widened in a thread's share
/// of the workspace.
template <class X>
class Batch {
 public:
  Batch(const KernelCall& call, const Lines& from) : lines(from), from_(from) {
    if constexpr (std::is_class_v<X>) {
      const Bytes share = std::ssize(call.workspace) / call.threads;
      const Bytes unit = static_cast<Bytes>(buffer_alignment);
      data =
          reinterpret_cast<float*>(call.workspace.data() + thread_index() * (share / unit * unit));
      lines.stride = lines.columns;
    }
  }

  void read(const X* x) {
    if constexpr (std::is_class_v<X>) {
      for_rows([&](std::int64_t at, float* row, std::int64_t n) {
        kernels().half<X>().widen(x + at, row, n);
      });
    } else {
      input_ = x;
    }
  }
  /// Selects where to compute the results that `write` stores to `y`.
  void make_for(X* y) {
    if constexpr (!std::is_class_v<X>) data = y;
  }
  void write(X* y) const {
    if constexpr (std::is_class_v<X>) {
      for_rows([&](std::int64_t at, const float* row, std::int64_t n) {
        kernels().half<X>().narrow(row, y + at, n);
      });
    }
  }
  const Computed<X>* x() const { return std::is_class_v<X> ? data : input_; }

  Lines lines;
  Computed<X>* data = nullptr;

 private:
  /// Calls `f(offset, row, n)` for runs that are contiguous in both layouts.
  template <class F>
  void for_rows(F f) const {
    const bool is_line = from_.columns == 1 && from_.stride == 1;
    if (is_line) return f(0, data, from_.n);
    for (std::int64_t i = 0; i < from_.n; ++i) {
      f(i * from_.stride, data + i * lines.stride, from_.columns);
    }
  }

  Lines from_;
  const Computed<X>* input_ = nullptr;
};

/// For the 16-bit lines that each thread widens.
template <std::size_t operand>
Bytes workspace(const NodeView& node, int threads) {
  const ValueType type = operand < node.input_count() ? node.input(operand) : node.output();
  if (!is_half(type.dtype)) return 0;
  const LineShape line(type.shape, node.attributes().as<ClassAttributes>().axis);
  const std::int64_t width = std::min(line.inner, Lines::most_columns);
  return threads * aligned(line.size * width * size_of(DType::f32));
}

/// Cross entropy of logits, or nll of log-probabilities if `from_logits` is false.
template <bool from_logits>
void compute_class_loss(const KernelCall& call) {
  const auto& attributes = call.attributes.as<ClassAttributes>();
  visit_types(call.input(0).dtype(), call.input(1).dtype(), [&]<class X, class Class>(X, Class) {
    using T = Computed<X>;
    const Class* classes = call.input(1).as<Class>();
    const auto batch = [&](const Lines& from, std::int64_t offset, std::int64_t first) {
      Batch<X> read(call, from);
      read.read(call.input(0).as<X>() + offset);
      const Lines& lines = read.lines;
      T largest[Lines::most_columns] = {};
      T log_total[Lines::most_columns] = {};
      if (from_logits) kernels().softmax<T>().log_sum_exp(lines, read.x(), largest, log_total);
      for (std::int64_t c = 0; c < lines.columns; ++c) {
        const std::int64_t place = first + c;
        const T* line = read.x() + c;
        set_element(call.output(), place, T(0));
        if (classes[place] == attributes.ignored) continue;
        const std::int64_t choice = attributes.checked(classes[place], lines.n, place);
        const double smoothing = attributes.smoothing;
        double score = (1 - smoothing) * (line[choice * lines.stride] - largest[c]);
        if (smoothing != 0) {
          double total = 0;
          for (std::int64_t i = 0; i < lines.n; ++i) total += line[i * lines.stride] - largest[c];
          score += smoothing * total / static_cast<double>(lines.n);
        }
        set_element(call.output(), place, static_cast<T>(log_total[c] - score));
      }
    };
    for_lines(call.input(0).shape(), attributes.axis, from_logits ? 10 : 1, batch);
  });
}

/// dx = d·(p − target). p is softmax(x) for logits, and 0 for nll, for which x is not an input.
template <bool from_logits>
void compute_class_adjoint(const KernelCall& call) {
  const auto& attributes = call.attributes.as<ClassAttributes>();
  const Operand& targets = call.input(1);
  visit_types(call.output().dtype(), targets.dtype(), [&]<class X, class Class>(X, Class) {
    using T = Computed<X>;
    const Class* classes = targets.as<Class>();
    const auto batch = [&](const Lines& from, std::int64_t offset, std::int64_t first) {
      Batch<X> made(call, from);
      X* const dx = call.output().as<X>() + offset;
      made.make_for(dx);
      const Lines& lines = made.lines;
      T* const out = made.data;
      if constexpr (from_logits) {
        made.read(call.input(2).as<X>() + offset);
        kernels().softmax<T>().softmax(lines, made.x(), out);
      }
      T factor[Lines::most_columns];
      for (std::int64_t c = 0; c < lines.columns; ++c) {
        const bool ignored = classes[first + c] == attributes.ignored;
        factor[c] = ignored ? T(0) : element<T>(call.input(0), first + c);
      }
      const T spread = static_cast<T>(attributes.smoothing / static_cast<double>(lines.n));
      for (std::int64_t i = 0; i < lines.n; ++i) {
        T* row = out + i * lines.stride;
        for (std::int64_t c = 0; c < lines.columns; ++c) {
          row[c] = factor[c] * ((from_logits ? row[c] : T(0)) - spread);
        }
      }
      for (std::int64_t c = 0; c < lines.columns; ++c) {
        const std::int64_t place = first + c;
        if (classes[place] == attributes.ignored) {  // also where the logits are infinite
          for (std::int64_t i = 0; i < lines.n; ++i) out[c + i * lines.stride] = T(0);
          continue;
        }
        const std::int64_t choice = attributes.checked(classes[place], lines.n, place);
        out[c + choice * lines.stride] -= factor[c] * static_cast<T>(1 - attributes.smoothing);
      }
      made.write(dx);
    };
    for_lines(call.output().shape(), attributes.axis, from_logits ? 12 : 2, batch);
  });
}

/// True for targets that are not ignored.
Var counted(const Var& classes, const ClassAttributes& attributes) {
  const Var wide = cast(classes, DType::i64, attributes.where);
  const Var ignored =
      classes.tape().constant(Tensor::from({*attributes.ignored}, {}), {}, attributes.where);
  return not_equal(wide, ignored, attributes.where);
}

template <bool from_logits>
void pull_back_class_loss(const Pullback& p);
template <bool from_logits>
void pull_back_class_adjoint(const Pullback& p);

template <int per_element>
Cost classification_cost(const NodeView& node) {
  Cost cost{0, bytes_moved(node)};
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    cost.flops = std::max(cost.flops, static_cast<double>(node.input(i).shape.elements()));
  }
  cost.flops =
      per_element * std::max(cost.flops, static_cast<double>(node.output().shape.elements()));
  return cost;
}

const Operation cross_entropy_operation{
    .name = "cross_entropy",
    .formula = "y = log Σ exp(x) - x[class], x̄ = ȳ·(softmax(x) - onehot(class))",
    .summary = "negative log likelihood of classes, from logits; keeps only the logits",
    .compute = compute_class_loss<true>,
    .vjp = pull_back_class_loss<true>,
    .cost = classification_cost<12>,
    .workspace = workspace<0>,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::reads,
};

const Operation nll_operation{
    .name = "nll",
    .formula = "y = -x[class], x̄ = -ȳ·onehot(class)",
    .summary = "negative log likelihood of classes, from log-probabilities; keeps nothing",
    .compute = compute_class_loss<false>,
    .vjp = pull_back_class_loss<false>,
    .cost = classification_cost<1>,
    .workspace = workspace<0>,
    .half = HalfSupport::native,
};

const Operation cross_entropy_adjoint_operation{
    .name = "cross_entropy_adjoint",
    .formula = "dx = d·(softmax(x) - onehot(class))",
    .summary = "adjoint of cross_entropy",
    .compute = compute_class_adjoint<true>,
    .vjp = pull_back_class_adjoint<true>,
    .cost = classification_cost<15>,
    .workspace = workspace<2>,
    .in_place = [](const NodeView&, std::size_t) { return 2; },
    .half = HalfSupport::native,
};

const Operation nll_adjoint_operation{
    .name = "nll_adjoint",
    .formula = "dx = -d·onehot(class)",
    .summary = "adjoint of nll",
    .compute = compute_class_adjoint<false>,
    .vjp = pull_back_class_adjoint<false>,
    .cost = classification_cost<2>,
    .workspace = workspace<2>,
    .half = HalfSupport::native,
};

template <bool from_logits>
Var record_adjoint(const Var& d, const Var& classes, const Var& x, const ValueType& type,
                   const ClassAttributes& attributes) {
  const Var inputs[] = {d, classes, x};
  return d.tape().record(from_logits ? cross_entropy_adjoint_operation : nll_adjoint_operation,
                         std::span(inputs, from_logits ? 3 : 2), {&type, 1}, attributes,
                         Where::current());
}

template <bool from_logits>
void pull_back_class_loss(const Pullback& p) {
  const ClassAttributes attributes = p.attributes().as<ClassAttributes>();
  p.set(0, record_adjoint<from_logits>(p.adjoint(), p.input(1), p.input(0), p.input(0).type(),
                                       attributes));
}

// With the adjoint g of dx: d gets Σ g·(p − target), x gets d·p·(g − Σ g·p) unless ignored.
template <bool from_logits>
void pull_back_class_adjoint(const Pullback& p) {
  const ClassAttributes attributes = p.attributes().as<ClassAttributes>();
  const Var g = p.adjoint();
  const Var d = p.input(0);
  const Var classes = p.input(1);
  const Var x = from_logits ? p.input(2) : Var();
  if (p.wants(0)) {
    const Var slope =
        record_adjoint<from_logits>(full_like(d, 1), classes, x, g.type(), attributes);
    p.set(0, cast(sum(g * slope, {attributes.axis}), d.dtype()));
  }
  if (from_logits && p.wants(2)) {
    const bool ignores = attributes.ignored.has_value();
    const Var counts = ignores ? unsqueeze(counted(classes, attributes), attributes.axis) : Var();
    // Infinite scores of an ignored target would make its derivatives NaN.
    const Var scores = ignores ? where(counts, x, 0) : x;
    const Var curvature = softmax_adjoint(g, softmax(scores, attributes.axis), attributes.axis);
    const Var dx = unsqueeze(d, attributes.axis) * curvature;
    p.set(2, cast(ignores ? where(counts, dx, 0) : dx, x.dtype()));
  }
}

void require_share(std::string_view operation, double label_smoothing, const Where& where) {
  if (label_smoothing >= 0 && label_smoothing <= 1) return;
  throw ArgumentError(
      operation,
      "label_smoothing is " + number_text(label_smoothing) + "; give a fraction in [0, 1]", where);
}

Var record(const Operation& operation, const Var& x, const Var& classes,
           const ClassificationOptions& options, const Where& where) {
  require_floating(x, operation.name, where);
  require_value(classes, operation.name, where);
  if (!is_integer(classes.dtype())) {
    throw DTypeError(
        operation.name,
        "classes are " + to_string(classes.type()) + "; give indices of dtype i64 or i32", where);
  }
  const int axis = x.shape().wrap(options.axis, operation.name, where);
  Shape places = x.shape();
  places.erase(axis);
  if (classes.shape() != places) {
    throw ShapeError(operation.name,
                     "classes have shape " + to_string(classes.shape()) + " for logits " +
                         to_string(x.shape()) + " with the classes along axis " +
                         std::to_string(axis) + "; give shape " + to_string(places),
                     where);
  }
  if (x.shape()[axis] == 0) {
    throw ShapeError(
        operation.name,
        "the class axis has size 0 in " + to_string(x.type()) + "; give at least one class", where);
  }
  require_share(operation.name, options.label_smoothing, where);
  const ClassAttributes attributes{axis, options.label_smoothing, options.ignore_index,
                                   operation.name, where};
  const Var inputs[] = {
      x, is_narrow_integer(classes.dtype()) ? cast(classes, DType::i32, where) : classes};
  const ValueType type{places, x.dtype()};
  const Var losses = x.tape().record(operation, inputs, {&type, 1}, attributes, where);
  if (options.reduction != Reduction::mean || !options.ignore_index) {
    return reduce_loss(losses, options.reduction, where);
  }
  // 16 bits can hold neither the sum of many losses nor their number.
  const DType dtype = compute_dtype(x.dtype());
  const Var total = sum(cast(losses, dtype, where), {}, false, where);
  const Var count = sum(cast(counted(classes, attributes), dtype, where), {}, false, where);
  return cast(divide_by_count(total, count, where), x.dtype(), where);
}

/// Cross entropy with class probabilities as targets.
Var of_probabilities(const Var& logits, const Var& probabilities,
                     const ClassificationOptions& options, const Where& where) {
  const char* name = "cross_entropy";
  require_floating(logits, name, where);
  const Shape shape = logits.shape();
  const int axis = shape.wrap(options.axis, name, where);
  if (probabilities.shape() != shape) {
    throw ShapeError(name,
                     "class probabilities have shape " + to_string(probabilities.shape()) +
                         " for logits " + to_string(shape) +
                         "; give the same shape, or class indices of dtype i64 or i32",
                     where);
  }
  if (shape[axis] == 0) {
    throw ShapeError(
        name,
        "the class axis has size 0 in " + to_string(logits.type()) + "; give at least one class",
        where);
  }
  require_share(name, options.label_smoothing, where);
  if (options.ignore_index) {
    throw ArgumentError(name,
                        "ignore_index needs class indices, not probabilities; set the "
                        "probabilities of ignored positions to 0",
                        where);
  }
  const double smoothing = options.label_smoothing;
  Var target = probabilities;
  if (smoothing != 0) {
    const Var kept = Located(target, where) * (1 - smoothing);
    target = Located(kept, where) + smoothing / static_cast<double>(shape[axis]);
  }
  const Var scores = multiply(target, log_softmax(logits, axis, where), where);
  return reduce_loss(negate(sum(scores, {axis}, false, where), where), options.reduction, where);
}

}  // namespace

std::span<const Operation* const> classification_operations() {
  static const Operation* const family[] = {
      &cross_entropy_operation, &nll_operation, &cross_entropy_adjoint_operation,
      &nll_adjoint_operation,   &ctc_operation, &ctc_adjoint_operation};
  return family;
}

Var cross_entropy(const Var& logits, const Var& classes, const ClassificationOptions& options,
                  Where where) {
  require_value(classes, "cross_entropy", where);
  if (is_floating(classes.dtype())) return of_probabilities(logits, classes, options, where);
  return record(cross_entropy_operation, logits, classes, options, where);
}

Var nll(const Var& log_probabilities, const Var& classes, const ClassificationOptions& options,
        Where where) {
  return record(nll_operation, log_probabilities, classes, options, where);
}

}  // namespace palimpsest
