#include "autodiff/operation.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <string>

#include "autodiff/execute.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "tests/autodiff/operation_rows.h"
#include "tests/catch.h"

namespace palimpsest::operation_test {
namespace {

std::vector<Tensor> converted(std::span<const Tensor> inputs, DType dtype) {
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) {
    result.push_back(is_floating(input.dtype()) ? input.to(dtype) : input);
  }
  return result;
}

/// A row recorded on its own tape: its value and, if it has derivatives, its gradients.
struct Recorded {
  Tape tape;
  std::vector<Var> results;

  Recorded(const OperationRow& row, std::span<const Tensor> inputs, bool gradients) {
    tape.set_seed(7);
    std::vector<Var> xs, floating;
    for (const Tensor& input : inputs) {
      const bool is_parameter = is_floating(input.dtype());
      xs.push_back(is_parameter ? tape.parameter(input) : tape.constant(input));
      if (is_parameter) floating.push_back(xs.back());
    }
    results.push_back(row.call(xs));
    if (!gradients || row.order == 0) return;
    const std::vector<Var> adjoints = gradient(results[0], floating);
    results.insert(results.end(), adjoints.begin(), adjoints.end());
  }

  std::vector<Tensor> values() const {
    std::vector<Tensor> tensors;
    for (const Var& result : results) tensors.push_back(result.value());
    return tensors;
  }
};

void check_recorded(const OperationRow& row) {
  const Recorded recorded(row, row.inputs, false);
  std::set<std::string_view> names;
  for (NodeId node = 0; node < recorded.tape.node_count(); ++node) {
    names.insert(recorded.tape.operation(node).name);
  }
  INFO("the row does not record the operation it is for");
  CHECK(names.count(row.operation) == 1);
}

void check_gradients(const OperationRow& row) {
  if (row.order == 0) return;
  const auto result = gradcheck(row.call, row.inputs, {.order = row.order, .directions = 2});
  INFO(result.message);
  CHECK(result.passed);
}

/// Compares the value in `dtype` with the value in f64 at the same, already rounded inputs.
void check_precision(const OperationRow& row, DType dtype, double tolerance) {
  const std::vector<Tensor> narrow = converted(row.inputs, dtype);
  const Tensor value = Recorded(row, narrow, false).values()[0];
  const Tensor exact = Recorded(row, converted(narrow, DType::f64), false).values()[0];
  REQUIRE(value.shape() == exact.shape());
  double largest = 0;
  for (std::int64_t i = 0; i < exact.elements(); ++i) {
    largest = std::max(largest, std::abs(exact.at(i)));
  }
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < exact.elements(); ++i) {
    const double difference = std::abs(value.at(i) - exact.at(i));
    const double scale = std::abs(exact.at(i)) + 0.1 * largest;
    if (!(difference <= tolerance * scale)) ++wrong;
  }
  INFO(name_of(dtype) << "\n" << value << "\nfor\n" << exact);
  CHECK(wrong == 0);
}

bool all_same_bits(std::span<const Tensor> a, std::span<const Tensor> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

void check_threads(const OperationRow& row) {
  const auto values = [&](int threads) {
    return tbb::task_arena(threads).execute(
        [&] { return Recorded(row, converted(row.inputs, DType::f32), true).values(); });
  };
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const std::vector<Tensor> one = values(1);
  CHECK(all_same_bits(one, values(2)));
  CHECK(all_same_bits(one, values(8)));
}

void check_recomputation(const OperationRow& row) {
  Recorded recorded(row, row.inputs, true);
  const std::vector<Tensor> first = recorded.values();
  for (ValueId value = 0; value < recorded.tape.value_count(); ++value) recorded.tape.drop(value);
  CHECK(all_same_bits(first, recorded.values()));
}

/// Recording the same row again gives equal attributes.
void check_attributes(const OperationRow& row) {
  const Recorded first(row, row.inputs, true);
  const Recorded again(row, row.inputs, true);
  REQUIRE(first.tape.node_count() == again.tape.node_count());
  for (NodeId node = 0; node < first.tape.node_count(); ++node) {
    INFO(first.tape.describe(node));
    CHECK(first.tape.attributes(node) == again.tape.attributes(node));
  }
}

/// For every node that can accumulate into its output, checks that this equals computing and then
/// adding, bit for bit.
void check_accumulation(const OperationRow& row, DType dtype) {
  Recorded recorded(row, converted(row.inputs, dtype), true);
  recorded.values();
  Tape& tape = recorded.tape;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const Operation& operation = tape.operation(node);
    if (operation.accumulate == nullptr) continue;
    const NodeView view(tape.nodes(), node);
    std::vector<Operand> inputs;
    std::vector<Tensor> held;
    for (const ValueId input : tape.inputs(node)) {
      held.push_back(tape.var(input).value());
      inputs.push_back({held.back().buffer().get(), tape.type(input)});
    }
    const ValueType type = view.output();
    const Tensor product = tape.var(tape.first_output(node)).value();
    const tbb::global_control four(tbb::global_control::max_allowed_parallelism, 4);
    const Tensor addend = Tensor::normal(type.shape, 17, 0, 100, type.dtype);
    inputs.push_back({addend.buffer().get(), type});
    for (const int threads : {1, 2, 4}) {
      const auto may = operation.accumulates_in_place;
      const bool in_place = threads > 1 && may != nullptr && may(view);
      const Tensor sum = addend.clone();
      const Operand output{sum.buffer().get(), type};
      inputs.back().data = in_place ? output.data : addend.buffer().get();
      const Bytes bytes = workspace_of(view, threads);
      const Buffer workspace = allocate_buffer(bytes);
      tbb::task_arena(threads).execute([&] {
        operation.accumulate({tape.attributes(node),
                              inputs,
                              {&output, 1},
                              {workspace.get(), static_cast<std::size_t>(bytes)},
                              threads});
      });
      Tape other;
      CHECK(same_bits(sum, (other.constant(product) + other.constant(addend)).value()));
    }
  }
}

void check_row(const OperationRow& row) {
  check_recorded(row);
  check_gradients(row);
  check_precision(row, DType::f32, 2e-6);
  if (row.half) {
    check_precision(row, DType::bf16, 3e-2);
    check_precision(row, DType::f16, 4e-3);
  }
  check_threads(row);
  check_recomputation(row);
  check_attributes(row);
  for (const DType dtype : {DType::f32, DType::f64}) check_accumulation(row, dtype);
}

// Makes each row a test case of its own, so that the runner counts and names it. Catch2 registers
// functions by macro only; this class does for objects what the macro does for functions.
const std::deque<OperationRow>& all_rows() {
  static const std::deque<OperationRow> rows = [] {
    std::deque<OperationRow> list;
    for (const RowFamily& family : row_families()) {
      for (OperationRow& row : family.rows()) {
        row.label = std::string(family.name) + ": " + row.operation + " " + row.label;
        list.push_back(std::move(row));
      }
    }
    return list;
  }();
  return rows;
}

const bool registered = [] {
  std::multiset<std::string> labels;
  for (const OperationRow& row : all_rows()) {
    std::string name = row.label;
    const auto repeats = labels.count(row.label);
    if (repeats > 0) name += " (" + std::to_string(repeats + 1) + ")";
    labels.insert(row.label);
    register_test([&row] { check_row(row); }, name, "[row]", __FILE__, __LINE__);
  }
  return true;
}();

TEST_CASE("every registered operation has a row") {
  std::set<std::string_view> covered;
  for (const OperationRow& row : all_rows()) covered.insert(row.operation);
  std::string missing;
  for (const Operation* operation : operations()) {
    if (covered.count(operation->name) == 0) missing.append(operation->name).append(" ");
  }
  CHECK(missing == "");
}

TEST_CASE("every node names a line of the user, in derivatives too") {
  for (const OperationRow& row : all_rows()) {
    Tape tape;
    std::vector<Var> xs, floating;
    for (const Tensor& input : row.inputs) {
      const bool is_parameter = is_floating(input.dtype());
      xs.push_back(is_parameter ? tape.parameter(input) : tape.constant(input));
      if (is_parameter) floating.push_back(xs.back());
    }
    Var y = row.call(xs);
    for (int order = 0; order < row.order; ++order) {
      const std::vector<Var> both{y, y};
      y = vjp(both, floating, {})[0];
    }
    std::set<std::string> foreign;
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      const std::string place = to_string(tape.where(node));
      if (place.find("/tests/") != place.npos) continue;
      foreign.insert(std::string(tape.operation(node).name) + " of " + place);
    }
    INFO(row.operation << ", " << row.label);
    CHECK(foreign == std::set<std::string>());
  }
}

TEST_CASE("operations have names of their own") {
  std::multiset<std::string_view> names;
  for (const Operation* operation : operations()) names.insert(operation->name);
  for (const std::string_view name : names) {
    INFO(name);
    CHECK(names.count(name) == 1);
  }
}

}  // namespace
}  // namespace palimpsest::operation_test
