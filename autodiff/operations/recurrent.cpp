#include "autodiff/operations/sequence.h"

#include <algorithm>
#include <vector>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// Checks a cell's operands for one step, whose x has shape `x`.
void check(const char* cell, const Shape& x, const Var& h, const CellParameters& p,
           std::int64_t gates, const Where& where) {
  for (const Var& v : {h, p.input, p.hidden}) require_value(v, cell, where);
  const auto require = [&](const Var& v, const char* role, const Shape& shape) {
    if (v.shape() == shape) return;
    throw ShapeError(cell,
                     std::string(role) + " has shape " + to_string(v.shape()) + " for x " +
                         to_string(x) + " and h " + to_string(h.shape()) + "; give shape " +
                         to_string(shape),
                     where);
  };
  if (x.rank() == 0 || h.rank() == 0) {
    throw ShapeError(cell, "x and h need an axis of features; give (…, I) and (…, H)", where);
  }
  const std::int64_t width = gates * h.shape().size(-1);
  require(p.input, "the weight of x", {x.size(-1), width});
  require(p.hidden, "the weight of h", {h.shape().size(-1), width});
  if (p.bias.defined()) require(p.bias, "the bias", {width});
  if (p.hidden_bias.defined()) require(p.hidden_bias, "the bias of h", {width});
  Shape state = x;
  state[state.rank() - 1] = h.shape().size(-1);
  require(h, "h", state);
}

/// The sum of both biases, so that their adjoint is one sum; undefined without biases.
Var bias_of(const CellParameters& p, const Where& where) {
  if (!p.bias.defined()) return p.hidden_bias;
  return p.hidden_bias.defined() ? add(p.bias, p.hidden_bias, where) : p.bias;
}

/// x·input + h·hidden + biases. The products are added first, so that the addition is fused into
/// the second product.
Var gates_of(const Var& x, const Var& h, const CellParameters& p, const Where& where) {
  const Var products = add(linear(x, p.input, {}, where), linear(h, p.hidden, {}, where), where);
  const Var bias = bias_of(p, where);
  return bias.defined() ? add(products, bias, where) : products;
}

Var activate(const Var& gates, CellActivation activation, const char* cell, const Where& where) {
  require_enumerator(activation, {CellActivation::tanh, CellActivation::relu}, cell,
                     "the activation", where);
  return activation == CellActivation::tanh ? tanh(gates, where) : relu(gates, where);
}

/// Splits the gates into `count` parts; readers read the slices in place.
std::vector<Var> parts_of(const Var& gates, std::int64_t count, const Where& where) {
  const std::int64_t width = gates.shape().size(-1) / count;
  std::vector<Var> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    parts.push_back(slice(gates, -1, {i * width, (i + 1) * width}, where));
  }
  return parts;
}

/// `parts_of` the sum a + b; the sums are fused into their readers.
std::vector<Var> parts_of_sum(const Var& a, const Var& b, std::int64_t count, const Where& where) {
  std::vector<Var> parts = parts_of(a, count, where);
  const std::vector<Var> others = parts_of(b, count, where);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = add(parts[i], others[i], where);
  return parts;
}

LstmState lstm_step(std::span<const Var> parts, const Var& c, const Where& where) {
  const Var kept = multiply(sigmoid(parts[1], where), c, where);
  const Var added = multiply(sigmoid(parts[0], where), tanh(parts[2], where), where);
  const Var fresh = add(kept, added, where);
  return {multiply(sigmoid(parts[3], where), tanh(fresh, where), where), fresh};
}

/// One step; `from_input` is x·input + bias.
Var gru_step(const Var& from_input, const Var& h, const CellParameters& p, const Where& where) {
  const auto a = parts_of(from_input, 3, where);
  const auto b = parts_of(linear(h, p.hidden, p.hidden_bias, where), 3, where);
  const Var reset = sigmoid(add(a[0], b[0], where), where);
  const Var update = sigmoid(add(a[1], b[1], where), where);
  const Var fresh = tanh(add(a[2], multiply(reset, b[2], where), where), where);
  return add(fresh, multiply(update, subtract(h, fresh, where), where), where);
}

void check_memory(const char* cell, const LstmState& state, const Where& where) {
  require_value(state.c, cell, where);
  if (state.c.shape() == state.h.shape()) return;
  throw ShapeError(cell,
                   "c has shape " + to_string(state.c.shape()) + ", h " +
                       to_string(state.h.shape()) + "; give them one shape",
                   where);
}

/// Calls `step` with x·input + bias for each step of a sequence x (T, …, I), in order. Products are
/// computed for several steps at once, as many as make a product efficient.
template <class F>
void for_steps(const Var& x, const Var& input, const Var& bias, const Where& where, F step) {
  constexpr std::int64_t worth_while = 256;  // rows
  const Shape shape = x.shape();
  const std::int64_t steps = shape.size(0);
  const std::int64_t rows = shape.elements() / std::max<std::int64_t>(steps * shape.size(-1), 1);
  const std::int64_t together =
      std::clamp<std::int64_t>((worth_while + rows - 1) / std::max<std::int64_t>(rows, 1), 1,
                               std::max<std::int64_t>(steps, 1));
  for (std::int64_t first = 0; first < steps; first += together) {
    const std::int64_t count = std::min(together, steps - first);
    const Var block = slice(x, 0, {first, first + count}, where);
    const Var products = linear(block, input, bias, where);
    for (std::int64_t i = 0; i < count; ++i) step(select(products, 0, i, where));
  }
}

/// Checks a sequence by checking its first step.
void check_sequence(const char* name, const Var& x, const Var& h, const CellParameters& p,
                    std::int64_t gates, const Where& where) {
  require_value(x, name, where);
  if (x.rank() < 2 || x.shape().size(0) == 0) {
    throw ShapeError(
        name,
        "the sequence has shape " + to_string(x.shape()) + "; give one step or more, as (T, …, I)",
        where);
  }
  Shape step = x.shape();
  step.erase(0);
  check(name, step, h, p, gates, where);
}

}  // namespace

Var rnn_cell(const Var& x, const Var& h, const CellParameters& parameters,
             CellActivation activation, Where where) {
  require_value(x, "rnn_cell", where);
  check("rnn_cell", x.shape(), h, parameters, 1, where);
  return activate(gates_of(x, h, parameters, where), activation, "rnn_cell", where);
}

LstmState lstm_cell(const Var& x, const LstmState& state, const CellParameters& parameters,
                    Where where) {
  require_value(x, "lstm_cell", where);
  check("lstm_cell", x.shape(), state.h, parameters, 4, where);
  check_memory("lstm_cell", state, where);
  return lstm_step(parts_of(gates_of(x, state.h, parameters, where), 4, where), state.c, where);
}

Var gru_cell(const Var& x, const Var& h, const CellParameters& parameters, Where where) {
  require_value(x, "gru_cell", where);
  check("gru_cell", x.shape(), h, parameters, 3, where);
  return gru_step(linear(x, parameters.input, parameters.bias, where), h, parameters, where);
}

RecurrentOutput rnn(const Var& x, const Var& h, const CellParameters& parameters,
                    CellActivation activation, Where where) {
  check_sequence("rnn", x, h, parameters, 1, where);
  Var state = h;
  std::vector<Var> outputs;
  for_steps(x, parameters.input, bias_of(parameters, where), where, [&](const Var& gates) {
    const Var sum = add(gates, linear(state, parameters.hidden, {}, where), where);
    outputs.push_back(state = activate(sum, activation, "rnn", where));
  });
  return {stack(outputs, 0, where), state};
}

LstmOutput lstm(const Var& x, const LstmState& state, const CellParameters& parameters,
                Where where) {
  check_sequence("lstm", x, state.h, parameters, 4, where);
  check_memory("lstm", state, where);
  LstmState now = state;
  std::vector<Var> outputs;
  for_steps(x, parameters.input, bias_of(parameters, where), where, [&](const Var& gates) {
    const Var from_hidden = linear(now.h, parameters.hidden, {}, where);
    now = lstm_step(parts_of_sum(gates, from_hidden, 4, where), now.c, where);
    outputs.push_back(now.h);
  });
  return {stack(outputs, 0, where), now};
}

RecurrentOutput gru(const Var& x, const Var& h, const CellParameters& parameters, Where where) {
  check_sequence("gru", x, h, parameters, 3, where);
  Var state = h;
  std::vector<Var> outputs;
  for_steps(x, parameters.input, parameters.bias, where, [&](const Var& from_input) {
    outputs.push_back(state = gru_step(from_input, state, parameters, where));
  });
  return {stack(outputs, 0, where), state};
}

}  // namespace palimpsest
