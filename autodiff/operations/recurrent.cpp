#include "autodiff/operations/recurrent.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

void check(const char* cell, const Var& x, const Var& h, const CellParameters& p,
           std::int64_t gates, const Where& where) {
  for (const Var& v : {x, h, p.input, p.hidden}) require_value(v, cell, where);
  const auto require = [&](const Var& v, const char* role, const Shape& shape) {
    if (v.shape() == shape) return;
    throw ShapeError(cell,
                     std::string(role) + " has shape " + to_string(v.shape()) + " for x " +
                         to_string(x.shape()) + " and h " + to_string(h.shape()) + "; give shape " +
                         to_string(shape),
                     where);
  };
  if (x.rank() == 0 || h.rank() == 0) {
    throw ShapeError(cell, "x and h need an axis of features; give (…, I) and (…, H)", where);
  }
  const std::int64_t width = gates * h.shape().size(-1);
  require(p.input, "the weight of x", {x.shape().size(-1), width});
  require(p.hidden, "the weight of h", {h.shape().size(-1), width});
  if (p.bias.defined()) require(p.bias, "the bias", {width});
  if (p.hidden_bias.defined()) require(p.hidden_bias, "the bias of h", {width});
  Shape state = x.shape();
  state[state.rank() - 1] = h.shape().size(-1);
  require(h, "h", state);
}

/// x·input + h·hidden + biases: the products first, since the second adds what it makes to the
/// first, and the biases together, whose adjoint is one sum.
Var gates_of(const Var& x, const Var& h, const CellParameters& p, const Where& where) {
  const Var products = add(linear(x, p.input, {}, where), linear(h, p.hidden, {}, where), where);
  if (!p.bias.defined() && !p.hidden_bias.defined()) return products;
  if (!p.bias.defined()) return add(products, p.hidden_bias, where);
  if (!p.hidden_bias.defined()) return add(products, p.bias, where);
  return add(products, add(p.bias, p.hidden_bias, where), where);
}

}  // namespace

Var rnn_cell(const Var& x, const Var& h, const CellParameters& parameters,
             CellActivation activation, Where where) {
  check("rnn_cell", x, h, parameters, 1, where);
  const Var sum = gates_of(x, h, parameters, where);
  return activation == CellActivation::tanh ? tanh(sum, where) : relu(sum, where);
}

LstmState lstm_cell(const Var& x, const LstmState& state, const CellParameters& parameters,
                    Where where) {
  check("lstm_cell", x, state.h, parameters, 4, where);
  require_value(state.c, "lstm_cell", where);
  if (state.c.shape() != state.h.shape()) {
    throw ShapeError("lstm_cell",
                     "c has shape " + to_string(state.c.shape()) + ", h " +
                         to_string(state.h.shape()) + "; give them one shape",
                     where);
  }
  const auto gates = chunk(gates_of(x, state.h, parameters, where), 4, -1, where);
  const Var kept = multiply(sigmoid(gates[1], where), state.c, where);
  const Var added = multiply(sigmoid(gates[0], where), tanh(gates[2], where), where);
  const Var c = add(kept, added, where);
  return {multiply(sigmoid(gates[3], where), tanh(c, where), where), c};
}

Var gru_cell(const Var& x, const Var& h, const CellParameters& parameters, Where where) {
  check("gru_cell", x, h, parameters, 3, where);
  const auto a = chunk(linear(x, parameters.input, parameters.bias, where), 3, -1, where);
  const auto b = chunk(linear(h, parameters.hidden, parameters.hidden_bias, where), 3, -1, where);
  const Var reset = sigmoid(add(a[0], b[0], where), where);
  const Var update = sigmoid(add(a[1], b[1], where), where);
  const Var fresh = tanh(add(a[2], multiply(reset, b[2], where), where), where);
  return add(fresh, multiply(update, subtract(h, fresh, where), where), where);
}

}  // namespace palimpsest
