#include "autodiff/operations/binary.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autodiff/kernels/kernels.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/broadcasting.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/narrow.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

template <class T>
const BinaryKernel<T, T>* binary_kernels() {
  if constexpr (std::is_same_v<T, double>) return kernels().binary_f64;
  if constexpr (std::is_same_v<T, float>) return kernels().binary_f32;
  if constexpr (std::is_same_v<T, std::int64_t>) return kernels().binary_i64;
  if constexpr (std::is_same_v<T, std::int32_t>) return kernels().binary_i32;
}

template <class T>
const BinaryKernel<T, bool>* comparison_kernels() {
  if constexpr (std::is_same_v<T, double>) return kernels().compare_f64;
  if constexpr (std::is_same_v<T, float>) return kernels().compare_f32;
  if constexpr (std::is_same_v<T, std::int64_t>) return kernels().compare_i64;
  if constexpr (std::is_same_v<T, std::int32_t>) return kernels().compare_i32;
}

template <class T, class Y>
void run(BinaryKernel<T, Y> function, const KernelCall& call) {
  const Operand& a = call.input(0);
  const Operand& b = call.input(1);
  const Operand& y = call.output();
  const T* a_data = a.as<T>();
  const T* b_data = b.as<T>();
  Y* y_data = y.as<Y>();
  const Broadcast<2> broadcast(y.shape(), {a.shape(), b.shape()});
  // The kernels compute at least a cache line of elements at once.
  constexpr std::int64_t short_row = 64;
  if (broadcast.rows() > 1 && broadcast.row_length() < short_row) {
    for_gathered_rows<2, T>(
        broadcast, {a_data, b_data},
        [&](const std::array<const T*, 2>& data, std::int64_t first, std::int64_t n) {
          function(data[0], 1, data[1], 1, y_data + first, n);
        });
    return;
  }
  for_rows(broadcast, [&](const Row<2>& row) {
    function(a_data + row.offset[0], row.step[0], b_data + row.offset[1], row.step[1],
             y_data + row.first, row.length);
  });
}

template <std::size_t index>
void compute_binary(const KernelCall& call) {
  visit_numeric(call.output().dtype(),
                [&]<class T>(T) { run<T, T>(binary_kernels<T>()[index], call); });
}

/// Compares narrow elements as i32.
template <std::size_t index, class T>
void compare_narrow(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, bool* y,
                    std::int64_t n) {
  constexpr std::int64_t piece = 512;
  std::int32_t wide_a[piece];
  std::int32_t wide_b[piece];
  for (std::int64_t first = 0; first < n; first += piece) {
    const std::int64_t count = std::min(piece, n - first);
    widen(a + first * a_step, a_step == 0 ? 1 : count, wide_a);
    widen(b + first * b_step, b_step == 0 ? 1 : count, wide_b);
    comparison_kernels<std::int32_t>()[index](wide_a, a_step, wide_b, b_step, y + first, count);
  }
}

template <std::size_t index, class T>
BinaryKernel<T, bool> comparison_kernel() {
  if constexpr (sizeof(T) < 4)
    return compare_narrow<index, T>;
  else
    return comparison_kernels<T>()[index];
}

/// Calls `f(T{})` for a dtype that is compared without a conversion.
template <class F>
decltype(auto) visit_compared(DType dtype, F&& f) {
  return is_narrow_or_bool(dtype) ? visit_narrow(dtype, f) : visit_numeric(dtype, f);
}

template <std::size_t index>
void compute_comparison(const KernelCall& call) {
  visit_compared(call.input().dtype(),
                 [&]<class T>(T) { run<T, bool>(comparison_kernel<index, T>(), call); });
}

template <std::size_t index, class T>
void compute_binary_run(const PointwiseCall& call) {
  binary_kernels<T>()[index](call.input<T>(0), call.steps[0], call.input<T>(1), call.steps[1],
                             call.to<T>(), call.n);
}

template <std::size_t index, class T>
void compare_run(const PointwiseCall& call) {
  comparison_kernel<index, T>()(call.input<T>(0), call.steps[0], call.input<T>(1), call.steps[1],
                                call.to<bool>(), call.n);
}

template <class F>
PointwiseKernel binary_run_of(const NodeView& node) {
  const DType dtype = node.output().dtype;
  const auto arithmetic = is_floating(dtype) ? functions::arithmetic_of<F>() : ArithmeticStep::none;
  return visit_numeric(compute_dtype(dtype), [&]<class T>(T) {
    constexpr std::size_t index = functions::position<F, functions::Binary>;
    return PointwiseKernel{compute_binary_run<index, T>, true, arithmetic};
  });
}

template <std::size_t index>
PointwiseKernel comparison_run_of(const NodeView& node) {
  return visit_compared(compute_dtype(node.input(0).dtype),
                        []<class T>(T) { return PointwiseKernel{compare_run<index, T>, true}; });
}

/// Sets the adjoint of operand `i`, summed over its broadcast axes.
void set_operand(const Pullback& p, std::size_t i, const Var& operand, const Var& adjoint) {
  const bool broadcast = !p.tape().have_one_shape(adjoint.id(), operand.id());
  p.set(i, broadcast ? sum_to(adjoint, operand.shape()) : adjoint);
}

template <class F>
void pull_back_binary(const Pullback& p) {
  const Var a = p.input(0);
  const Var b = p.input(1);
  if (p.wants(0)) set_operand(p, 0, a, F::da(p.adjoint(), a, b, p.output()));
  if constexpr (requires { F::db(a, a, b, b); }) {
    if (p.wants(1)) set_operand(p, 1, b, F::db(p.adjoint(), a, b, p.output()));
  } else {
    p.set_none(1);
  }
}

template <class F>
constexpr void (*pullback_of())(const Pullback&) {
  if constexpr (requires(const Var& v) { F::da(v, v, v, v); }) return pull_back_binary<F>;
  return nullptr;
}

template <class F>
Cost binary_cost(const NodeView& node) {
  const ValueType y = node.output();
  return {F::text.flops * static_cast<double>(y.shape.elements()),
          static_cast<double>(node.input(0).bytes() + node.input(1).bytes() + y.bytes())};
}

template <class F>
constexpr functions::Neutral neutral_of() {
  if constexpr (requires { F::neutral; }) return F::neutral;
  return {};
}

template <class F>
Operation describe(void (*compute)(const KernelCall&), void (*vjp)(const Pullback&),
                   PointwiseKernel (*pointwise)(const NodeView&)) {
  return {.name = F::text.name,
          .formula = F::text.formula,
          .summary = F::text.summary,
          .compute = compute,
          .vjp = vjp,
          .cost = binary_cost<F>,
          .pointwise = pointwise,
          .neutral = neutral_of<F>(),
          .mixed = functions::Magnifies<F> ? MixedPrecision::wide : MixedPrecision::follows};
}

template <class... F>
auto make_binary(functions::List<F...>) {
  return std::array{describe<F>(compute_binary<functions::position<F, functions::Binary>>,
                                pullback_of<F>(), binary_run_of<F>)...};
}

template <class... F>
auto make_comparisons(functions::List<F...>) {
  return std::array{
      describe<F>(compute_comparison<functions::position<F, functions::Comparison>>, nullptr,
                  comparison_run_of<functions::position<F, functions::Comparison>>)...};
}

/// True at the position of every function that supports floating dtypes only.
template <class... F>
constexpr std::array<bool, sizeof...(F)> floating_only(functions::List<F...>) {
  return {(requires { F::floating; })...};
}

const auto& binary_table() {
  static const auto operations = make_binary(functions::Binary{});
  return operations;
}

const auto& comparison_table() {
  static const auto operations = make_comparisons(functions::Comparison{});
  return operations;
}

Var record_pair(const Operation& operation, const Var& given_a, const Var& given_b, bool to_bool,
                const Where& where) {
  const Var pair[] = {given_a, given_b};
  Tape& tape = common_tape(pair, operation.name, where);
  const Var a = tape.here(given_a, operation.name, where);
  const Var b = tape.here(given_b, operation.name, where);
  const DType dtype_a = tape.dtype(a.id());
  const DType dtype_b = tape.dtype(b.id());
  DType dtype = promote(dtype_a, dtype_b);
  if (dtype == DType::boolean && !to_bool) {
    throw DTypeError(operation.name,
                     "takes numbers, not " + to_string(a.type()) + " and " + to_string(b.type()) +
                         "; cast the operands first",
                     where);
  }
  const DType narrow = dtype;
  if (is_narrow_integer(dtype) && !to_bool) dtype = DType::i32;
  const ValueType type{tape.have_one_shape(a.id(), b.id())
                           ? tape.shape(a.id())
                           : broadcast(a.shape(), b.shape(), operation.name, where),
                       to_bool ? DType::boolean : dtype};
  const Var operands[] = {dtype_a == dtype ? a : cast(a, dtype, where),
                          dtype_b == dtype ? b : cast(b, dtype, where)};
  const Var result = tape.record(operation, operands, {&type, 1}, {}, where);
  return to_bool || narrow == dtype ? result : cast(result, narrow, where);
}

}  // namespace

std::span<const Operation* const> binary_operations() {
  static const auto pointers = [] {
    std::vector<const Operation*> list;
    for (const Operation& operation : binary_table()) list.push_back(&operation);
    for (const Operation& operation : comparison_table()) list.push_back(&operation);
    return list;
  }();
  return pointers;
}

const Operation& binary_operation(std::size_t index) { return binary_table()[index]; }

Var record_binary(std::size_t index, const Var& a, const Var& b, const Where& where) {
  static constexpr auto floating = floating_only(functions::Binary{});
  const Operation& operation = binary_table()[index];
  if (floating[index] && !is_floating(promote(a.dtype(), b.dtype()))) {
    throw DTypeError(operation.name,
                     "takes floating dtypes, not " + to_string(a.type()) + " and " +
                         to_string(b.type()) + "; cast one first",
                     where);
  }
  return record_pair(operation, a, b, false, where);
}

Var record_comparison(std::size_t index, const Var& a, const Var& b, const Where& where) {
  return record_pair(comparison_table()[index], a, b, true, where);
}

namespace {

/// True for numbers that no integer represents: fractions, infinities and NaN.
bool is_fraction(double number) { return !(std::isfinite(number) && number == std::floor(number)); }

}  // namespace

Var number_like(const Var& x, double number, const char* operation, const Where& where) {
  require_value(x, operation, where);
  const DType dtype = x.dtype();
  if (is_floating(dtype)) return full(x.tape(), {}, number, dtype, where);
  if (is_fraction(number)) return full(x.tape(), {}, number, DType::f32, where);
  // The ends of the integer ranges; as powers of two they are exact in f64.
  const bool is_signed = dtype != DType::u8 && dtype != DType::boolean;
  const auto bits = static_cast<int>(8 * size_of(dtype)) - (is_signed ? 1 : 0);
  const double end = dtype == DType::boolean ? 2 : std::ldexp(1, bits);
  if (number < (is_signed ? -end : 0) || number >= end) {
    throw ArgumentError(operation,
                        "the number " + number_text(number) + " is out of range for " +
                            std::string(name_of(dtype)) + "; cast the other operand first",
                        where);
  }
  return full(x.tape(), {}, number, dtype, where);
}

namespace {

/// A function of x and a number. For an integer x, the number becomes a value of x's dtype; if it
/// is a fraction, x is converted to f32 instead.
template <class Unary, class Binary>
Var with_number(const Var& x, double a, bool number_first, const Where& where) {
  require_value(x, Binary::text.name, where);
  if (is_floating(x.dtype())) return unary<Unary>(x, where, {a});
  if (is_fraction(a)) return unary<Unary>(cast(x, DType::f32, where), where, {a});
  return number_first ? binary<Binary>(a, x, where) : binary<Binary>(x, a, where);
}

}  // namespace

using namespace functions;

Var operator+(const Located& a, const Var& b) { return binary<Add>(a.var, b, a.where); }
Var operator-(const Located& a, const Var& b) { return binary<Subtract>(a.var, b, a.where); }
Var operator*(const Located& a, const Var& b) { return binary<Multiply>(a.var, b, a.where); }
Var operator/(const Located& a, const Var& b) { return binary<Divide>(a.var, b, a.where); }
Var operator-(const Located& x) {
  require_value(x.var, "negate", x.where);
  return is_floating(x.var.dtype()) ? unary<Negate>(x.var, x.where)
                                    : binary<Subtract>(0, x.var, x.where);
}
Var operator+(const Located& x, double a) {
  return with_number<Shift, Add>(x.var, a, false, x.where);
}
Var operator+(double a, const Located& x) {
  return with_number<Shift, Add>(x.var, a, true, x.where);
}
Var operator-(const Located& x, double a) {
  require_value(x.var, "subtract", x.where);
  if (is_floating(x.var.dtype())) return unary<Shift>(x.var, x.where, {-a});
  if (is_fraction(a)) return unary<Shift>(cast(x.var, DType::f32, x.where), x.where, {-a});
  return binary<Subtract>(x.var, a, x.where);
}
Var operator-(double a, const Located& x) {
  return with_number<SubtractFrom, Subtract>(x.var, a, true, x.where);
}
Var operator*(const Located& x, double a) {
  return with_number<Scale, Multiply>(x.var, a, false, x.where);
}
Var operator*(double a, const Located& x) {
  return with_number<Scale, Multiply>(x.var, a, true, x.where);
}
Var operator/(const Located& x, double a) {
  return with_number<DivideBy, Divide>(x.var, a, false, x.where);
}
Var operator/(double a, const Located& x) { return binary<Divide>(a, x.var, x.where); }

Var& operator+=(Var& x, const Located& y) { return x = binary<Add>(x, y.var, y.where); }
Var& operator-=(Var& x, const Located& y) { return x = binary<Subtract>(x, y.var, y.where); }
Var& operator*=(Var& x, const Located& y) { return x = binary<Multiply>(x, y.var, y.where); }
Var& operator/=(Var& x, const Located& y) { return x = binary<Divide>(x, y.var, y.where); }
Var& operator+=(Var& x, const LocatedNumber& a) { return x = Located(x, a.where) + a.number; }
Var& operator-=(Var& x, const LocatedNumber& a) { return x = Located(x, a.where) - a.number; }
Var& operator*=(Var& x, const LocatedNumber& a) { return x = Located(x, a.where) * a.number; }
Var& operator/=(Var& x, const LocatedNumber& a) { return x = Located(x, a.where) / a.number; }

Var operator>(const Located& a, const Var& b) { return greater(a.var, b, a.where); }
Var operator>=(const Located& a, const Var& b) { return greater_equal(a.var, b, a.where); }
Var operator<(const Located& a, const Var& b) { return less(a.var, b, a.where); }
Var operator<=(const Located& a, const Var& b) { return less_equal(a.var, b, a.where); }
Var operator>(const Located& x, double a) { return greater(x.var, a, x.where); }
Var operator>=(const Located& x, double a) { return greater_equal(x.var, a, x.where); }
Var operator<(const Located& x, double a) { return less(x.var, a, x.where); }
Var operator<=(const Located& x, double a) { return less_equal(x.var, a, x.where); }
Var operator>(double a, const Located& x) { return less(x.var, a, x.where); }
Var operator>=(double a, const Located& x) { return less_equal(x.var, a, x.where); }
Var operator<(double a, const Located& x) { return greater(x.var, a, x.where); }
Var operator<=(double a, const Located& x) { return greater_equal(x.var, a, x.where); }

Var sum_to(const Var& y, const Shape& shape, Where where) {
  require_value(y, "sum_to", where);
  const Shape from = y.shape();
  if (from == shape) return y;
  const int extra = from.rank() - shape.rank();
  std::vector<int> axes;
  for (int axis = 0; axis < from.rank(); ++axis) {
    // Integers are summed along axes of length 1 too, since their sum has another dtype.
    const bool is_sum = from[axis] != 1 || (axis < extra && !is_floating(y.dtype()));
    if (is_sum && (axis < extra || shape[axis - extra] == 1)) axes.push_back(axis);
  }
  return reshape(axes.empty() ? y : sum(y, axes, true, where), shape, where);
}

}  // namespace palimpsest
