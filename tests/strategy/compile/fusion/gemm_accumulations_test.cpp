#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "strategy/backward.h"
#include "strategy/compile/fusion/lowered.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::gemm_accumulations_test {
namespace {

/// Sums with products in them, and the number of sums that are fused into a product.
struct SumOfProducts {
  const char* name;
  int made;
  std::vector<Var> (*call)(const Var& x, const Var& w);
};

const SumOfProducts sums_of_products[] = {
    {"two products", 1,
     [](const Var& x, const Var& w) { return std::vector{matmul(x, w) + matmul(x, w)}; }},
    {"and something in front", 2,
     [](const Var& x, const Var& w) {
       const Var first = x + matmul(x, w);
       return std::vector{first + matmul(x, w)};
     }},
    {"the other way round", 2,
     [](const Var& x, const Var& w) {
       const Var first = x + matmul(x, w);
       return std::vector{matmul(first, w) + first};
     }},
    {"transposed products", 1,
     [](const Var& x, const Var& w) {
       const Var gram = matmul(x, x, {.transpose_a = true});
       return std::vector{gram + matmul(w, w, {.transpose_b = true})};
     }},
    {"behind views", 1,
     [](const Var& x, const Var& w) {
       const Var flat = reshape(reshape(matmul(x, w), {-1}), {2, -1});
       return std::vector{reshape(x, {2, -1}) + flat};
     }},
    {"batches", 1,
     [](const Var& x, const Var& w) {
       const Var batch = reshape(x, {2, -1, x.shape()[1]});
       const Var turned = transpose(batch);
       return std::vector{reshape(x, batch.shape()) + matmul(matmul(batch, turned), batch), sum(w)};
     }},
    {"many steps", 8,
     [](const Var& x, const Var& w) {
       Var h = x;
       for (int step = 0; step < 8; ++step) h = h + matmul(h, w);
       return std::vector{h};
     }},
    {"a sum read twice, by groups and by products", 2,
     [](const Var& x, const Var& w) {
       const Var sum = x + matmul(x, w);
       const Var group = tanh(sum) * 2.0;
       return std::vector{group + matmul(sum, w), sum};
     }},
    {"read by a group", 1,
     [](const Var& x, const Var& w) {
       return std::vector{tanh(matmul(x, w) + matmul(x, w) + 0.5)};
     }},
    {"a product read twice", 0,
     [](const Var& x, const Var& w) {
       const Var product = matmul(x, w);
       return std::vector{x + product, tanh(product)};
     }},
    {"a product added to itself", 0,
     [](const Var& x, const Var& w) {
       const Var product = matmul(x, w);
       return std::vector{product + product};
     }},
    {"a product that is asked for", 0,
     [](const Var& x, const Var& w) {
       const Var product = matmul(x, w);
       return std::vector{x + product, product};
     }},
    {"a row added", 0,
     [](const Var& x, const Var& w) { return std::vector{matmul(x, w) + mean(x, {0})}; }},
    {"a product recorded first", 0,
     [](const Var& x, const Var& w) {
       const Var product = matmul(x, w);
       return std::vector{product + cumsum(x, 0)};
     }},
    {"between groups", 0,
     [](const Var& x, const Var& w) {
       const Var group = tanh(x);
       return std::vector{exp(group + matmul(x, w))};
     }},
    {"a slice added, which a group reads where it lies", 0,
     [](const Var& x, const Var& w) {
       const Var both = concat({x, x}, 0);
       const Var half = slice(both, 0, {0, x.shape()[0]});
       return std::vector{tanh(half + matmul(x, w))};
     }},
};

TEST_CASE("products make the sums they go into, with the same bits") {
  for (const SumOfProducts& sums : sums_of_products) {
    INFO(sums.name);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      for (const Shape& shape : {Shape{400, 40}, Shape{6, 4}, Shape{32, 500}}) {
        const auto results = [&](const RunOptions& options, int* made = nullptr) {
          Tape tape;
          const Var x = tape.parameter(Tensor::uniform(shape, 5, -1, 1, dtype));
          const Var w = tape.parameter(Tensor::uniform({shape[1], shape[1]}, 6, -0.1, 0.1, dtype));
          std::vector<Var> values = sums.call(x, w);
          const Report report = evaluate(values, options);
          if (made != nullptr) *made = count_of(report, "matmul+add");
          Var loss = sum(values[0] * values[0]);
          for (const Var& value : values) loss = loss + sum(value);
          const Gradients gradients = backward(loss, options);
          std::vector<Tensor> tensors{gradients.loss(), gradients[x], gradients[w]};
          for (const Var& value : values) tensors.push_back(value.value());
          return tensors;
        };
        int made = 0;
        const auto alone = results({.threads = 1, .fuse = false});
        CHECK(equal(alone, results({.threads = 1, .simplify = false, .profile = true}, &made)));
        CHECK(made == (is_half(dtype) ? 0 : sums.made));
        CHECK(equal(alone, results({.threads = 3})));
      }
    }
  }
}

TEST_CASE("sums made by products may take over what they are added to") {
  Tape tape;
  const Var a = tape.parameter(Tensor::ones({30, 40}));
  const Var b = tape.parameter(Tensor::ones({30, 50}));
  const Var product = matmul(transpose(a * 2.0), b);
  const Var sum = matmul(transpose(a), b) + product;
  const ValueId target = sum.id();
  // oneDNN's kernels may not accumulate.
  const Operation& operation = tape.operation(product.node());
  const int place = operation.accumulates_in_place(NodeView(tape.nodes(), product.node())) ? 2 : -1;
  const auto takes_over = [&](int threads) {
    const Graph graph = Lowered::fused(tape, {&target, 1}, threads, tape.node_count(), {}).graph();
    return graph.takes_over(graph.targets()[0]);
  };
  CHECK(takes_over(1) == place);
  CHECK(takes_over(2) == place);
}

TEST_CASE("the gradient of a weight that is read at every step takes no memory for its terms") {
  constexpr int steps = 40;
  Tape tape;
  const Var w = tape.parameter(Tensor::uniform({300, 300}, 1, -0.1, 0.1, DType::f32));
  Var h = tape.constant(Tensor::uniform({256, 300}, 2, -1, 1, DType::f32));
  for (int step = 0; step < steps; ++step) h = tanh(matmul(h, w));
  const Report report = backward(sum(h), {.threads = 1, .profile = true}).report();
  CHECK(count_of(report, "matmul+add") == steps - 1);
  constexpr Bytes weight = 300 * 300 * 4;
  constexpr Bytes state = 256 * 300 * 4;
  CHECK(report.measured_peak < 2 * weight + (steps + 10) * state + 400'000);
}

}  // namespace
}  // namespace palimpsest::gemm_accumulations_test
