#include "autodiff/gradient.h"

#include <algorithm>
#include <cmath>

#include "autodiff/custom.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::derivatives_test {
namespace {

void check_close(const Tensor& a, const Tensor& b) {
  REQUIRE(a.type() == b.type());
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    CHECK_THAT(a.at(i), Catch::Matchers::WithinAbs(b.at(i), 1e-12));
  }
}

Tensor f64(std::vector<double> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return Tensor::from(values, Shape{size});
}

// y = (x₀x₁, x₁x₂, x₂x₀), whose Jacobian is easy to write down.
struct Products {
  Tape tape;
  Var x = tape.parameter(f64({2, 3, 5}));
  Var shift = tape.constant(Tensor::from({0., 1., 0., 0., 0., 1., 1., 0., 0.}, {3, 3}));
  Var y = x * sum(shift * x, {1});
  Tensor expected = Tensor::from({3., 2., 0., 0., 5., 3., 5., 0., 2.}, {3, 3});
};

TEST_CASE("the Jacobian has the shape of y followed by that of x") {
  Products p;
  check_close(jacobian(p.y, p.x), p.expected);
  const Var square = reshape(p.x, {3, 1}) * reshape(p.x, {1, 3});
  CHECK(jacobian(square, p.x).shape() == Shape{3, 3, 3});
  CHECK(jacobian(sum(p.y), p.x).shape() == Shape{3});
}

TEST_CASE("a Jacobian with fewer columns than rows is that of single gradients") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  const DType other = GENERATE(DType::f64, DType::f32);
  Tape tape;
  const Var x = tape.parameter(f64({1, 2, 4}).to(dtype));
  const Var wide = cast(x, other);
  const Var y = reshape(wide, {3, 1}) * reshape(wide, {1, 3});
  const std::uint32_t nodes = tape.node_count();
  const Tensor found = jacobian(y, x);
  CHECK(tape.node_count() == nodes);
  REQUIRE(found.type() == ValueType{{3, 3, 3}, dtype});
  for (std::int64_t i = 0; i < 9; ++i) {
    const Tensor row = gradient(select(reshape(y, {9}), 0, i), x).value();
    for (std::int64_t k = 0; k < 3; ++k) CHECK(found.at(3 * i + k) == row.at(k));
  }
  CHECK(same_bits(jacobian(full_like(y, 1), x), Tensor::zeros({3, 3, 3}, dtype)));
}

TEST_CASE("Jacobians and Hessians leave nothing on the tape, and rows of every dtype are found") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  Tape tape;
  const Var x = tape.parameter(f64({1, 2, 4}).to(dtype));
  const Var y = x * x;
  const Var total = sum(y * x);
  const Var nothing = reshape(slice(x, 0, {0, 0}), {0, 1});
  const std::uint32_t nodes = tape.node_count();
  const Tensor twice = jacobian(y, x);
  CHECK(same_bits(twice, Tensor::from({2., 0., 0., 0., 4., 0., 0., 0., 8.}, {3, 3}).to(dtype)));
  CHECK(same_bits(hessian(total, x),
                  Tensor::from({6., 0., 0., 0., 12., 0., 0., 0., 24.}, {3, 3}).to(dtype)));
  CHECK(same_bits(jacobian(x, x),
                  Tensor::from({1., 0., 0., 0., 1., 0., 0., 0., 1.}, {3, 3}).to(dtype)));
  CHECK(jacobian(nothing, x).shape() == Shape{0, 1, 3});
  CHECK(tape.node_count() == nodes);
  CHECK(same_bits((total + 1).value(), Tensor::scalar(74).to(dtype)));
}

TEST_CASE("a Jacobian computes what does not depend on the seed once, and keeps none of it") {
  int runs = 0;
  const CustomOperation counted({
      .name = "counted",
      .forward =
          [&](const CustomCall& call) {
            ++runs;
            std::ranges::copy(call.inputs[0].data<double>(),
                              call.outputs[0].data<double>().begin());
          },
      .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); },
  });
  Tape tape;
  const Var x = tape.parameter(f64({1, 2, 4}));
  const Var inner = counted({exp(x)});
  const Var y = reshape(inner, {3, 1}) * reshape(sin(inner), {1, 3});
  const Tensor by_columns = jacobian(y, x);
  CHECK(runs == 1);
  const Tensor by_rows = jacobian(slice(reshape(y, {9}), 0, {.start = 0, .stop = 3}), x);
  CHECK(runs == 2);
  CHECK(!tape.has_value(inner.id()));
  check_close(by_rows.reshape({9}),
              slice(tape.constant(by_columns.reshape({27})), 0, {.start = 0, .stop = 9}).value());
}

TEST_CASE("jvp is the Jacobian times a tangent") {
  Products p;
  const Var v = p.tape.constant(f64({1, -1, 2}));
  check_close(jvp(p.y, p.x, v).value(), f64({3 - 2, -5 + 6, 5 + 4}));
  const Var z = exp(p.x) * p.y;
  const Tensor all = jacobian(z, p.x);
  const Tensor product = jvp(z, p.x, v).value();
  for (std::int64_t i = 0; i < 3; ++i) {
    const double row = all.at(3 * i) - all.at(3 * i + 1) + 2 * all.at(3 * i + 2);
    CHECK_THAT(product.at(i), Catch::Matchers::WithinRel(row, 1e-12));
  }
}

TEST_CASE("jvp of several values along several variables") {
  Tape tape;
  const Var a = tape.parameter(Tensor::scalar(2, DType::f64));
  const Var b = tape.parameter(f64({1, 3}));
  const Var ys[] = {a * b, sum(b * b), tape.constant(f64({7}))};
  const Var xs[] = {a, b};
  const Var tangents[] = {tape.constant(Tensor::scalar(10, DType::f64)),
                          tape.constant(f64({1, -1}))};
  const auto products = jvp(ys, xs, tangents);
  check_close(products[0].value(), f64({10 * 1 + 2, 10 * 3 - 2}));
  check_close(products[1].value(), Tensor::scalar(2 * 1 - 2 * 3, DType::f64));
  check_close(products[2].value(), f64({0}));
  CHECK_THROWS_AS(jvp(ys[0], a, tangents[1]), ShapeError);
}

TEST_CASE("jvp can be differentiated again") {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(0.5, DType::f64));
  const Var one = full_like(x, 1);
  const Var slope = jvp(sin(x), x, one);
  check_close(jvp(slope, x, one).value(), Tensor::scalar(-std::sin(0.5), DType::f64));
  check_close(gradient(slope, x).value(), Tensor::scalar(-std::sin(0.5), DType::f64));
}

TEST_CASE("the Hessian and its products") {
  Tape tape;
  const Var x = tape.parameter(f64({0.5, -1, 2}));
  const Var s = sum(x);
  const Var y = sum(x * x * x) + s * s;  // the Hessian is diag(6x) + 2
  const Tensor expected = Tensor::from({5., 2., 2., 2., -4., 2., 2., 2., 14.}, {3, 3});
  check_close(hessian(y, x), expected);
  const Var v = tape.constant(f64({1, 2, 3}));
  check_close(hvp(y, x, v).value(), f64({5 + 4 + 6, 2 - 8 + 6, 2 + 4 + 42}));
  CHECK_THROWS_WITH(hessian(x, x),
                    Catch::Matchers::Contains("[hessian]") && Catch::Matchers::Contains("f64 (3)"));
}

TEST_CASE("Hessian products along several variables mix them") {
  Tape tape;
  const Var a = tape.parameter(Tensor::scalar(2, DType::f64));
  const Var b = tape.parameter(Tensor::scalar(3, DType::f64));
  const Var xs[] = {a, b};
  const Var vs[] = {full_like(a, 1), full_like(b, 10)};
  const auto products = hvp(a * a * b, xs, vs);
  CHECK(products[0].item() == 2 * 3 + 10 * 2 * 2);
  CHECK(products[1].item() == 2 * 2);
}

TEST_CASE("derivatives are the same where gradients are not wanted") {
  Products p;
  const Var tangent = p.tape.constant(f64({1, -1, 2}));
  const Var y = sum(p.y * p.y);
  const Tensor outside[] = {jvp(p.y, p.x, tangent).value(), hvp(y, p.x, tangent).value(),
                            hessian(y, p.x)};
  const auto guard = p.tape.no_gradient();
  const Var along = jvp(p.y, p.x, tangent);
  CHECK(same_bits(along.value(), outside[0]));
  CHECK(same_bits(hvp(y, p.x, tangent).value(), outside[1]));
  CHECK(same_bits(hessian(y, p.x), outside[2]));
  CHECK(same_bits(gradient(sum(along), p.x).value(), Tensor::zeros({3}, DType::f64)));
}

}  // namespace
}  // namespace palimpsest::derivatives_test
