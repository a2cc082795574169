#include "autodiff/gradient.h"

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "autodiff/custom.h"
#include "autodiff/gradcheck.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::gradient_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

std::vector<double> elements_of(const Var& x) {
  const Tensor value = x.value();
  const auto data = value.data<double>();
  return {data.begin(), data.end()};
}

Var scalar(Tape& tape, double value) { return tape.parameter(Tensor::scalar(value, DType::f64)); }

TEST_CASE("contributions of several paths add up") {
  Tape tape;
  const Var x = scalar(tape, 3);
  const Var square = x * x;
  const Var y = square * x + square + x + 2.0 * x;
  CHECK(gradient(y, x).item() == 3 * 9 + 2 * 3 + 1 + 2);
}

TEST_CASE("gradients of intermediate values and of a value itself") {
  Tape tape;
  const Var x = scalar(tape, 2);
  const Var z = x * x;
  const Var y = z * z + x;
  CHECK(gradient(y, z).item() == 8);
  CHECK(gradient(y, y).item() == 1);
  const auto both = gradient(y, {x, z});
  CHECK(both[0].item() == 33);
  CHECK(both[1].item() == 8);
}

TEST_CASE("adjoints of slices are put together before they are added") {
  constexpr std::int64_t steps = 12;
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({steps, 5}, 1, 0, 1, DType::f64));
  Var h = select(x, 0, 0);
  for (std::int64_t step = 2; step < steps; ++step) h = tanh(h + select(x, 0, step));
  const NodeId before = tape.node_count();
  const Var adjoint = gradient(sum(h), x);
  CHECK(tape.operation(adjoint.node()).name == "concat");
  CHECK(tape.inputs(adjoint.node()).size() == steps - 1);
  for (NodeId node = before; node < tape.node_count(); ++node) {
    CHECK(tape.operation(node).name != "add");
  }
  const Tensor value = adjoint.value();
  CHECK(value.data<double>()[5] == 0);  // row 1, which is not read
}

TEST_CASE("adjoints of slices that overlap, of other axes and of the whole are added") {
  const Tensor values = Tensor::normal({6, 7}, 1, 0, 1, DType::f64);
  const auto f = [](std::span<const Var> xs) {
    const Var& x = xs[0];
    const Var rows = slice(x, 0, {0, 3}) * slice(x, 0, {2, 5}) * slice(x, 0, {3, 6});
    const Var columns = slice(x, 1, {0, 4}) * slice(x, 1, {3, 7});
    const Var part = slice(x, {{1, 4}, {2, 5}});
    return sum(rows) + sum(columns * columns) + sum(part * part * part) + sum(x * x) +
           sum(exp(slice(x, 0, {5, 6})));
  };
  const GradcheckResult result = gradcheck(f, {&values, 1});
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("scattered adjoints are added in place of the others' sum") {
  const auto names_in = [](const Tape& tape, NodeId from) {
    std::map<std::string_view, int> names;
    for (NodeId node = from; node < tape.node_count(); ++node) ++names[tape.operation(node).name];
    return names;
  };
  const Tensor values = Tensor::normal({3, 4}, 1, 0, 1, DType::f64);
  struct Case {
    const char* name;
    std::function<Var(const Var&)> loss;
    const char* adds;  ///< the operation that adds
    int times;
  };
  const std::vector<Case> cases{
      {"after a dense one", [](const Var& x) { return sum(exp(x - max(x))); }, "scatter_sum", 1},
      {"before a dense one", [](const Var& x) { return sum(max(exp(x), {1})) + sum(x * max(x)); },
       "scatter_sum", 1},
      {"along an axis", [](const Var& x) { return sum(square(x - max(x, {0}, true))); },
       "scatter_sum", 1},
      {"two", [](const Var& x) { return sum(max(x, {1})) * min(x); }, "scatter_sum", 1},
      {"rows of three reads",
       [](const Var& x) {
         const auto row = [&](std::int64_t i) {
           return index_select(x, 0, x.tape().constant(Tensor::from<std::int64_t>({i}, {1})));
         };
         return sum(row(0) * row(2) * row(0));
       },
       "index_sum", 2},
      {"a cumulative extreme", [](const Var& x) { return sum(x * cummax(x, 0).values); },
       "scatter_sum", 1},
  };
  for (const auto& [name, loss, adds, times] : cases) {
    INFO(name);
    Tape tape;
    const Var x = tape.parameter(values);
    const Var y = loss(x);
    const NodeId before = tape.node_count();
    CHECK(gradient(y, x).shape() == x.shape());
    CHECK(names_in(tape, before)[adds] == times);
    const auto f = [&, function = loss](std::span<const Var> xs) { return function(xs[0]); };
    const GradcheckResult result = gradcheck(f, {&values, 1});
    INFO(result.message);
    CHECK(result.passed);
  }
}

TEST_CASE("nodes of the user are not looked through when adjoints are added") {
  Tape tape;
  const auto numbers = [&](std::uint64_t seed) {
    return tape.parameter(Tensor::normal({4}, seed, 0, 1, DType::f64));
  };
  const Var x = numbers(1), w = numbers(2), s = slice(numbers(3), 0, {.stop = 2});
  const Var index = tape.constant(Tensor::from<std::int64_t>({1, 3}, {2}));
  const Var y = x + 1.0;
  const Var scattered = scatter_add(s, 0, index, 4);
  const Var padded = pad(s, {{1, 1}});
  const Var other = pad(s, {{0, 2}});
  for (const Var& seed : {scattered, reshape(scattered, {4}), padded}) {
    const Var one = tape.constant(Tensor::scalar(1, DType::f64));
    const Var ys[] = {sum(y * w), y, y * 2.0};
    const Var seeds[] = {one, seed, other};
    const Var slope = vjp(ys, {&x, 1}, seeds)[0];
    CHECK(elements_of(gradient(sum(slope * w), seed)) == elements_of(w));
  }
}

TEST_CASE("no derivative flows through blocked nodes when adjoints are added") {
  const Tensor values = Tensor::normal({4}, 1, 0, 1, DType::f64);
  const auto curvature = [&](bool is_blocked) {
    Tape tape;
    const Var x = tape.parameter(values);
    const Var index = tape.constant(Tensor::from<std::int64_t>({1, 3}, {2}));
    const Var some = index_select(x, 0, index);
    const Var y = sum(some * some * some) + sum(x);
    std::optional<Tape::NoGradient> blocked;
    if (is_blocked) blocked.emplace(tape);
    const Var first = gradient(y, x);
    blocked.reset();
    return elements_of(gradient(sum(first), x));
  };
  CHECK(curvature(false)[1] != 0);
  CHECK(curvature(true) == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("adjoints of reshaped values leave no node without a reader") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({2, 3}, 1, 0, 1, DType::f64));
  const Var flat = reshape(x, {6});
  const Var first = gradient(sum(exp(x)) + sum(square(flat)), x);
  std::vector<bool> is_read(tape.value_count());
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    for (const ValueId input : tape.inputs(node)) is_read[input] = true;
  }
  for (ValueId value = flat.id() + 1; value < tape.value_count(); ++value) {
    if (tape.operation(tape.producer(value)).name != "reshape") continue;
    CHECK((is_read[value] || value == first.id()));
  }
}

/// The sum of `steps` products of rows with one matrix, and of other products with it.
Var shared_products(std::span<const Var> xs, std::int64_t steps, std::int64_t rows) {
  const Var& w = xs[0];
  Var h = xs[1];
  Var total = sum(w * w) + sum(matmul(w, w));
  for (std::int64_t step = 0; step < steps; ++step) {
    h = tanh(matmul(slice(h, 0, {0, rows}), w));
    total = total + sum(matmul(h, w, {.transpose_b = true}));
  }
  return total;
}

TEST_CASE("adjoints of a matrix that is multiplied by step after step are made by few products") {
  const Tensor w = Tensor::normal({12, 12}, 1, 0, 0.3, DType::f64);
  for (const std::int64_t rows : {1, 2, 4, 6, 9}) {
    const std::vector<Tensor> at{w, Tensor::normal({rows, 12}, 2, 0, 0.5, DType::f64)};
    const auto f = [&](std::span<const Var> xs) { return shared_products(xs, 7, rows); };
    const GradcheckResult result = gradcheck(f, at, {.order = 2, .directions = 2});
    INFO(result.message);
    CHECK(result.passed);
  }
}

TEST_CASE("a product that a derivative gives must have the type of the input") {
  const auto with = [](const Shape& a, const Shape& b) {
    const CustomOperation operation(
        {.name = "given",
         .forward = [](const CustomCall& call) { call.outputs[0].data<float>()[0] = 0; },
         .vjp =
             [=](const Pullback& p) {
               p.set_product(0, full(p.tape(), a, 1), full(p.tape(), b, 1));
             }});
    Tape tape;
    const Var x = tape.parameter(Tensor::ones({3, 4}));
    return gradient(operation({x}), x).value().at(0);
  };
  CHECK(with({2, 3}, {2, 4}) == 2);
  CHECK_THROWS_WITH(with({2, 4}, {2, 3}), Contains("[given]") && Contains("(2, 4)"));
  CHECK_THROWS_AS(with({2, 3}, {3, 4}), ShapeError);
  CHECK_THROWS_AS(with({3}, {4}), ShapeError);
}

TEST_CASE("products are put together as far as their rows take no more than the matrix") {
  const auto stacks = [](std::int64_t rows) {
    Tape tape;
    const Var w = tape.parameter(Tensor::normal({12, 12}, 1, 0, 0.3, DType::f64));
    const Var h = tape.parameter(Tensor::normal({rows, 12}, 2, 0, 0.5, DType::f64));
    const Var y = shared_products(std::array{w, h}, 7, rows);
    const NodeId before = tape.node_count();
    gradient(y, w);
    std::vector<std::int64_t> sizes;
    for (NodeId node = before; node < tape.node_count(); ++node) {
      if (tape.operation(node).name != "concat") continue;
      sizes.push_back(tape.shape(tape.first_output(node))[0]);
    }
    return sizes;
  };
  const std::vector<std::int64_t> threes{6, 6, 6, 6, 6, 6, 6, 6, 4, 4};
  CHECK(stacks(2) == threes);  // for at most 12·12/(12 + 12) rows each, of 14 products
  CHECK(stacks(4).empty());
  CHECK(stacks(9).empty());
}

TEST_CASE("gradients are recorded where nothing more comes to them, not all at the end") {
  for (const std::int64_t rows : {2, 50}) {  // with and without stacking the products
    Tape tape;
    std::vector<Var> layers;
    Var y = tape.constant(Tensor::uniform({rows, 12}, 1));
    for (int layer = 0; layer < 5; ++layer) {
      layers.push_back(tape.parameter(Tensor::uniform({12, 12}, 2)));
      y = tanh(matmul(y, layers.back()));
    }
    const std::vector<Var> gradients = gradient(sum(y), layers);
    std::vector<NodeId> adjoints;  // of the layers, from the last to the first
    for (NodeId node = y.node() + 1; node < tape.node_count(); ++node) {
      if (tape.operation(node).name == "tanh_adjoint") adjoints.push_back(node);
    }
    REQUIRE(adjoints.size() == layers.size());
    for (std::size_t k = 1; k < layers.size(); ++k) {
      CHECK(gradients[k].node() < adjoints[layers.size() - k]);
    }
  }
}

TEST_CASE("a variable that was not used has gradient zero") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  const Var unused = tape.parameter(Tensor::matrix({{1, 2, 3}}));
  const auto gradients = gradient(sum(x * x), {unused, x});
  CHECK(same_bits(gradients[0].value(), Tensor::zeros({1, 3})));
  CHECK(same_bits(gradients[1].value(), Tensor::vector({2, 4})));
  CHECK(gradient(x > 0, std::span<const Var>{}).empty());
  CHECK(same_bits(gradient(sign(x), x).value(), Tensor::zeros({2})));
}

TEST_CASE("without seeds the sum of the elements is differentiated") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2, 3}));
  CHECK(same_bits(gradient(x * x, x).value(), Tensor::vector({2, 4, 6})));
  const Var y = x * x;
  const Var seed = tape.constant(Tensor::vector({1, 0, -1}));
  CHECK(same_bits(vjp({&y, 1}, {&x, 1}, {&seed, 1})[0].value(), Tensor::vector({2, 0, -6})));
}

TEST_CASE("several differentiated values, one of them twice") {
  Tape tape;
  const Var x = scalar(tape, 2);
  const Var ys[] = {x * x, 3.0 * x, x};
  CHECK(vjp(ys, {&x, 1}, {})[0].item() == 4 + 3 + 1);
  const Var twice[] = {ys[0], ys[0]};
  CHECK(vjp(twice, {&x, 1}, {})[0].item() == 8);
}

TEST_CASE("gradients of gradients") {
  Tape tape;
  const double at = 0.7;
  const Var x = scalar(tape, at);
  Var d = x * x * x * x * x;
  const double expected[] = {
      5 * std::pow(at, 4), 20 * std::pow(at, 3), 60 * at * at, 120 * at, 120, 0};
  for (const double value : expected) {
    d = gradient(d, x);
    CHECK_THAT(d.item(), Catch::Matchers::WithinAbs(value, 1e-12));
  }
  Var s = sin(x);
  for (int order = 0; order < 4; ++order) s = gradient(s, x);
  CHECK_THAT(s.item(), WithinRel(std::sin(at), 1e-12));
  Var g = tanh(x);
  for (int order = 0; order < 3; ++order) g = gradient(g, x);
  const double t = std::tanh(at);
  CHECK_THAT(g.item(), WithinRel((1 - t * t) * (6 * t * t - 2), 1e-10));
}

TEST_CASE("adjoints carry the dtype of their values") {
  Tape tape;
  const Var half = tape.parameter(Tensor::vector({1, 2}).to(DType::bf16));
  const Var wide = tape.parameter(Tensor::vector({3, 4}));
  const Var y = half * wide + cast(half, DType::f64);
  CHECK(y.dtype() == DType::f64);
  const auto gradients = gradient(y, {half, wide});
  CHECK(same_bits(gradients[0].value(), Tensor::vector({4, 5}).to(DType::bf16)));
  CHECK(same_bits(gradients[1].value(), Tensor::vector({1, 2})));
  CHECK(same_bits(gradient(cast(cast(wide, DType::i32), DType::f32), wide).value(),
                  Tensor::zeros({2})));
}

TEST_CASE("adjoint nodes carry the line and the scope they are recorded for") {
  Tape tape;
  const Var x = scalar(tape, 2);
  const Var y = tanh(x);
  const auto line = tape.where(y.node()).line();
  const std::uint32_t forward = tape.node_count();
  gradient(y, x);
  std::uint32_t adjoints = 0;
  for (NodeId node = forward; node < tape.node_count(); ++node) {
    adjoints += tape.where(node).line() == line;
  }
  CHECK(adjoints >= 1);
  CHECK(tape.where(tape.node_count() - 1).line() == line);
}

// (x, 2x) as one node; tests an output without an adjoint.
const Operation pair_operation{
    .name = "pair",
    .formula = "y₀ = x, y₁ = 2x",
    .summary = "two outputs",
    .compute =
        [](const KernelCall& call) {
          for (std::int64_t i = 0; i < call.input().elements(); ++i) {
            call.output(0).as<double>()[i] = call.input().as<double>()[i];
            call.output(1).as<double>()[i] = 2 * call.input().as<double>()[i];
          }
        },
    .vjp = [](const Pullback& p) { p.set(0, p.adjoint(0) + 2.0 * p.adjoint(1)); },
};

TEST_CASE("an output nobody used counts as zero") {
  Tape tape;
  const Var x = scalar(tape, 5);
  const ValueType types[] = {x.type(), x.type()};
  const Var first = tape.record(pair_operation, {&x, 1}, types, {}, Where::current());
  const Var second = first.output(1);
  CHECK(second.item() == 10);
  CHECK(gradient(first * first, x).item() == 10);
  CHECK(gradient(second * second, x).item() == 40);
  CHECK(gradient(first * second, x).item() == 20);
  CHECK_THROWS_WITH(first.output(2), Contains("[pair]") && Contains("has 2 outputs"));
}

TEST_CASE("seeds and adjoints of another tape are refused") {
  Tape tape, other;
  const Var x = scalar(tape, 3);
  const Var foreign = scalar(other, 100);
  const Var stale = scalar(other, 1);
  const Var y = x * x;
  CHECK_THROWS_WITH(vjp({&y, 1}, {&x, 1}, {&foreign, 1}), Contains("[gradient]") &&
                                                              Contains("different tapes") &&
                                                              Contains("gradient_test.cpp:"));
  const Var empty;
  CHECK_THROWS_AS(vjp({&y, 1}, {&x, 1}, {&empty, 1}), TapeError);
  const CustomOperation twice({.name = "twice",
                               .forward = [](const CustomCall&) {},
                               .vjp = [&](const Pullback& p) { p.set(0, foreign); }});
  CHECK_THROWS_WITH(gradient(twice({x}), x), Contains("[twice]") && Contains("different tapes"));
  other.clear();
  CHECK_THROWS_AS(vjp({&y, 1}, {&x, 1}, {&stale, 1}), TapeError);
}

}  // namespace
}  // namespace palimpsest::gradient_test
