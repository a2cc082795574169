// Rows of svd, pinv and matrix_exp, and of functions of matrices that are compositions.
#include <utility>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {

void add_svd_rows(std::vector<OperationRow>& rows) {
  const auto add = [&](const char* label, const Shape& shape, auto f) {
    rows.push_back({"svd", label, {normal_numbers(shape, 92)}, f});
  };
  for (const auto& [label, shape] :
       {std::pair("square", Shape{3, 3}), std::pair("tall, batch", Shape{2, 4, 2}),
        std::pair("wide, batch", Shape{2, 2, 4})}) {
    const std::string name = label;
    add((name + ", values").c_str(), shape, [](auto xs) { return svdvals(xs[0]); });
    add((name + ", left vectors").c_str(), shape, [](auto xs) { return svd(xs[0]).u; });
    add((name + ", right vectors").c_str(), shape, [](auto xs) { return svd(xs[0]).vh; });
    add((name + ", all").c_str(), shape, [](auto xs) {
      const auto [u, values, vh] = svd(xs[0]);
      return sum(u * u * u) + sum(values * values) + sum(vh * vh * vh);
    });
  }
  add("one element", {2, 1, 1}, [](auto xs) { return svd(xs[0]).u * svdvals(xs[0]); });
  add("no rows", {2, 0, 3}, [](auto xs) { return svdvals(xs[0]); });
  add("nuclear norm", {2, 3, 2}, [](auto xs) { return matrix_norm(xs[0], MatrixNorm::nuclear); });
  add("spectral norm", {2, 3, 2},
      [](auto xs) { return matrix_norm(xs[0], MatrixNorm::spectral, true); });
}

void add_pinv_rows(std::vector<OperationRow>& rows) {
  const auto add = [&](const char* label, const Shape& shape, auto f) {
    rows.push_back({"pinv", label, {normal_numbers(shape, 93)}, f});
  };
  const auto inverted = [](auto xs) { return pinv(xs[0]); };
  add("tall", {4, 2}, inverted);
  add("wide, batch", {2, 2, 3}, inverted);
  add("one element", {1, 1}, inverted);
  add("no columns", {3, 0}, inverted);
  rows.push_back({"pinv",
                  "of rank two",
                  {normal_numbers({4, 2}, 94), normal_numbers({2, 5}, 95)},
                  [](auto xs) { return pinv(matmul(xs[0], xs[1]), 0.05); }});
}

void add_exponential_rows(std::vector<OperationRow>& rows) {
  const auto add = [&](const char* label, const Shape& shape, double factor, int order = 2,
                       bool half = true) {
    rows.push_back({"matrix_exp",
                    label,
                    {normal_numbers(shape, 96)},
                    [factor](auto xs) { return matrix_exp(xs[0] * factor); },
                    order,
                    half});
  };
  add("batch", {2, 3, 3}, 0.5);
  add("small", {3, 3}, 1e-3);
  add("halved often", {3, 3}, 6, 2, false);  // f16 overflows
  add("one element", {1, 1}, 1);
  add("no rows", {2, 0, 0}, 1);
  add("blocked", {21, 21}, 0.2, 1);
}

void add_system_rows(std::vector<OperationRow>& rows) {
  const auto add = [&](const char* operation, const char* label, const Shape& a, const Shape& b) {
    rows.push_back({operation, label, {normal_numbers(a, 97), normal_numbers(b, 98)}, [](auto xs) {
                      return lstsq(xs[0], xs[1]);
                    }});
  };
  add("qr", "lstsq, tall", {4, 2}, {4, 3});
  add("qr", "lstsq, wide, a vector", {2, 3}, {2});
  add("qr", "lstsq, many for one", {3, 2}, {2, 3, 1});
}

void add_product_rows(std::vector<OperationRow>& rows) {
  const auto add = [&](const char* operation, const char* label, const std::vector<Shape>& shapes,
                       auto f) {
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(normal_numbers(shape, 90 + inputs.size()));
    rows.push_back({operation, label, inputs, f});
  };
  add("matmul", "power 5", {{2, 3, 3}}, [](auto xs) { return matrix_power(xs[0], 5); });
  add("inverse", "power -2", {{3, 3}},
      [](auto xs) { return matrix_power(xs[0] * 0.5 + matrix_power(xs[0], 0) * 3.0, -2); });
  add("triangle", "power 0", {{2, 3, 3}}, [](auto xs) { return matrix_power(xs[0], 0) * xs[0]; });
  add("matmul", "tensordot", {{2, 3, 4}, {3, 4, 5}},
      [](auto xs) { return tensordot(xs[0], xs[1]); });
  add("matmul", "tensordot over no axes", {{2, 3}, {4}},
      [](auto xs) { return tensordot(xs[0], xs[1], 0); });
  add("matmul", "tensordot of pairs", {{4, 3, 2, 5}, {2, 4, 3}},
      [](auto xs) { return tensordot(xs[0], xs[1], {2, 0}, {0, -2}); });
  add("matmul", "multi_dot", {{2, 5}, {5, 3}, {3, 1}, {1, 4}},
      [](auto xs) { return multi_dot({xs[0], xs[1], xs[2], xs[3]}); });
  add("matmul", "multi_dot of vectors", {{5}, {5, 3}, {3}},
      [](auto xs) { return multi_dot({xs[0], xs[1], xs[2]}); });
  add("sum", "vecdot", {{2, 3, 4}, {3, 1}}, [](auto xs) { return vecdot(xs[0], xs[1], 1); });
  add("norm", "Frobenius norm", {{2, 3, 4}}, [](auto xs) { return matrix_norm(xs[0]); });
  add("norm", "largest column sum", {{2, 3, 4}},
      [](auto xs) { return matrix_norm(xs[0], MatrixNorm::one); });
  add("norm", "largest row sum", {{3, 4}},
      [](auto xs) { return matrix_norm(xs[0], MatrixNorm::infinity, true); });
}

}  // namespace

std::vector<OperationRow> matrix_function_rows() {
  std::vector<OperationRow> rows;
  add_svd_rows(rows);
  add_pinv_rows(rows);
  add_exponential_rows(rows);
  add_system_rows(rows);
  add_product_rows(rows);
  return rows;
}

}  // namespace palimpsest
