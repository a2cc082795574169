#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "palimpsest.h"
#include "tests/autodiff/operation_rows.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/computed.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::half_test {
namespace {

constexpr DType halves[] = {DType::bf16, DType::f16};
constexpr std::int64_t rows = 37, columns = 131;

/// The numbers repeated, in another shape and dtype.
Tensor repeated(const Tensor& numbers, const Shape& shape, DType dtype) {
  Tensor all(shape, dtype);
  visit(dtype, [&]<class T>(T) {
    std::int64_t i = 0;
    for (T& element : all.data<T>()) {
      element = convert_element<T>(numbers.at(i++ % numbers.elements()));
    }
  });
  return all;
}

/// A form in which an operation reads one of its inputs.
struct Way {
  const char* name;
  Shape shape;
  bool rolled = false;
};

const Way ways[] = {{"in order", {rows, columns}},
                    {"rolled", {rows, columns}, true},
                    {"a row", {columns}},
                    {"a column", {rows, 1}},
                    {"one number", {}},
                    {"one number of its shape", {1, 1}}};

/// The results of the operation between others, with input `at` in the given form, and all
/// gradients.
std::vector<Tensor> results_of(const OperationRow& row, DType dtype, const Way& way, std::size_t at,
                               const RunOptions& options) {
  Tape tape;
  std::vector<Var> parameters, inputs;
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    const Tensor& numbers = row.inputs[i];
    const bool floating = is_floating(numbers.dtype());
    const Shape shape = i == at ? way.shape : Shape{rows, columns};
    const Tensor values = repeated(numbers, shape, floating ? dtype : numbers.dtype());
    parameters.push_back(floating ? tape.parameter(values) : tape.constant(values));
    Var input = parameters.back();
    if (floating && i != at) input = input * 0.875;
    inputs.push_back(i == at && way.rolled ? roll(input, 3, 0) : input);
  }
  const Var y = row.call(inputs);
  std::vector<Var> results{y};
  if (is_floating(y.dtype())) {
    results.push_back(tanh(y * 0.5 - 0.125) * y);
    results.push_back(cast(y, DType::f32) * 2.0 + cast(y, DType::f64));
    results.push_back(sum(results[1], {1}));
    for (std::size_t i = 0; i < parameters.size() && row.order > 0; ++i) {
      if (!is_floating(parameters[i].dtype())) continue;
      results.push_back(gradient(sum(results[1]), parameters[i]) * 2.0);
    }
  }
  evaluate(results, options);
  std::vector<Tensor> tensors;
  for (const Var& result : results) tensors.push_back(result.value());
  return tensors;
}

TEST_CASE("groups of 16-bit types have the bits of single operations, whatever they read",
          "[half]") {
  for (const OperationRow& row : elementwise_rows()) {
    const bool is_adjoint = row.operation.ends_with("_adjoint");  // has the shape of its input
    if (row.inputs[0].elements() == 0) continue;
    for (const Way& way : ways) {
      const bool whole = way.shape == Shape{rows, columns};
      if (!whole && (is_adjoint || row.inputs.size() == 1)) continue;
      for (std::size_t at = 0; at < row.inputs.size(); ++at) {
        INFO(row.operation << ", " << row.label << ", input " << at << " " << way.name);
        for (const DType dtype : halves) {
          const auto alone = results_of(row, dtype, way, at, {.threads = 1, .fuse = false});
          CHECK(equal(alone, results_of(row, dtype, way, at, {.threads = 1})));
          CHECK(equal(alone, results_of(row, dtype, way, at, {.threads = 3})));
        }
      }
    }
  }
}

/// All numbers of the type, including infinities, subnormals and NaNs.
template <class Half>
Tensor every_number() {
  Tensor all({0x10000}, dtype_of<Half>());
  std::uint32_t i = 0;
  for (Half& element : all.data<Half>()) element.bits = static_cast<std::uint16_t>(i++);
  return all;
}

std::vector<Tensor> of_every_number(const Tensor& numbers, const RunOptions& options) {
  const DType other = numbers.dtype() == DType::bf16 ? DType::f16 : DType::bf16;
  Tape tape;
  const Var x = tape.constant(numbers);
  const Var chosen = where(x > 0.5, x, tape.constant(Tensor::full({}, -3, numbers.dtype())));
  const Var product = x * 0.3;
  const std::vector<Var> results{(x * 0.3 + 0.7) * 1.1,
                                 product,
                                 product - 0.2,
                                 abs(x * 1.5),
                                 -x,
                                 sqrt(x) * 3.0,
                                 chosen,
                                 where(x > 0.5, x, x * 2.0),
                                 cast(x, DType::f32),
                                 cast(product, DType::f32) * 0.1,
                                 cast(cast(x, DType::f64) * 1e-3, numbers.dtype()) * 2.0,
                                 cast(x, other) * 7.0,
                                 cast(cast(product, other), numbers.dtype()),
                                 cast(x * 5.0, DType::i32),
                                 cast(x * 0.1, DType::boolean)};
  evaluate(results, options);
  std::vector<Tensor> tensors;
  for (const Var& result : results) tensors.push_back(result.value());
  return tensors;
}

TEST_CASE("every number of 16 bits goes through groups as through single operations", "[half]") {
  for (const Tensor& numbers : {every_number<BFloat16>(), every_number<Float16>()}) {
    for (const bool simplify : {false, true}) {
      const auto alone =
          of_every_number(numbers, {.threads = 1, .fuse = false, .simplify = simplify});
      CHECK(equal(alone, of_every_number(numbers, {.threads = 1, .simplify = simplify})));
      CHECK(equal(alone, of_every_number(numbers, {.threads = 3, .simplify = simplify})));
    }
  }
}

template <class Half>
void check_rounded_each() {
  Tape tape;
  const Var x = tape.constant(every_number<Half>());
  const Var y = (x * 0.3 + 0.7) * 1.1 - x;
  const Report report = evaluate(std::vector<Var>{y}, {.threads = 1});
  CHECK(report.computed == 1);
  const auto rounded = [](float number) { return static_cast<float>(Half(number)); };
  std::size_t wrong = 0;
  std::uint32_t i = 0;
  const Tensor made = y.value();
  for (const Half& element : made.data<Half>()) {
    Half number;
    number.bits = static_cast<std::uint16_t>(i++);
    const auto wide = static_cast<float>(number);
    const float product = rounded(rounded(rounded(wide * 0.3f) + 0.7f) * 1.1f);
    const auto expected = static_cast<float>(Half(product - wide));
    const auto actual = static_cast<float>(element);
    wrong += std::isnan(expected) ? !std::isnan(actual) : expected != actual;
  }
  CHECK(wrong == 0);
}

TEST_CASE("what a group makes of 16-bit numbers is rounded after every operation", "[half]") {
  check_rounded_each<BFloat16>();
  check_rounded_each<Float16>();
}

TEST_CASE("a chain of 16-bit types is one pass, and takes no memory between its ends", "[half]") {
  for (const DType dtype : halves) {
    constexpr Bytes array = 100'000 * 2;
    const Record record = [&](Tape& tape) {
      const Var x = tape.parameter(Tensor::full({100'000}, 0.5, dtype));
      return std::vector<Var>{sum(tanh(exp(x * 0.5) + 1.0) * x - 2.0)};
    };
    const Computed together = compute(record, {.threads = 1});
    const Computed apart = compute(record, {.threads = 1, .fuse = false});
    CHECK(together.report.computed == 1);
    CHECK(together.report.measured_peak < array / 2);
    CHECK(apart.report.measured_peak > 4 * array);
    CHECK(equal(together.tensors, apart.tensors));
  }
}

TEST_CASE("numbers, scalars and reduced numbers are of 16 bits too", "[half]") {
  for (const DType dtype : halves) {
    const Record record = [&](Tape& tape) {
      const Var x = tape.parameter(Tensor::normal({3000}, 1, 0, 1, dtype));
      const Var number = tape.parameter(Tensor::full({}, 0.3, dtype));
      const Var made = full(tape, {}, 0.1, dtype) * 3.0;
      return std::vector<Var>{x * made + number, maximum(x, made) - number * made,
                              where(x > number, made, x), pow(number, x) + full_like(x, 0.7)};
    };
    for (const bool simplify : {false, true}) {
      const auto alone = compute(record, {.threads = 1, .fuse = false, .simplify = simplify});
      const auto together = compute(record, {.threads = 1, .simplify = simplify});
      CHECK(equal(alone.tensors, together.tensors));
    }
  }
}

}  // namespace
}  // namespace palimpsest::half_test
