#include "autodiff/operations/binary.h"

#include <cstdint>

#include "autodiff/gradient.h"
#include "autodiff/operations/broadcasting.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

/// Moves elements as words of their size, independent of dtype.
template <class Word>
void choose_run(const PointwiseCall& call) {
  const bool* condition = call.input<bool>(0);
  const Word* a = call.input<Word>(1);
  const Word* b = call.input<Word>(2);
  Word* y = call.to<Word>();
  const auto [c_step, a_step, b_step] = call.steps;
  if (c_step == 1 && a_step == 1 && b_step == 1) {
    for (std::int64_t i = 0; i < call.n; ++i) y[i] = condition[i] ? a[i] : b[i];
  } else if (c_step == 1 && a_step == 1) {
    for (std::int64_t i = 0; i < call.n; ++i) y[i] = condition[i] ? a[i] : *b;
  } else {
    for (std::int64_t i = 0; i < call.n; ++i) {
      y[i] = condition[i * c_step] ? a[i * a_step] : b[i * b_step];
    }
  }
}

PointwiseKernel choose_run_of(DType dtype) {
  switch (size_of(dtype)) {
    case 8:
      return {choose_run<std::uint64_t>, true};
    case 4:
      return {choose_run<std::uint32_t>, true};
    case 2:
      return {choose_run<std::uint16_t>, true};
    default:
      return {choose_run<std::uint8_t>, true};
  }
}

const Operation where_operation{
    .name = "where",
    .formula = "y = a where c, b elsewhere; ā = ȳ where c, b̄ = ȳ elsewhere",
    .summary = "elementwise choice by a condition",
    .compute =
        [](const KernelCall& call) {
          const PointwiseKernel run = choose_run_of(call.output().dtype());
          const std::int64_t bytes = size_of(call.output().dtype());
          const Broadcast<3> broadcast(
              call.output().shape(),
              {call.input(0).shape(), call.input(1).shape(), call.input(2).shape()});
          for_rows(broadcast, [&](const Row<3>& row) {
            run.run(
                {call.attributes,
                 {call.input(0).data + row.offset[0], call.input(1).data + row.offset[1] * bytes,
                  call.input(2).data + row.offset[2] * bytes},
                 row.step,
                 call.output().data + row.first * bytes,
                 row.length});
          });
        },
    .vjp =
        [](const Pullback& p) {
          const Var condition = p.input(0);
          if (p.wants(1)) p.set(1, sum_to(where(condition, p.adjoint(), 0), p.input(1).shape()));
          if (p.wants(2)) p.set(2, sum_to(where(condition, 0, p.adjoint()), p.input(2).shape()));
        },
    .pointwise = [](const NodeView& node) { return choose_run_of(node.output().dtype); },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

template <class F>
void combine(const KernelCall& call, F f) {
  const bool* a = call.input(0).as<bool>();
  const bool* b = call.input(1).as<bool>();
  bool* y = call.output().as<bool>();
  for_rows(Broadcast<2>(call.output().shape(), {call.input(0).shape(), call.input(1).shape()}),
           [&](const Row<2>& row) {
             for (std::int64_t i = 0; i < row.length; ++i) {
               y[row.first + i] =
                   f(a[row.offset[0] + i * row.step[0]], b[row.offset[1] + i * row.step[1]]);
             }
           });
}

const Operation and_operation{
    .name = "logical_and",
    .formula = "y = a ∧ b",
    .summary = "both",
    .compute = [](const KernelCall& call) { combine(call, [](bool a, bool b) { return a && b; }); },
    .half = HalfSupport::native,
};

const Operation or_operation{
    .name = "logical_or",
    .formula = "y = a ∨ b",
    .summary = "either",
    .compute = [](const KernelCall& call) { combine(call, [](bool a, bool b) { return a || b; }); },
    .half = HalfSupport::native,
};

const Operation not_operation{
    .name = "logical_not",
    .formula = "y = ¬x",
    .summary = "negation of a condition",
    .compute =
        [](const KernelCall& call) {
          const bool* x = call.input().as<bool>();
          bool* y = call.output().as<bool>();
          for (std::int64_t i = 0; i < call.output().elements(); ++i) y[i] = !x[i];
        },
    .half = HalfSupport::native,
};

void require_bool(const Operation& operation, const Var& x, const Where& line) {
  require_value(x, operation.name, line);
  if (x.dtype() == DType::boolean) return;
  throw DTypeError(
      operation.name,
      "takes bool, not " + to_string(x.type()) + "; compare it first, for example x > 0", line);
}

Var record_logical(const Operation& operation, std::span<const Var> operands, const Where& line) {
  common_tape(operands, operation.name, line);
  Shape shape = operands[0].shape();
  for (const Var& operand : operands) {
    require_bool(operation, operand, line);
    shape = broadcast(shape, operand.shape(), operation.name, line);
  }
  const ValueType type{shape, DType::boolean};
  return operands[0].tape().record(operation, operands, {&type, 1}, {}, line);
}

}  // namespace

std::span<const Operation* const> logical_operations() {
  static const Operation* const family[] = {&where_operation, &and_operation, &or_operation,
                                            &not_operation};
  return family;
}

Var where(const Var& condition, const Var& a, const Var& b, Where line) {
  const Var given[] = {condition, a, b};
  common_tape(given, "where", line);
  require_bool(where_operation, condition, line);
  const DType dtype = promote(a.dtype(), b.dtype());
  const Shape choices = broadcast(a.shape(), b.shape(), "where", line);
  const ValueType type{broadcast(condition.shape(), choices, "where", line), dtype};
  const Var operands[] = {condition, cast(a, dtype, line), cast(b, dtype, line)};
  return condition.tape().record(where_operation, operands, {&type, 1}, {}, line);
}

Var where(const Var& condition, const Var& a, double b, Where line) {
  return where(condition, a, number_like(a, b, "where", line), line);
}

Var where(const Var& condition, double a, const Var& b, Where line) {
  return where(condition, number_like(b, a, "where", line), b, line);
}

Var where(const Var& condition, double a, double b, Where line) {
  require_bool(where_operation, condition, line);
  Tape& tape = condition.tape();
  const Var first = full(tape, {}, a, DType::f32, line);
  const Var second = full(tape, {}, b, DType::f32, line);
  return where(condition, first, second, line);
}

Var logical_and(const Var& a, const Var& b, Where where) {
  const Var operands[] = {a, b};
  return record_logical(and_operation, operands, where);
}

Var logical_or(const Var& a, const Var& b, Where where) {
  const Var operands[] = {a, b};
  return record_logical(or_operation, operands, where);
}

Var logical_not(const Var& x, Where where) { return record_logical(not_operation, {&x, 1}, where); }

Var operator!(const Located& x) { return logical_not(x.var, x.where); }
Var operator&&(const Located& a, const Var& b) { return logical_and(a.var, b, a.where); }
Var operator||(const Located& a, const Var& b) { return logical_or(a.var, b, a.where); }

}  // namespace palimpsest
