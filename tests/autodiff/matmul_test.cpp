#include "autodiff/operations/products.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>

#include "autodiff/gradient.h"
#include "autodiff/operation.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "tests/catch.h"

namespace matmul_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

std::string error_of(const Shape& a, const Shape& b, const MatmulOptions& options = {},
                     DType dtype = DType::f32) {
  Tape tape;
  try {
    matmul(tape.constant(Tensor::zeros(a)), tape.constant(Tensor::zeros(b, dtype)), options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("matmul gives NumPy's shapes and numbers") {
  Tape tape;
  const Var a = tape.constant(Tensor::matrix({{1, 2}, {3, 4}, {5, 6}}));
  const Var x = tape.constant(Tensor::vector({1, 10}));
  CHECK(same_bits(matmul(a, x).value(), Tensor::vector({21, 43, 65})));
  CHECK(same_bits(matmul(x, a, {.transpose_b = true}).value(), Tensor::vector({21, 43, 65})));
  CHECK(matmul(x, x).shape() == Shape{});
  CHECK(matmul(x, x).item() == 101);
  CHECK(
      same_bits(matmul(a, a, {.transpose_a = true}).value(), Tensor::matrix({{35, 44}, {44, 56}})));
  const auto zeros = [&](const Shape& shape) { return tape.constant(Tensor::zeros(shape)); };
  CHECK(matmul(zeros({7, 1, 3, 4}), zeros({5, 4, 2})).shape() == Shape{7, 5, 3, 2});
  CHECK(matmul(zeros({4}), zeros({5, 6, 4, 2})).shape() == Shape{5, 6, 2});
  CHECK(matmul(zeros({5, 6, 4, 2}), zeros({2})).shape() == Shape{5, 6, 4});
  CHECK(matmul(zeros({0, 3, 4}), zeros({1, 1, 4, 2})).shape() == Shape{1, 0, 3, 2});
  CHECK(matmul(a, tape.constant(Tensor::ones({2, 2}, DType::f64))).dtype() == DType::f64);
}

TEST_CASE("matmul of an empty sum is zero, whatever is transposed") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::f16, DType::bf16);
  const bool transpose_a = GENERATE(false, true);
  const bool transpose_b = GENERATE(false, true);
  const auto [m, n] = GENERATE(std::pair(1, 1), std::pair(1, 33), std::pair(33, 1),
                               std::pair(16, 33), std::pair(33, 16), std::pair(100, 300));
  CAPTURE(name_of(dtype), transpose_a, transpose_b, m, n);
  Tape tape;
  const Var a = tape.parameter(Tensor::zeros(transpose_a ? Shape{0, m} : Shape{m, 0}, dtype));
  const Var b = tape.parameter(Tensor::zeros(transpose_b ? Shape{n, 0} : Shape{0, n}, dtype));
  const Var y = matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
  CHECK(same_bits(y.value(), Tensor::zeros({m, n}, dtype)));
  const Var addend = tape.constant(Tensor::ones({m, n}, dtype));
  const Var sum_of = y + addend;
  CHECK(same_bits(sum_of.value(), Tensor::ones({m, n}, dtype)));
}

TEST_CASE("matmul of an empty batch, and gradients summed over one") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::f16, DType::bf16);
  const std::int64_t n = GENERATE(1, 3, 64, 100, 600);
  CAPTURE(name_of(dtype), n);
  Tape tape;
  const Var a = tape.parameter(Tensor::zeros({0, n, n}, dtype));
  const Var b = tape.parameter(Tensor::ones({n, n}, dtype));
  const Var loss = sum(matmul(a, b));
  CHECK(matmul(a, b).value().shape() == Shape{0, n, n});
  const std::vector<Var> gradients = gradient(loss, {a, b});
  CHECK(gradients[0].value().shape() == Shape{0, n, n});
  CHECK(same_bits(gradients[1].value(), Tensor::zeros({n, n}, dtype)));
}

TEST_CASE("matmul explains operands that do not multiply") {
  CHECK_THAT(error_of({2, 3}, {4, 5}), Contains("[matmul]") && Contains("(2, 3)") &&
                                           Contains("(4, 5)") && Contains("3 elements") &&
                                           Contains("right has 4") && Contains("matmul_test.cpp"));
  CHECK_THAT(error_of({2, 3}, {3, 5}, {.transpose_a = true}), Contains("requested transposes"));
  CHECK_THAT(error_of({2, 3, 4}, {3, 4, 5}), Contains("(2, 3, 4)") && Contains("equal or 1"));
  CHECK_THAT(error_of({}, {3, 4}), Contains("scalar") && Contains("*"));
  CHECK_THAT(error_of({3}, {3, 4}, {.transpose_a = true}), Contains("cannot be transposed"));
  CHECK_THAT(error_of({2, 3}, {3, 4}, {}, DType::i32), Contains("i32 (3, 4)") && Contains("cast"));
}

TEST_CASE("a product's adjoints record products and views, and no copies of operands") {
  Tape tape;
  const Var shared = tape.parameter(Tensor::zeros({6, 5}));
  const Var many = tape.parameter(Tensor::zeros({4, 3, 6}));
  const Var batch = tape.parameter(Tensor::zeros({4, 5, 2}));
  const Var y = matmul(matmul(many, shared), batch);  // the rows of all matrices form one product
  const Var z = matmul(shared, batch);                // the shared matrix is on the left
  const NodeId first = tape.node_count();
  const Var ys[] = {y, z};
  const Var xs[] = {shared, many, batch};
  vjp(ys, xs, {});
  Bytes largest = 0;
  for (NodeId node = first; node < tape.node_count(); ++node) {
    const std::string_view name = tape.operation(node).name;
    CHECK((name == "matmul" || name == "reshape" || name == "add" || name == "full"));
    largest = std::max(largest, tape.bytes(tape.first_output(node)));
  }
  CHECK(largest <= 4 * 6 * 5 * 4);  // no copy of the shared matrix per batch element
}

TEST_CASE("matmul costs 2mnk for each product, summed ones too") {
  Tape tape;
  const Var a = tape.parameter(Tensor::zeros({7, 3}));
  const Var b = tape.parameter(Tensor::zeros({5, 3, 4}));
  const Var y = matmul(a, b);
  CHECK(cost_of(NodeView(tape.nodes(), y.node())).flops == 2.0 * 5 * 7 * 3 * 4);
  CHECK(cost_of(NodeView(tape.nodes(), y.node())).bytes == 4.0 * (7 * 3 + 5 * 3 * 4 + 5 * 7 * 4));
  const Var da = gradient(y, a);
  CHECK(cost_of(NodeView(tape.nodes(), da.node())).flops == 2.0 * 5 * 7 * 3 * 4);
}

TEST_CASE("products of 16-bit operands are added up in f32 and rounded once", "[gemm]") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  struct Row {
    Shape a, b;
    MatmulOptions options = {};
  };
  const Row row = GENERATE(values<Row>({{{1, 1}, {1, 1}},
                                        {{3, 0}, {0, 2}},
                                        {{1, 900}, {900, 40}},
                                        {{40, 901}, {901, 1}},
                                        {{200, 301}, {301, 150}},
                                        {{301, 200}, {301, 150}, {true, false}},
                                        {{200, 300}, {150, 300}, {false, true}},
                                        {{6, 20, 33}, {6, 33, 20}},
                                        {{4, 1, 9, 7}, {3, 7, 5}}}));
  const Tensor a = Tensor::normal(row.a, 1, 0, 1, dtype);
  const Tensor b = Tensor::normal(row.b, 2, 0, 1, dtype);
  const auto product = [&](DType as, int threads) {
    Tensor value;
    tbb::task_arena(threads).execute([&] {
      Tape tape;
      value = matmul(tape.constant(a.to(as)), tape.constant(b.to(as)), row.options).value();
    });
    return value;
  };
  const Tensor y = product(dtype, 1);
  CHECK(y.dtype() == dtype);
  for (const int threads : {2, 5}) CHECK(same_bits(y, product(dtype, threads)));
  const Tensor exact = product(DType::f64, 1);
  const double rounding = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
  double worst = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const double allowed = rounding * std::abs(exact.at(i)) + 1e-4;  // rounding, summation
    worst = std::max(worst, std::abs(y.at(i) - exact.at(i)) / allowed);
  }
  CHECK(worst <= 1);
}

}  // namespace matmul_test
