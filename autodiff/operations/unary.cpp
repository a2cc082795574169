#include "autodiff/operations/unary.h"

#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "autodiff/kernels/kernels.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/registry.h"
#include "autodiff/parallel.h"

namespace palimpsest {

/// a where c > 0, b elsewhere; the `Var` overload for the formulas.
template <class A, class B>
Var choose(const Var& c, const A& a, const B& b) {
  return where(greater(c, 0), a, b);
}

Var root(const Var& x) { return sqrt(x); }
Var exponential(const Var& x) { return exp(x); }
Var times_gaussian(const Var& factor, const Var& x, double scale) {
  if (scale > 0) return factor * exp(x * x * scale);
  // Beyond ±40, the exponential is 0. Its derivative is too, also at ±∞, where 0·x would be NaN.
  const Var near = clamp(x, -40, 40);
  return factor * exp(near * near * scale);
}
Var over_gaussian(const Var& factor, const Var& x) { return factor * exp(x * x); }
/// x² up to the end of the range, and constant beyond. The derivative of x² at ±∞ is infinite, and
/// its product with a derivative 0 NaN.
Var bounded_square(const Var& x) {
  const double most = x.dtype() == DType::f64 ? 0x1p511 : 0x1p63;
  const Var near = clamp(x, -most, most);
  return near * near;
}

namespace {

using functions::Unary;

PointwiseKernel floating_kernel(DType dtype, void (*f32)(const PointwiseCall&),
                                void (*f64)(const PointwiseCall&)) {
  return {compute_dtype(dtype) == DType::f64 ? f64 : f32};
}

/// Null if the function has no parameters.
const double* parameters_of(const Attributes& attributes) {
  return attributes.empty() ? nullptr : attributes.as<Parameters>().data();
}

constexpr std::size_t index_of(functions::Place function) {
  using namespace functions;
  constexpr std::size_t sizes[] = {Arithmetic::size, Exponential::size, Trigonometric::size,
                                   Special::size,    Activation::size,  Loss::size};
  const auto families = std::span(sizes).first(static_cast<std::size_t>(function.family));
  return std::accumulate(families.begin(), families.end(), function.position);
}

// The following functions take a function's position in the table instead of being templates: more
// than forty instantiations would take long to compile.

void compute_unary(const KernelCall& call, std::size_t index) {
  const double* parameters = parameters_of(call.attributes);
  const Operand& x = call.input();
  const Operand& y = call.output();
  visit_floating(y.dtype(), [&]<class T>(T) {
    const auto function = kernels().unary<T>()[index];
    parallel_chunks(y.elements(), grain_for(4), [&](std::int64_t begin, std::int64_t end) {
      function(x.as<T>() + begin, y.as<T>() + begin, end - begin, parameters);
    });
  });
}

void compute_unary_adjoint(const KernelCall& call, std::size_t index) {
  const double* parameters = parameters_of(call.attributes);
  const Operand& dy = call.input(0);
  const Operand& z = call.input(1);
  const Operand& dx = call.output();
  visit_floating(dx.dtype(), [&]<class T>(T) {
    const auto function = kernels().adjoint<T>()[index];
    parallel_chunks(dx.elements(), grain_for(4), [&](std::int64_t begin, std::int64_t end) {
      function(dy.as<T>() + begin, z.as<T>() + begin, dx.as<T>() + begin, end - begin, parameters);
    });
  });
}

template <std::size_t index, class T>
void compute_unary_run(const PointwiseCall& call) {
  kernels().unary<T>()[index](call.input<T>(), call.to<T>(), call.n,
                              parameters_of(call.attributes));
}

template <std::size_t index, class T>
void compute_adjoint_run(const PointwiseCall& call) {
  kernels().adjoint<T>()[index](call.input<T>(0), call.input<T>(1), call.to<T>(), call.n,
                                parameters_of(call.attributes));
}

/// Writes the constant of an arithmetic operation.
template <class F, class T>
void write_number(const Attributes& attributes, std::byte* to) {
  if constexpr (requires { F::number; }) {
    *reinterpret_cast<T*>(to) = static_cast<T>(F::number);
  } else {
    *reinterpret_cast<T*>(to) = static_cast<T>(*parameters_of(attributes));
  }
}

template <class F>
PointwiseKernel unary_run_of(const NodeView& node) {
  constexpr std::size_t index = functions::position<F, Unary>;
  const DType dtype = node.output().dtype;
  PointwiseKernel kernel =
      floating_kernel(dtype, compute_unary_run<index, float>, compute_unary_run<index, double>);
  kernel.arithmetic = functions::arithmetic_of<F>();
  if constexpr (functions::arithmetic_of<F>() != ArithmeticStep::none ||
                std::same_as<F, functions::DivideBy>) {
    kernel.number = dtype == DType::f64 ? write_number<F, double> : write_number<F, float>;
  }
  return kernel;
}

template <std::size_t index>
PointwiseKernel adjoint_run_of(const NodeView& node) {
  return floating_kernel(node.output().dtype, compute_adjoint_run<index, float>,
                         compute_adjoint_run<index, double>);
}

/// True if the parameter makes the function the identity in its compute dtype.
template <class F>
bool is_identity(const NodeView& node) {
  const double number = *parameters_of(node.attributes());
  if (node.output().dtype == DType::f64) return same_number(number, F::identity);
  return same_number(static_cast<float>(number), F::identity);
}

template <class F>
concept Recorded = requires(const Var& v) { F::adjoint(v, v, v); } ||
                   requires(const Var& v, const double* p) { F::adjoint(v, v, v, p); };
template <class F>
concept HasAdjointKernel = functions::ReadsX<F, Var> || functions::ReadsY<F, Var>;

template <class F>
void pull_back_unary(const Pullback& p);
template <class F>
void pull_back_unary_adjoint(const Pullback& p);

template <class F>
constexpr MixedPrecision mixed_of() {
  return functions::Magnifies<F> ? MixedPrecision::wide : MixedPrecision::follows;
}

Cost unary_cost(const NodeView& node, double flops) {
  const ValueType type = node.output();
  return {flops * static_cast<double>(type.shape.elements()),
          static_cast<double>(1 + node.input_count()) * static_cast<double>(type.bytes())};
}

/// The function's operation, and that of its adjoint if it has a kernel.
struct Entry {
  Operation function;
  Operation adjoint;
  std::string adjoint_name;
  std::string adjoint_summary;
};

/// The parts in which the functions differ. One function makes the entries of all of them.
struct Definition {
  functions::Text text;
  MixedPrecision mixed;
  void (*compute)(const KernelCall&);
  void (*vjp)(const Pullback&);
  Cost (*cost)(const NodeView&);
  PointwiseKernel (*pointwise)(const NodeView&);
  bool (*is_identity)(const NodeView&);
  /// Null without a kernel of the adjoint.
  void (*compute_adjoint)(const KernelCall&);
  void (*vjp_of_adjoint)(const Pullback&);
  PointwiseKernel (*pointwise_adjoint)(const NodeView&);
};

template <class F>
constexpr Definition definition_of() {
  constexpr std::size_t index = functions::position<F, Unary>;
  static_assert(index == index_of(functions::place_of<F>), "Family and Unary list families alike");
  Definition made{};
  made.text = F::text;
  made.mixed = mixed_of<F>();
  made.compute = [](const KernelCall& call) { compute_unary(call, index); };
  made.cost = [](const NodeView& node) { return unary_cost(node, F::text.flops); };
  made.pointwise = unary_run_of<F>;
  if constexpr (Recorded<F> || HasAdjointKernel<F>) made.vjp = pull_back_unary<F>;
  if constexpr (requires { F::identity; }) made.is_identity = is_identity<F>;
  if constexpr (HasAdjointKernel<F>) {
    made.compute_adjoint = [](const KernelCall& call) { compute_unary_adjoint(call, index); };
    made.vjp_of_adjoint = pull_back_unary_adjoint<F>;
    made.pointwise_adjoint = adjoint_run_of<index>;
  }
  return made;
}

void fill(Entry& entry, const Definition& made) {
  entry.function = {.name = made.text.name,
                    .formula = made.text.formula,
                    .summary = made.text.summary,
                    .compute = made.compute,
                    .vjp = made.vjp,
                    .cost = made.cost,
                    .pointwise = made.pointwise,
                    .is_identity = made.is_identity,
                    .mixed = made.mixed};
  if (made.compute_adjoint == nullptr) return;
  entry.adjoint_name = std::string(made.text.name) + "_adjoint";
  entry.adjoint_summary = std::string("adjoint of ") + made.text.name;
  entry.adjoint = {.name = entry.adjoint_name,
                   .formula = "x̄ = ȳ·dy/dx, differentiated again by its formula",
                   .summary = entry.adjoint_summary,
                   .compute = made.compute_adjoint,
                   .vjp = made.vjp_of_adjoint,
                   .cost = made.cost,
                   .pointwise = made.pointwise_adjoint,
                   .mixed = made.mixed};
}

using Table = std::array<Entry, Unary::size>;

template <class... F>
void fill_all(Table& table, functions::List<F...>) {
  static constexpr Definition definitions[] = {definition_of<F>()...};
  for (std::size_t index = 0; index < table.size(); ++index) fill(table[index], definitions[index]);
}

const Table& table() {
  static const std::unique_ptr<const Table> entries = [] {
    auto filled = std::make_unique<Table>();
    fill_all(*filled, Unary{});
    return filled;
  }();
  return *entries;
}

/// Records a function's adjoint kernel as a node.
Var record_adjoint(std::size_t index, const Var& dy, const Var& z, const Attributes& attributes) {
  const Operation& operation = table()[index].adjoint;
  const Var inputs[] = {dy, z};
  const ValueType type = z.type();
  return dy.tape().record(operation, inputs, {&type, 1}, attributes, Where::current());
}

void pull_back_by_kernel(const Pullback& p, std::size_t index, bool reads_x) {
  const Attributes attributes = p.attributes();  // a copy, since the tape grows
  const Var dy = p.adjoint();
  p.set(0, record_adjoint(index, dy, reads_x ? p.input() : p.output(), attributes));
}

template <class F>
concept IsCorrected = requires(const Var& v) { F::corrected(v, v, v); };

template <class F>
void pull_back_unary(const Pullback& p) {
  if constexpr (IsCorrected<F>) {
    const Var dy = F::corrected(p.adjoint(), p.input(), p.output());
    p.set(0, record_adjoint(functions::position<F, Unary>, dy, p.output(), {}));
  } else if constexpr (HasAdjointKernel<F>) {
    pull_back_by_kernel(p, functions::position<F, Unary>, functions::ReadsX<F, Var>);
  } else if constexpr (requires(const Var& v) { F::adjoint(v, v, v); }) {
    p.set(0, F::adjoint(p.adjoint(), p.input(), p.output()));
  } else {
    const Attributes attributes = p.attributes();
    p.set(0, F::adjoint(p.adjoint(), p.input(), p.output(), parameters_of(attributes)));
  }
}

/// Records the formula of an adjoint.
using Formula = Var (*)(const Var& dy, const Var& z, const double* parameters);

/// `formula` is null if the adjoint does not depend on z.
void pull_back_adjoint(const Pullback& p, std::size_t index, Formula formula) {
  const Attributes attributes = p.attributes();
  const Var dy = p.input(0);
  const Var z = p.input(1);
  const Var adjoint = p.adjoint();
  if (p.wants(0)) p.set(0, record_adjoint(index, adjoint, z, attributes));
  if (formula == nullptr || !p.wants(1)) return;
  // Recorded for a separate variable, so that the backward walk ends there. 16-bit values are
  // converted to f32: intermediate values can leave their range even if the result does not.
  const DType wide = compute_dtype(z.dtype());
  const Var variable = identity(cast(z, wide));
  const Var dx = formula(cast(dy, wide), variable, parameters_of(attributes));
  const Var seed = cast(adjoint, wide);
  p.set(1, cast(vjp({&dx, 1}, {&variable, 1}, {&seed, 1})[0], z.dtype()));
}

template <class F>
void pull_back_unary_adjoint(const Pullback& p) {
  Formula formula = nullptr;
  if constexpr (!requires { F::piecewise_linear; }) formula = functions::adjoint_of<F, Var>;
  pull_back_adjoint(p, functions::position<F, Unary>, formula);
}

}  // namespace

std::span<const Operation* const> unary_operations() {
  static const auto pointers = [] {
    std::vector<const Operation*> list;
    for (const Entry& entry : table()) list.push_back(&entry.function);
    for (const Entry& entry : table()) {
      if (entry.adjoint.compute != nullptr) list.push_back(&entry.adjoint);
    }
    return list;
  }();
  return pointers;
}

std::size_t unary_index(functions::Place function) { return index_of(function); }

Var record_unary(functions::Place function, const Var& x, const Parameters* parameters,
                 const Where& where) {
  const std::size_t index = unary_index(function);
  const Operation& operation = table()[index].function;
  require_value(x, operation.name, where);
  if (is_integer(x.dtype())) {
    if (index == functions::position<functions::Negate, Unary>) {
      return binary<functions::Subtract>(0, x, where);
    }
    if (index == functions::position<functions::Abs, Unary>) {
      if (x.dtype() == DType::u8) return x;
      return maximum(x, binary<functions::Subtract>(0, x, where), where);
    }
  }
  require_floating(x, operation.name, where);
  const ValueType type = x.type();
  return x.tape().record(operation, {&x, 1}, {&type, 1},
                         parameters == nullptr ? Attributes() : Attributes(*parameters), where);
}

void require_sound(const char* operation, const char* problem, const Parameters& parameters,
                   const Where& where) {
  if (problem == nullptr) return;
  std::string text = problem;
  std::size_t at = 0;
  for (const double parameter : parameters.numbers) {
    at = text.find("{}", at);
    if (at == std::string::npos) break;
    text.replace(at, 2, number_text(parameter));
  }
  throw ArgumentError(operation, text, where);
}

}  // namespace palimpsest
