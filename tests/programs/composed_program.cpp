#include "tests/programs/composed_program.h"

#include <algorithm>
#include <map>

#include "tests/autodiff/operation_rows.h"
#include "tests/programs/composed_loops.h"

namespace palimpsest {
namespace {

/// All rows, grouped by operation.
const std::vector<std::vector<OperationRow>>& rows_by_operation() {
  static const std::vector<std::vector<OperationRow>> rows = [] {
    std::map<std::string, std::vector<OperationRow>> found;
    for (const RowFamily& family : row_families()) {
      for (OperationRow& row : family.rows()) found[row.operation].push_back(std::move(row));
    }
    std::vector<std::vector<OperationRow>> list;
    for (auto& [operation, of_operation] : found) list.push_back(std::move(of_operation));
    return list;
  }();
  return rows;
}

/// Returns x in another memory order, with a derivative, as user code may do.
const CustomOperation& doubled() {
  static const CustomOperation operation({
      .name = "doubled",
      .forward =
          [](const CustomCall& call) {
            const auto x = call.inputs[0].data<double>();
            const auto y = call.outputs[0].data<double>();
            std::ranges::transform(x, y.begin(), [](double each) { return 2 * each; });
          },
      .vjp = [](const Pullback& pull) { pull.set(0, pull.adjoint() * 2.0); },
  });
  return operation;
}

class Composer : private ComposedLoops {
 public:
  Composer(Tape& tape, std::uint64_t seed, std::span<const Var> parameters,
           ComposedModules& modules, const std::string& journals)
      : ComposedLoops(tape, seed, parameters, journals), modules_(modules) {}

  void step(std::uint32_t number) {
    draw_from(number);
    const std::size_t later = seed_ < first_with_columns ? 20 : 21;
    const std::size_t kinds = seed_ < first_with_modules ? 17 : later;
    const std::size_t kind = pool_.empty() ? 0 : below(kinds);
    if (kind < 7) {
      apply_row();
    } else if (kind < 9) {
      combine();
    } else if (kind < 12) {
      move();
    } else if (kind < 14) {
      reduce();
    } else if (kind < 15) {
      multiply_matrices();
    } else if (kind < 17) {
      compose_inside();
    } else if (kind < 20) {
      apply_module(number);
    } else {
      reduce_matrices();
    }
  }

  ComposedProgram finish() {
    draw_from(0xffffffffu);
    if (pool_.empty()) keep("parameter", parameter(Tensor::ones({3}, DType::f64)));
    // A loss of a tape without parameters has no gradient. Nothing reads this one.
    if (made_.parameters.empty()) parameter(Tensor::ones({1}, DType::f64));
    made_.loss = term(pool_.back());
    for (const Var& value : pool_) {
      if (below(3) == 0) made_.loss = made_.loss + term(value);
    }
    made_.other_loss = term(any()) + term(any());
    made_.last = pool_.back();
    made_.updates.assign(tape_.updates().begin(), tape_.updates().end());
    return std::move(made_);
  }

 private:
  // Steps -----------------------------------------------------------------------------------------

  struct Call {
    const OperationRow& row;
    std::vector<Var> inputs;
  };

  /// A random row whose inputs are perturbed by existing values, so little that they keep their
  /// signs and their order.
  Call draw_call() {
    const auto& rows = rows_by_operation();
    const std::vector<OperationRow>& of_operation = rows[below(rows.size())];
    const OperationRow& row = of_operation[below(of_operation.size())];
    DType dtype = any_dtype();
    if (!row.half && is_half(dtype)) dtype = DType::f32;
    Call call{row, {}};
    for (const Tensor& input : row.inputs) {
      if (!is_floating(input.dtype())) {
        call.inputs.push_back(tape_.constant(input));
        continue;
      }
      const Tensor numbers = input.to(dtype);
      const Var base = below(2) == 0 ? parameter(numbers) : tape_.constant(numbers);
      const bool alone = pool_.empty() || below(4) == 0;
      call.inputs.push_back(alone ? base
                                  : base * (1 + 0.01 * reshaped(bounded(dtype), input.shape())));
    }
    return call;
  }

  static std::string name_of_call(const Call& call) {
    return call.row.operation + " (" + call.row.label + ")";
  }

  void apply_row() {
    const Call call = draw_call();
    keep(name_of_call(call), call.row.call(call.inputs));
  }

  void apply_module(std::uint32_t number) {
    const ComposedModules::Module& module = modules_.of_step(number);
    const Var x = reshaped(bounded(module.input.dtype), module.input.shape);
    if (module.in_checkpoint) module.parameters.record(tape_);
    const Var y = module.in_checkpoint ? checkpoint(module.call, x) : module.call(x);
    std::vector<Var> parameters;
    for (const nn::Parameter& each : module.parameters.trainable()) {
      parameters.push_back(each.on(tape_));
    }
    std::ranges::sort(parameters, {}, &Var::id);  // as they were recorded
    made_.parameters.insert(made_.parameters.end(), parameters.begin(), parameters.end());
    keep(module.line, y);
  }

  void combine() {
    const Var a = bounded();
    const Var b = like(bounded(a.dtype()), a);
    switch (below(8)) {
      case 0:
        return keep("add", a + b);
      case 1:
        return keep("subtract", a - 0.5 * b);
      case 2:
        return keep("multiply", a * b);
      case 3:
        return keep("divide", a / (2 + b));
      case 4:
        return keep("where", where(a > b, a, 0.25));
      case 5:
        return keep("one and zero", a * 1.0 + full_like(a, 0) * b);
      case 6: {  // the adjoints of two sums are added
        const Var part = a.shape().elements() > 1 ? reshaped(a, {a.shape().elements() / 2}) : a;
        return keep("sum and sum of a part", sum(a) + sum(part));
      }
      default:
        return keep("exp", exp(-(a * a)));
    }
  }

  /// Multiplies matrices of sizes around which products change their method, including size 0.
  void multiply_matrices() {
    constexpr std::int64_t sizes[] = {0, 1, 2, 5, 16, 33};
    const auto any_size = [&] { return sizes[below(std::size(sizes))]; };
    const std::int64_t rows = any_size();
    const std::int64_t inner = below(3) == 0 ? 0 : any_size();
    const std::int64_t columns = any_size();
    const MatmulOptions options{.transpose_a = below(2) == 0, .transpose_b = below(2) == 0};
    const auto matrix = [&](const Var& x, std::int64_t m, std::int64_t n, bool transposed) {
      return reshaped(x, transposed ? Shape{n, m} : Shape{m, n});
    };
    const Var x = bounded();
    const Var a = matrix(x, rows, inner, options.transpose_a);
    const Var b = matrix(bounded(x.dtype()), inner, columns, options.transpose_b);
    keep("product over " + std::to_string(inner), matmul(a, b, options));
  }

  void move() {
    const Var x = below(2) == 0 ? any() : bounded();
    if (x.rank() == 0) return keep("broadcast", broadcast_to(x, {5}));
    const int axis = axis_of(x);
    const std::int64_t size = x.shape()[axis];
    switch (below(9)) {
      case 0:
        return keep("roll", roll(x, below(std::int64_t{7}) - 3, axis));
      case 1: {
        const std::int64_t first = size == 0 ? 0 : below(size);
        const std::int64_t step = below(3) == 0 ? 2 : 1;
        return keep("slice", slice(x, axis, {.start = first, .step = step}));
      }
      case 2:
        return keep("flip", flip(x, {axis}));
      case 3: {
        std::vector<Padding> widths(static_cast<std::size_t>(x.rank()));
        widths[static_cast<std::size_t>(axis)] = {below(std::int64_t{3}), below(std::int64_t{3})};
        return keep("pad", pad(x, widths, 0.5));
      }
      case 4: {
        const Var first = slice(x, axis, {.stop = size / 2});
        const Var rest = slice(x, axis, {.start = size / 2});
        return keep("rotate by concat", concat({rest, first}, axis));
      }
      case 5:
        return keep("concat with moved", concat({x, roll(x, 1, axis)}, axis));
      case 6:
        return x.rank() < 2 ? keep("unsqueeze", reshape(x, {1, -1}))
                            : keep("transpose", transpose(x));
      case 7:
        return keep("flatten", reshape(x, {x.shape().elements()}));
      default:
        return size == 0 ? keep("same", identity(x)) : keep("select", select(x, axis, below(size)));
    }
  }

  void reduce() {
    const Var x = bounded();
    const Axes axes = x.rank() == 0 || below(3) == 0 ? Axes{} : Axes{axis_of(x)};
    const bool empty = x.shape().elements() == 0;
    switch (below(6)) {
      case 0:
        return keep("sum", sum(x, axes));
      case 1:
        return empty ? keep("sum", sum(x, axes)) : keep("mean", mean(x, axes, true));
      case 2:
        return empty ? keep("sum", sum(x, axes)) : keep("max", max(x, axes));
      case 3:
        return empty ? keep("sum", sum(x, axes)) : keep("argmax", argmax(x, axes));
      case 4:
        return x.rank() == 0 ? keep("sum", sum(x)) : keep("cumsum", cumsum(x, axis_of(x)) * 0.1);
      default:
        return x.rank() == 0 || empty ? keep("sum", sum(x)) : keep("softmax", softmax(x));
    }
  }

  /// Reduces what fused groups make of a row and a column. There are enough rows for sums over them
  /// to end a group, and columns around the lanes of sums and the loops of native code.
  void reduce_matrices() {
    constexpr std::int64_t row_counts[] = {15, 16, 17, 64, 70};
    constexpr std::int64_t column_counts[] = {2, 3, 5, 8, 16, 33};
    const std::int64_t groups = 1 + below(2);
    const std::int64_t rows = row_counts[below(std::size(row_counts))];
    const std::int64_t columns = column_counts[below(std::size(column_counts))];
    const Var x = reshaped(bounded(), {groups, rows, columns});
    const Var row = reshaped(bounded(x.dtype()), {columns});
    const Var column = reshaped(bounded(x.dtype()), {rows, 1});
    const Var y = below(2) == 0 ? x * row + column : tanh(x * 2.0 - row);
    const std::string name = " of " + std::to_string(rows) + " rows";
    switch (below(5)) {
      case 0:
        return keep("sum" + name, sum(y, {1}));
      case 1:
        return keep("sums" + name, sum(y, {1}) + mean(y * y, {1}));
      case 2:
        return keep("sums twice" + name, sum(sum(y * x, {1}) * row, {0}) + sum(y));
      case 3:
        return keep("logsumexp" + name, logsumexp(y, {2}) + sum(y * x, {2}));
      default:
        return keep("rows over their sums" + name, y / (1 + abs(sum(y, {1}, true))));
    }
  }

  /// Composes operations inside a function that the library calls, or inside a derivative.
  void compose_inside() {
    switch (below(seed_ < first_with_nesting ? 8 : seed_ < first_with_components ? 11 : 13)) {
      case 0: {
        const Call call = draw_call();
        const auto f = [&row = call.row](std::span<const Var> xs) {
          return std::vector<Var>{row.call(xs)};
        };
        return keep("checkpoint of " + name_of_call(call), checkpoint(f, call.inputs)[0]);
      }
      case 1: {
        const Var x = bounded();
        const Var captured = like(bounded(x.dtype()), x);
        const auto f = [&](const Var& a) { return tanh(a * captured) + roll_all(a); };
        return keep("checkpoint that captures", checkpoint(f, x));
      }
      case 2:
        return advect();
      case 5:
        return accumulate();
      case 6:
        return shrink();
      case 8:
        return nest();
      case 9:
        return differentiate();
      case 10:
        return differentiate_in_steps();
      case 11:
      case 12:
        return follow();
      case 3:
        return keep("custom", doubled()({bounded(DType::f64)}));
      case 4: {
        const Var x = any();
        if (!is_floating(x.dtype())) return keep("cast", cast(x, any_dtype()));
        const Var y = sum(square(tanh(x)));
        return keep("gradient", gradient(y, x));
      }
      default:
        return keep("cast", cast(bounded(), any_dtype()));
    }
  }

  /// A derivative of a value by an earlier one, or a product with second derivatives.
  void differentiate() {
    const Var later = any();
    const Var x = pool_[below(pool_.size())];
    if (!is_floating(x.dtype()) || !is_floating(later.dtype())) {
      return keep("cast", cast(later, any_dtype()));
    }
    made_.has_derivatives = true;
    const Var y = sum(square(tanh(later)));
    const Var direction = below(2) == 0 ? x : cast(like(bounded(), x), x.dtype());
    switch (below(3)) {
      case 0:
        return keep("gradient by a value", gradient(y, x));
      case 1:
        return keep("jvp", jvp(tanh(later), x, direction));
      default:
        return keep("hvp", hvp(y, x, direction));
    }
  }

  /// A term of the loss.
  Var term(const Var& value) {
    const Var x = is_floating(value.dtype()) ? value : cast(value, DType::f64);
    switch (below(seed_ < first_with_weights ? 6 : 7)) {
      case 0:
        return cast(sum(tanh(x)), DType::f64);
      case 1:
        return cast(sum(square(tanh(x))), DType::f64);
      case 2:
        return cast(sum(x) * 0.5, DType::f64);
      case 3:
        return x.shape().elements() == 0 ? full(tape_, {}, 1, DType::f64)
                                         : cast(mean(x), DType::f64);
      case 4:
        return sum(stop_gradient(cast(x, DType::f64))) * 0.0;
      case 6:
        return mean_over_weights(x);
      default:
        return cast(sum(x), DType::f64);
    }
  }

  /// In a batch that is cut, the parts share their weights.
  Var mean_over_weights(const Var& x) {
    if (x.shape().elements() == 0) return full(tape_, {}, 1, DType::f64);
    const Var y = tanh(x);
    const Var weights = where(y > 0.1, 1.0, 0.25);
    return cast(weighted_mean(sum(square(y) * weights), sum(weights)), DType::f64);
  }

  ComposedModules& modules_;
};

}  // namespace

ComposedProgram compose(Tape& tape, const ProgramText& text, std::span<const Var> parameters,
                        ComposedModules* modules, const std::string& journals) {
  ComposedModules own(text.seed);
  Composer composer(tape, text.seed, parameters, modules != nullptr ? *modules : own, journals);
  for (const std::uint32_t step : text.steps) composer.step(step);
  return composer.finish();
}

}  // namespace palimpsest
