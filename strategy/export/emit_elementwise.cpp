#include "autodiff/operations/functions/binary_functions.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/unary.h"
#include "strategy/export/c_formula.h"
#include "strategy/export/emitters.h"

/// Elementwise operations. Their formulas are those of autodiff/operations/functions/.
namespace palimpsest {
namespace {

/// Writes the formula of one element; the result has the dtype of the formula.
using Formula = CValue (*)(std::span<const CValue> inputs, const double* parameters);

/// Loops over the output's elements, with the broadcast inputs as variables `a`, `b` and `c`.
/// `write` gets their names and returns the expression of the result.
template <class Write>
void emit_elements(const CNode& node, CBody& body, Write write) {
  const Shape& shape = node.output_shape();
  std::vector<Strides> strides{strides_of(shape)};
  for (const ValueType& input : node.inputs) {
    strides.push_back(broadcast_strides(input.shape, shape));
  }
  const CLoops loops(shape, strides);
  loops.open(body);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    names.emplace_back(1, static_cast<char>('a' + i));
    body.add("const $T $name = x$i[$at];", {{"T", c_type(node.inputs[i].dtype)},
                                            {"name", names.back()},
                                            {"i", i},
                                            {"at", loops.offset(i + 1)}});
  }
  const std::string result = write(names);
  body.add("y0[$at] = $result;", {{"at", loops.offset(0)}, {"result", result}});
  loops.close(body);
}

void emit_formula(Formula formula, const CNode& node, CBody& body) {
  const double* parameters =
      node.attributes.empty() ? nullptr : node.attributes.as<Parameters>().data();
  emit_elements(node, body, [&](const std::vector<std::string>& names) {
    CFormula text(body, node.dtype());
    std::vector<CValue> inputs;
    for (const std::string& name : names) inputs.emplace_back(text, name);
    return formula(inputs, parameters).in(text);
  });
}

template <class F>
CValue value_of(std::span<const CValue> inputs, const double* parameters) {
  if constexpr (requires { F::value(inputs[0], parameters); }) {
    return F::value(inputs[0], parameters);
  } else {
    return F::value(inputs[0]);
  }
}

template <class F>
CValue adjoint_value_of(std::span<const CValue> inputs, const double* parameters) {
  return functions::adjoint_of<F>(inputs[0], inputs[1], parameters);
}

template <class F>
CValue value_of_two(std::span<const CValue> inputs, const double*) {
  return F::value(inputs[0], inputs[1]);
}

void add(CEmitters& emitters, const std::string& name, Formula formula) {
  emitters[name] = {
      [formula](const CNode& node, CBody& body) { emit_formula(formula, node, body); }, nullptr,
      first_alike_input};
}

template <class... F>
void add_unary(CEmitters& emitters, functions::List<F...>) {
  (add(emitters, F::text.name, value_of<F>), ...);
}

template <class F>
void add_adjoint(CEmitters& emitters) {
  if constexpr (functions::ReadsX<F, CValue> || functions::ReadsY<F, CValue>) {
    add(emitters, F::text.name + std::string("_adjoint"), adjoint_value_of<F>);
  }
}

template <class... F>
void add_adjoints(CEmitters& emitters, functions::List<F...>) {
  (add_adjoint<F>(emitters), ...);
}

template <class... F>
void add_binary(CEmitters& emitters, functions::List<F...>) {
  (add(emitters, F::text.name, value_of_two<F>), ...);
}

/// An operation whose result is an expression of `$a`, `$b` and `$c`.
void add_expression(CEmitters& emitters, const std::string& name, const std::string& expression) {
  const auto emit = [expression](const CNode& node, CBody& body) {
    emit_elements(node, body, [&](const std::vector<std::string>&) { return expression; });
  };
  emitters[name] = {emit, nullptr, first_alike_input};
}

}  // namespace

void add_elementwise_emitters(CEmitters& emitters) {
  using namespace functions;
  // C99 has only one of the special functions: the logarithm of the gamma function.
  using InC = decltype(Arithmetic{} + Exponential{} + Trigonometric{} + List<Lgamma>{} +
                       Activation{} + Loss{});
  add_unary(emitters, InC{});
  add_adjoints(emitters, InC{});
  add_adjoint<Erfinv>(emitters);
  add_binary(emitters, Binary{});
  add_expression(emitters, "greater", "a > b");
  add_expression(emitters, "greater_equal", "a >= b");
  add_expression(emitters, "less", "a < b");
  add_expression(emitters, "less_equal", "a <= b");
  add_expression(emitters, "equal", "a == b");
  add_expression(emitters, "not_equal", "a != b");
  add_expression(emitters, "where", "a ? b : c");
  add_expression(emitters, "logical_and", "a && b");
  add_expression(emitters, "logical_or", "a || b");
  add_expression(emitters, "logical_not", "!a");
}

}  // namespace palimpsest
