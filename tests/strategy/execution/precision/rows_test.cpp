#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "palimpsest.h"
#include "strategy/execution/precision/translation.h"
#include "tests/autodiff/operation_rows.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::rows_test {
namespace {

constexpr DType halves[] = {DType::bf16, DType::f16};

const std::deque<OperationRow>& all_rows() {
  static const std::deque<OperationRow> rows = [] {
    std::deque<OperationRow> list;
    for (const RowFamily& family : row_families()) {
      for (OperationRow& row : family.rows()) list.push_back(std::move(row));
    }
    return list;
  }();
  return rows;
}

Tensor converted(const Tensor& tensor, DType dtype) {
  return is_floating(tensor.dtype()) ? tensor.to(dtype) : tensor;
}

/// x as the result of a product, which mixed precision computes in 16 bits.
Var as_product(const Var& x) {
  const Shape shape = x.shape();
  const Var one = x.tape().constant(Tensor::ones({1, 1}, x.dtype()));
  return reshape(matmul(reshape(x, {shape.elements(), 1}), one), shape);
}

/// A row recorded on its own tape, with a loss if derivatives flow.
struct Recorded {
  Tape tape;
  Var value;
  Var loss;

  Recorded(const OperationRow& row, const std::vector<Tensor>& inputs, bool products,
           std::shared_ptr<Evaluator> evaluator)
      : tape(std::move(evaluator)) {
    tape.set_seed(7);
    std::vector<Var> xs;
    for (const Tensor& input : inputs) {
      const bool floating = is_floating(input.dtype());
      const Var leaf = floating ? tape.parameter(input) : tape.constant(input);
      xs.push_back(products && floating ? as_product(leaf) : leaf);
    }
    value = row.call(xs);
    if (row.order == 0 || !is_floating(value.dtype())) return;
    const Var weights = tape.constant(Tensor::uniform(value.shape(), 3, 0.5, 1.5, value.dtype()));
    loss = sum(value * weights);
  }

  std::vector<Tensor> results() const {
    if (!loss.defined()) return {value.value()};
    const Gradients gradients = backward(loss, {.threads = 1});
    std::vector<Tensor> tensors{value.value()};
    for (const auto& entry : gradients) tensors.push_back(entry.gradient);
    return tensors;
  }

  bool has_floating_dtype_only(DType dtype) const {
    for (ValueId id = 0; id < tape.value_count(); ++id) {
      if (is_floating(tape.dtype(id)) && tape.dtype(id) != dtype) return false;
    }
    return true;
  }
};

std::vector<Tensor> inputs_of(const OperationRow& row, DType dtype, DType rounded) {
  std::vector<Tensor> inputs;
  for (const Tensor& input : row.inputs) {
    inputs.push_back(converted(converted(input, rounded), dtype));
  }
  return inputs;
}

std::string name_of_row(const OperationRow& row) { return row.operation + " " + row.label; }

TEST_CASE("a precision of one dtype has the bits of a program recorded in it") {
  struct Case {
    PrecisionKind kind;
    DType dtype;
  };
  for (const auto& [kind, dtype] :
       {Case{PrecisionKind::full, DType::f64}, Case{PrecisionKind::single, DType::f32},
        Case{PrecisionKind::half, DType::bf16}, Case{PrecisionKind::half, DType::f16}}) {
    int compared = 0;
    for (const OperationRow& row : all_rows()) {
      if (is_half(dtype) && !row.half) continue;
      const std::vector<Tensor> inputs = inputs_of(row, dtype, dtype);
      const Recorded plain(row, inputs, false, lazy());
      if (!plain.has_floating_dtype_only(dtype)) continue;
      const DType half = is_half(dtype) ? dtype : DType::bf16;
      const Recorded precisely(row, inputs, false, precise({kind, half}));
      INFO(name_of_row(row) << " in " << name_of(dtype));
      CHECK(equal(plain.results(), precisely.results()));
      ++compared;
    }
    CHECK(compared > 300);
  }
}

/// The error relative to the largest element of the exact result.
double error_of(const Tensor& result, const Tensor& exact) {
  double largest = 0;
  double error = 0;
  for (std::int64_t i = 0; i < exact.elements(); ++i) {
    if (!std::isfinite(exact.at(i))) continue;
    largest = std::max(largest, std::abs(exact.at(i)));
    error = std::max(error, std::abs(result.at(i) - exact.at(i)));
  }
  return error / (largest + 1e-3);
}

TEST_CASE("mixed precision is near single precision for every operation") {
  for (const DType half : halves) {
    // Allows for some successive roundings to 8 or 11 bits; gradients have more of them.
    const double bound = half == DType::bf16 ? 3.2e-2 : 4e-3;
    for (const bool products : {false, true}) {
      for (const OperationRow& row : all_rows()) {
        if (!row.half) continue;
        const std::vector<Tensor> inputs = inputs_of(row, DType::f32, half);
        const Recorded single(row, inputs, products, lazy());
        const Recorded mixed(row, inputs, products, precise({.half = half}));
        const std::vector<Tensor> exact = single.results();
        const std::vector<Tensor> results = mixed.results();
        REQUIRE(exact.size() == results.size());
        for (std::size_t i = 0; i < exact.size(); ++i) {
          INFO(name_of_row(row) << (products ? " of products" : "") << ", result " << i << "\n"
                                << results[i] << "\nfor\n"
                                << exact[i]);
          REQUIRE(results[i].type() == exact[i].type());
          if (!is_floating(exact[i].dtype())) continue;
          CHECK(error_of(results[i], exact[i]) <= (i == 0 ? bound : 2 * bound));
        }
      }
    }
  }
}

/// Checks the dtypes of one node against the declaration of its operation.
void check_dtypes(const Tape& tape, NodeId node, const Precision& precision) {
  const NodeView view(tape.nodes(), node);
  std::vector<DType> inputs, outputs;
  for (std::size_t i = 0; i < view.input_count(); ++i) {
    if (is_floating(view.input(i).dtype)) inputs.push_back(view.input(i).dtype);
  }
  for (std::size_t i = 0; i < view.output_count(); ++i) {
    if (is_floating(view.output(i).dtype)) outputs.push_back(view.output(i).dtype);
  }
  const auto all = [](const std::vector<DType>& dtypes, DType dtype) {
    return std::ranges::all_of(dtypes, [&](DType each) { return each == dtype; });
  };
  INFO(tape.describe(node));
  switch (view.operation().mixed) {
    case MixedPrecision::wide:
      CHECK(all(inputs, precision.wide()));
      CHECK(all(outputs, precision.wide()));
      break;
    case MixedPrecision::narrow:
      CHECK(all(inputs, precision.narrow()));
      CHECK(all(outputs, precision.narrow()));
      break;
    case MixedPrecision::follows:
      if (!inputs.empty()) CHECK(all(inputs, inputs[0]));
      if (!inputs.empty()) CHECK(all(outputs, inputs[0]));
      break;
    case MixedPrecision::reads:
      CHECK(all(outputs, precision.wide()));
      break;
    case MixedPrecision::first:
      CHECK(outputs[0] == inputs[0]);
      CHECK(all({inputs.begin() + 1, inputs.end()}, precision.wide()));
      CHECK(all({outputs.begin() + 1, outputs.end()}, precision.wide()));
      break;
    case MixedPrecision::recorded:
      break;
  }
}

TEST_CASE("operations have the dtypes that they declare for mixed precision") {
  std::set<MixedPrecision> seen;
  for (const OperationRow& row : all_rows()) {
    const Precision precision{.half = DType::f16};
    const Recorded recorded(row, inputs_of(row, DType::f32, DType::f32), true, lazy());
    Translation translation(precision, lazy());
    translation.follow(recorded.tape);
    INFO(name_of_row(row));
    const Tape& tape = translation.tape();
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      if (tape.is_leaf(node)) continue;
      seen.insert(tape.operation(node).mixed);
      check_dtypes(tape, node, precision);
    }
  }
  CHECK(seen.size() == 6);
}

}  // namespace
}  // namespace palimpsest::rows_test
