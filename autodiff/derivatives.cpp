#include "autodiff/gradient.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "autodiff/interpreter.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {
namespace {

/// Calls `f` with gradients enabled, whether or not the caller has disabled them.
template <class F>
auto differentiable(Tape& tape, F f) {
  const Tape::WithGradient guard(tape);
  return f();
}

void set_element(const Tensor& tensor, std::int64_t i, double value) {
  visit(tensor.dtype(), [&]<class T>(T) {
    tensor.data<T>()[static_cast<std::size_t>(i)] = convert_element<T>(value);
  });
}

/// Sets column `i` of a matrix with so many columns.
void set_column(const Tensor& matrix, std::int64_t columns, std::int64_t i, const Tensor& values) {
  visit(matrix.dtype(), [&]<class T>(T) {
    std::int64_t place = i;
    for (const T value : values.data<T>()) {
      matrix.data<T>()[static_cast<std::size_t>(place)] = value;
      place += columns;
    }
  });
}

/// The values that a derivative needs, when it is computed for one seed after another. Values that
/// do not depend on the seed are computed once. A tape with an evaluator may have a budget, so they
/// are not kept there.
class SeededValues {
 public:
  SeededValues(Tape& tape, const Var& seed, const Var& slope) : tape_(tape) {
    const std::uint32_t last = tape.producer(slope.id());
    std::vector<bool> needed(last + 1);
    needed[last] = true;
    for (NodeId node = last + 1; node-- > 0;) {
      if (!needed[node]) continue;
      for (const ValueId input : tape.inputs(node)) needed[tape.producer(input)] = true;
    }
    std::vector<bool> depends(tape.value_count());
    depends[seed.id()] = true;
    std::vector<bool> read(tape.value_count());
    for (NodeId node = seed.node() + 1; node <= last; ++node) {
      const auto inputs = tape.inputs(node);
      if (!needed[node] || std::ranges::none_of(inputs, [&](ValueId x) { return depends[x]; })) {
        continue;
      }
      for (ValueId i = 0; i < tape.output_count(node); ++i) {
        depends[tape.first_output(node) + i] = true;
        changing_.push_back(tape.first_output(node) + i);
      }
      for (const ValueId input : inputs) {
        if (depends[input] || tape.has_value(input) || read[input]) continue;
        read[input] = true;
        fixed_.push_back(input);
      }
    }
    if (tape.evaluator() != nullptr) {
      fixed_.clear();
    } else {
      interpret(tape, fixed_);
    }
  }
  ~SeededValues() {
    for (const ValueId value : fixed_) tape_.drop(value);
  }
  SeededValues(const SeededValues&) = delete;
  SeededValues& operator=(const SeededValues&) = delete;

  /// Forgets what was computed for the last seed.
  void drop() const {
    for (const ValueId value : changing_) tape_.drop(value);
  }

 private:
  Tape& tape_;
  std::vector<ValueId> changing_;
  std::vector<ValueId> fixed_;
};

/// Throws unless there is a vector for each x, of its type. `role` is what the function calls it.
void require_one_for_each(std::span<const Var> vectors, std::span<const Var> xs,
                          const char* operation, const std::string& role, const Where& where) {
  if (vectors.size() != xs.size()) {
    throw ArgumentError(operation,
                        std::to_string(vectors.size()) + " " + role + "s for " +
                            std::to_string(xs.size()) + " variables; give one for each",
                        where);
  }
  for (std::size_t i = 0; i < xs.size(); ++i) {
    require_value(xs[i], operation, where);
    require_value(vectors[i], operation, where);
    if (vectors[i].type() == xs[i].type()) continue;
    throw ShapeError(operation,
                     role + " " + std::to_string(i) + " is " + to_string(vectors[i].type()) +
                         " for a variable " + to_string(xs[i].type()) + "; give the same type",
                     where);
  }
}

}  // namespace

std::vector<Var> jvp(std::span<const Var> ys, std::span<const Var> xs,
                     std::span<const Var> tangents, Where where) {
  Tape& tape = common_tape(ys, "jvp", where);
  require_one_for_each(tangents, xs, "jvp", "tangent", where);
  std::vector<Var> seeds;
  for (const Var& y : ys) seeds.push_back(full_like(y, 0, where));
  return vjp(differentiable(tape, [&] { return vjp(ys, xs, seeds, where); }), seeds, tangents,
             where);
}

Var jvp(const Var& y, const Var& x, const Var& tangent, Where where) {
  return jvp({&y, 1}, {&x, 1}, {&tangent, 1}, where)[0];
}

std::vector<Var> hvp(const Var& y, std::span<const Var> xs, std::span<const Var> directions,
                     Where where) {
  Tape& tape = common_tape({&y, 1}, "hvp", where);
  require_one_for_each(directions, xs, "hvp", "direction", where);
  return vjp(differentiable(tape, [&] { return gradient(y, xs, where); }), xs, directions, where);
}

Var hvp(const Var& y, const Var& x, const Var& direction, Where where) {
  return hvp(y, {&x, 1}, {&direction, 1}, where)[0];
}

Tensor jacobian(const Var& y, const Var& x, Where where) {
  const Var both[] = {y, x};
  Tape& tape = common_tape(both, "jacobian", where);
  const Var own = tape.here(y, "jacobian", where);
  tape.require_fixed(own.id(), "jacobian",
                     "record derivatives with gradient(), jvp() or hvp(), or call jacobian() and "
                     "hessian() on a tape of their own",
                     where);
  const ValueType type = y.type();
  Shape shape = type.shape;
  if (shape.rank() + x.rank() > max_rank) {
    throw ShapeError("jacobian",
                     to_string(type) + " by " + to_string(x.type()) + " has more than " +
                         std::to_string(max_rank) + " axes; reshape one of them",
                     where);
  }
  for (const std::int64_t size : x.shape()) shape.push_back(size);
  const Tensor result(shape, x.dtype());
  const std::int64_t rows = type.shape.elements();
  const std::int64_t columns = x.shape().elements();
  if (rows == 0) return result;
  // One derivative is recorded, and recomputed for each seed.
  const InUse::Use use(tape.in_use(), tape_use::differentiating, "jacobian", &where);
  const TemporaryNodes region(tape);
  const bool by_columns = columns < rows;
  const ValueType of_seed = by_columns ? x.type() : type;
  const Tensor unit = Tensor::zeros(of_seed.shape, of_seed.dtype);
  const Var seed = tape.constant(unit, {}, where);
  const Var slope =
      by_columns ? jvp(y, x, seed, where) : vjp({&y, 1}, {&x, 1}, {&seed, 1}, where)[0];
  const SeededValues values(tape, seed, slope);
  for (std::int64_t i = 0; i < unit.elements(); ++i) {
    set_element(unit, i, 1);
    tape.set_buffer(seed.id(), unit.buffer());
    values.drop();
    const Tensor value = slope.tape().value(slope.id()).to(x.dtype());
    if (by_columns) {
      set_column(result, columns, i, value);
    } else {
      std::memcpy(result.raw() + i * value.bytes(), value.raw(),
                  static_cast<std::size_t>(value.bytes()));
    }
    set_element(unit, i, 0);
  }
  return result;
}

Tensor hessian(const Var& y, const Var& x, Where where) {
  Tape& tape = common_tape({&y, 1}, "hessian", where);
  if (y.shape().elements() != 1) {
    throw ShapeError("hessian", "y is " + to_string(y.type()) + "; reduce it to one element",
                     where);
  }
  const InUse::Use use(tape.in_use(), tape_use::differentiating, "hessian", &where);
  const TemporaryNodes region(tape);
  return jacobian(differentiable(tape, [&] { return gradient(y, x, where); }), x, where);
}

}  // namespace palimpsest
