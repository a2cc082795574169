#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/logical.h"
#include "autodiff/operations/matmul.h"
#include "autodiff/operations/pool.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "strategy/backward.h"
#include "strategy/evaluators.h"
#include "strategy/fusion/lowered_store.h"
#include "tests/autodiff/operation_rows.h"
#include "tests/catch.h"

namespace palimpsest {
namespace {

/// An operation between elementwise ones, and all that comes of it.
std::vector<Tensor> sandwich(const OperationRow& row, DType dtype, const RunOptions& options) {
  Tape tape;
  tape.set_seed(7);
  std::vector<Var> parameters, inputs;
  for (const Tensor& input : row.inputs) {
    const bool floating = is_floating(input.dtype());
    parameters.push_back(tape.parameter(floating ? input.to(dtype) : input));
    inputs.push_back(floating ? parameters.back() * 0.875 + 0.0 : parameters.back());
  }
  const Var y = row.call(inputs);
  std::vector<Var> results{y};
  if (is_floating(y.dtype())) {
    results.push_back(tanh(y * 0.5 - 0.125));
    if (row.order > 0) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!is_floating(parameters[i].dtype())) continue;
        results.push_back(gradient(sum(results[1]), parameters[i]) * 2.0);
      }
    }
  }
  evaluate(results, options);
  std::vector<Tensor> tensors;
  for (const Var& result : results) tensors.push_back(result.value());
  return tensors;
}

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

TEST_CASE("groups have the bits of single operations, for every operation") {
  for (const RowFamily& family : row_families()) {
    for (const OperationRow& row : family.rows()) {
      INFO(row.operation << ", " << row.label);
      for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
        if (dtype == DType::bf16 && !row.half) continue;
        const auto alone = sandwich(row, dtype, {.threads = 1, .fuse = false});
        CHECK(equal(alone, sandwich(row, dtype, {.threads = 1})));
        CHECK(equal(alone, sandwich(row, dtype, {.threads = 3})));
      }
    }
  }
}

/// What elementwise operations read that is not a row of elements of their own.
struct Reader {
  const char* name;
  Shape shape;
  Var (*call)(const Var&);
};

const Reader readers[] = {
    {"in order", {40'000}, [](const Var& x) { return exp(x) * x + 1.0; }},
    {"one number", {40'000}, [](const Var& x) { return x * mean(x) + exp(mean(x)); }},
    {"one number spread",
     {40'000},
     [](const Var& x) { return tanh(broadcast_to(mean(x), x.shape())) * x; }},
    {"rows", {200, 300}, [](const Var& x) { return x - mean(x, {0}) + exp(mean(x, {0})); }},
    {"columns", {300, 200}, [](const Var& x) { return exp(x - mean(x, {1}, true)); }},
    {"short rows", {9000, 5}, [](const Var& x) { return tanh(x * mean(x, {0})); }},
    {"middle axes", {20, 30, 50}, [](const Var& x) { return x * mean(x, {1}, true) - x; }},
    {"neighbours",
     {30'001},
     [](const Var& x) {
       const Var a = slice(x, 0, {1, 30'001}) * slice(x, 0, {0, 30'000});
       return a + tanh(a);
     }},
    {"a neighbour of its own",
     {30'001},
     [](const Var& x) {
       const Var y = x * x;
       return slice(y, 0, {1, 30'001}) - slice(tanh(y), 0, {0, 30'000});
     }},
    {"every other one",
     {30'000},
     [](const Var& x) { return slice(x, 0, {0, 30'000, 2}) * slice(x, 0, {1, 30'000, 2}); }},
    {"part of a matrix",
     {200, 300},
     [](const Var& x) { return exp(slice(x, {{10, 150}, {20, 280}})) * 2.0; }},
    {"turned", {200, 300}, [](const Var& x) { return exp(transpose(x)) * transpose(x); }},
    {"another shape", {200, 300}, [](const Var& x) { return tanh(reshape(x * x, {300, 200})); }},
    {"conditions",
     {40'000},
     [](const Var& x) { return where(greater(x, 0), x * x, exp(x)) + where(less(x, 0.5), x, 1); }},
    {"integers",
     {40'000},
     [](const Var& x) { return cast(cast(x * 100.0, DType::i64) * 3, x.dtype()) * x; }},
    {"16 bits between",
     {40'000},
     [](const Var& x) { return cast(cast(x * 2.0, DType::bf16), x.dtype()) * x; }},
    {"many operations",
     {5000},
     [](const Var& x) {
       Var y = x;
       for (int i = 0; i < 70; ++i) y = y * 0.99 + x * x * 0.01;
       return y;
     }},
    {"nothing", {0, 7}, [](const Var& x) { return tanh(x * 2.0); }},
};

TEST_CASE("groups read through what only moves elements") {
  for (const Reader& reader : readers) {
    INFO(reader.name);
    for (const DType dtype : {DType::f64, DType::f32}) {
      const auto results = [&](const RunOptions& options) {
        Tape tape;
        const Var x = tape.parameter(Tensor::uniform(reader.shape, 5, -1, 1, dtype));
        const Var y = reader.call(x);
        const Gradients gradients = backward(sum(y * y), options);
        return std::vector<Tensor>{y.value(), gradients.loss(), gradients[x]};
      };
      const auto alone = results({.threads = 1, .fuse = false});
      CHECK(equal(alone, results({.threads = 1})));
      CHECK(equal(alone, results({.threads = 3})));
    }
  }
}

TEST_CASE("a chain is one pass, and takes no memory between its ends") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({10'000}, 0.5, DType::f32));
  const Var y = tanh(exp(x * 0.5) + 1.0) * x - 2.0;
  const Report together = evaluate(std::vector<Var>{y}, {.threads = 1});
  CHECK(together.computed == 1);
  tape.drop(y.id());
  const Report apart = evaluate(std::vector<Var>{y}, {.threads = 1, .fuse = false});
  CHECK(apart.computed == 6);
  CHECK(together.measured_peak < apart.measured_peak * 2 / 3);
}

/// x and another operand joined by one step of arithmetic.
using Join = Var (*)(const Var&, const Var&);
const Join joins[] = {[](const Var& x, const Var& y) { return x + y; },
                      [](const Var& x, const Var& y) { return y + x; },
                      [](const Var& x, const Var& y) { return x - y; },
                      [](const Var& x, const Var& y) { return y - x; },
                      [](const Var& x, const Var& y) { return x * y; },
                      [](const Var& x, const Var&) { return x + 0.3; },
                      [](const Var& x, const Var&) { return 0.7 - x; },
                      [](const Var& x, const Var&) { return x * -1.7; },
                      [](const Var& x, const Var&) { return -x; }};

TEST_CASE("two steps of arithmetic round as each by itself, whatever they read") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t size : {1, 37, 5000}) {
      Tensor x = Tensor::normal({size}, 1, 0, 1, dtype);
      visit_floating(dtype, [&]<class T>(T) {
        x.data<T>().back() = std::numeric_limits<T>::infinity();
        x.data<T>().front() = T(-0.0);
      });
      const Tensor operands[] = {Tensor::normal({size}, 2, 0, 1, dtype),
                                 Tensor::normal({1}, 3, 0, 1, dtype)};
      for (const Tensor& a : operands) {
        for (const Tensor& b : operands) {
          const auto run = [&](bool fuse) {
            Tape tape;
            const Var leaf = tape.constant(x);
            const Var first = tape.constant(a);
            const Var second = tape.constant(b);
            std::vector<Var> results;
            for (const Join begin : joins) {
              for (const Join end : joins) results.push_back(end(begin(leaf, first), second));
            }
            evaluate(results, {.fuse = fuse});
            std::vector<Tensor> tensors;
            for (const Var& result : results) tensors.push_back(result.value());
            return tensors;
          };
          CHECK(equal(run(true), run(false)));
        }
      }
    }
  }
}

/// Reductions at the end of a group.
struct Reduction {
  const char* name;
  Shape shape;
  std::vector<Var> (*call)(const Var&);
  std::size_t units;  ///< that run, with those that cannot be part of a group
};

const Reduction reductions[] = {
    {"a sum", {10'000}, [](const Var& x) { return std::vector{sum(x * x)}; }, 1},
    {"a short one", {64}, [](const Var& x) { return std::vector{sum(exp(x))}; }, 1},
    {"one too short", {63}, [](const Var& x) { return std::vector{sum(exp(x))}; }, 2},
    {"a sum of segments", {200'001}, [](const Var& x) { return std::vector{sum(x * x - 1.0)}; }, 1},
    {"several, and what they are of",
     {5'003},
     [](const Var& x) {
       const Var y = tanh(x) * x;
       return std::vector{sum(y), mean(y * y), y, prod(y * 0.001 + 1.0)};
     },
     1},
    {"rows shorter than a tile",
     {50, 200},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {1}), mean(y * y, {-1}, true)};
     },
     1},
    {"rows of odd length", {70, 101}, [](const Var& x) { return std::vector{sum(x * x, {1})}; }, 1},
    {"rows longer than a tile",
     {5, 9'999},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {1}), y * 2.0};
     },
     1},
    {"rows of segments",
     {3, 40'000},
     [](const Var& x) { return std::vector{mean(x * x, {1})}; },
     1},
    {"several axes", {4, 30, 40}, [](const Var& x) { return std::vector{sum(x * x, {1, 2})}; }, 1},
    {"columns", {300, 40}, [](const Var& x) { return std::vector{sum(x * x, {0})}; }, 2},
    {"rows of two lengths",
     {10, 100, 100},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{sum(y, {1, 2}), sum(y, {2}), sum(y)};
     },
     3},
    {"a sum that its own elements are divided by",
     {30'000},
     [](const Var& x) {
       const Var y = exp(x);
       return std::vector{y / sum(y)};
     },
     2},
};

TEST_CASE("groups end in reductions, with their bits") {
  for (const Reduction& reduction : reductions) {
    INFO(reduction.name);
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Tensor values = Tensor::uniform(reduction.shape, 3, -1, 1, dtype);
      const auto run = [&](const RunOptions& options) {
        Tape tape;
        const std::vector<Var> results = reduction.call(tape.parameter(values));
        const Report report = evaluate(results, options);
        if (options.fuse) CHECK(report.computed == reduction.units);
        std::vector<Tensor> tensors;
        for (const Var& result : results) tensors.push_back(result.value());
        return tensors;
      };
      const auto alone = run({.threads = 1, .fuse = false});
      CHECK(equal(alone, run({.threads = 1})));
      CHECK(equal(alone, run({.threads = 3})));
    }
  }
}

TEST_CASE("integers are summed in groups, in segments too") {
  for (const DType dtype : {DType::i32, DType::i64}) {
    const auto run = [&](bool fuse) {
      Tape tape;
      const Var x = tape.constant(Tensor::arange(40'000, dtype));
      const std::vector<Var> results{sum(x + x), sum(reshape(x, {200, 200}) * 3, {1})};
      evaluate(results, {.fuse = fuse});
      return std::vector<Tensor>{results[0].value(), results[1].value()};
    };
    CHECK(equal(run(true), run(false)));
  }
}

TEST_CASE("reductions of what no group makes run by themselves") {
  Tape tape;
  const Var b = tape.parameter(Tensor::ones({8, 1}));
  const Var y = tape.constant(Tensor::ones({8, 100})) + b;
  const Var empty = tape.constant(Tensor::ones({0, 64}));
  const std::vector<Var> results{sum(full(tape, {100}, 2.0, DType::f32)), gradient(y, b),
                                 sum(empty, {1}), sum(empty * 2.0, {1}), mean(empty + empty, {1})};
  evaluate(results);
  CHECK(results[0].item() == 200);
  CHECK(same_bits(results[1].value(), Tensor::full({8, 1}, 100)));
  for (const std::size_t i : {2, 3, 4}) CHECK(results[i].value().elements() == 0);
}

TEST_CASE("what is only summed takes no memory") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({100'000}, 0.5, DType::f32));
  const Gradients gradients = backward(mean(square(x * 3.0 - 1.0)), {.threads = 1});
  CHECK(gradients.report().measured_peak < 100'000 * 4 + 100'000);
}

TEST_CASE("slices, pads and concatenations between elementwise operations are not made") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({10'000}, 0.5, DType::f32));
  Var u = x;
  for (int step = 0; step < 5; ++step) u = u + (roll(u, 1, 0) - 2.0 * u + roll(u, -1, 0)) * 0.1;
  const Report report = backward(sum(u * u), {.threads = 1, .profile = true}).report();
  REQUIRE_FALSE(report.steps.empty());
  for (const Report::Step& step : report.steps) {
    INFO(step.operation);
    CHECK(step.operation.find("concat") == std::string::npos);
    CHECK(step.operation.find("slice") == std::string::npos);
    CHECK(step.operation.find("pad") == std::string::npos);
  }
}

TEST_CASE("the backward part makes again what takes no more bytes to make than to hold") {
  constexpr int steps = 20;
  const auto peak = [](bool fuse) {
    Tape tape;
    const Var x = tape.parameter(Tensor::full({10'000}, 0.5, DType::f32));
    const Var a = tape.parameter(Tensor::full({}, 0.1, DType::f32));
    const Var b = tape.parameter(Tensor::full({}, 0.2, DType::f32));
    Var u = x;
    for (int step = 0; step < steps; ++step) {
      const Var left = roll(u, 1, 0);
      const Var right = roll(u, -1, 0);
      u = u + (a * (left - 2.0 * u + right) - b * (right - left)) * 0.1;
    }
    return backward(sum(u), {.threads = 1, .fuse = fuse}).report().measured_peak;
  };
  // A state for each step, not a difference and a curvature.
  constexpr Bytes array = 40'000;
  CHECK(peak(false) >= 2 * steps * array);
  CHECK(peak(true) <= (steps + 8) * array);
}

/// Sums with products in them, and how many of those are made by a product.
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

int count_of(const Report& report, std::string_view operation) {
  return static_cast<int>(
      std::count_if(report.steps.begin(), report.steps.end(),
                    [&](const Report::Step& step) { return step.operation == operation; }));
}

TEST_CASE("products make the sums they go into, with the same bits") {
  for (const SumOfProducts& sums : sums_of_products) {
    INFO(sums.name);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
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
        CHECK(equal(alone, results({.threads = 1, .profile = true}, &made)));
        CHECK(made == (dtype == DType::bf16 ? 0 : sums.made));
        CHECK(equal(alone, results({.threads = 3})));
      }
    }
  }
}

/// Elementwise operations behind others, and how many of these carry one out, forward and backward.
struct Finished {
  const char* name;
  int forward, backward;
  Shape weight;
  Var (*call)(const Var& x, const Var& w);
};

const ConvolutionOptions same{.padding = 1};

const Finished finished[] = {
    {"an activation",
     1,
     1,
     {4, 4, 3, 3},
     [](const Var& x, const Var& w) { return conv2d(relu(conv2d(x, w, {}, same)), w, {}, same); }},
    {"strides and holes",
     1,
     1,
     {4, 4, 2, 2},
     [](const Var& x, const Var& w) {
       const Var y = tanh(conv2d(x, w, {}, {.stride = 2, .dilation = 2}));
       return conv2d(y, w, {}, {.stride = {1, 3}});
     }},
    {"a group's channels",
     1,
     1,
     {4, 2, 3, 1},
     [](const Var& x, const Var& w) {
       const ConvolutionOptions grouped{.padding = {1, 0}, .groups = 2};
       return conv2d(exp(conv2d(x, w, {}, grouped)), w, {}, grouped);
     }},
    {"pooled",
     1,
     1,
     {4, 4, 3, 3},
     [](const Var& x, const Var& w) { return max_pool(relu(conv2d(x, w, {}, same)), 2); }},
    {"windows that overlap",
     1,
     1,
     {4, 4, 3, 3},
     [](const Var& x, const Var& w) {
       return max_pool(tanh(conv2d(x, w, {}, same)), 3, {.stride = 1, .padding = 1});
     }},
    {"something added that lies in memory",
     1,
     1,
     {4, 4, 3, 3},
     [](const Var& x, const Var& w) { return max_pool(x + conv2d(x, w, {}, same), 2); }},
    {"a channel added",
     0,
     0,
     {4, 4, 3, 3},
     [](const Var& x, const Var& w) {
       return max_pool(conv2d(x, w, {}, same) + mean(x, {1}, true), 2);
     }},
    {"read twice",
     0,
     0,
     {4, 4, 3, 3},
     [](const Var& x, const Var& w) {
       const Var y = conv2d(x, w, {}, same);
       return max_pool(tanh(y), 2) + max_pool(y, 2);
     }},
    {"a group behind it",
     0,
     0,
     {4, 4, 3, 3},
     [](const Var& x, const Var& w) { return tanh(conv2d(x, w, {}, same)) * 2.0 + 1.0; }},
};

TEST_CASE("kernels carry out the elementwise operation that follows, with the same bits") {
  for (const Finished& row : finished) {
    INFO(row.name);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      // Some images in a block, and some blocks in an image.
      for (const Shape& shape : {Shape{9, 4, 7, 6}, Shape{2, 4, 41, 40}}) {
        const auto results = [&](const RunOptions& options, int* made = nullptr) {
          Tape tape;
          const Var x = tape.parameter(Tensor::normal(shape, 5, 0, 1, dtype));
          const Var w = tape.parameter(Tensor::normal(row.weight, 6, 0, 0.3, dtype));
          const Var y = row.call(x, w);
          const Gradients gradients = backward(sum(y * y), options);
          for (const Report::Step& step : gradients.report().steps) {
            if (made == nullptr) break;
            const std::string& name = step.operation;
            made[0] += name.starts_with("convolution+");
            made[1] += name.starts_with("transposed_convolution+") ||
                       name.starts_with("max_pool_adjoint+");
          }
          return std::vector<Tensor>{gradients.loss(), gradients[x], gradients[w]};
        };
        int made[2] = {0, 0};
        const auto alone = results({.threads = 1, .fuse = false});
        CHECK(equal(alone, results({.threads = 1, .profile = true}, made)));
        CHECK(made[0] == (dtype == DType::bf16 ? 0 : row.forward));
        CHECK(made[1] == (dtype == DType::bf16 ? 0 : row.backward));
        CHECK(equal(alone, results({.threads = 3})));
      }
    }
  }
}

TEST_CASE("the gradient of a pooled activation takes the place of one image, not of two") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({8, 4, 64, 64}, 1));
  const Var w = tape.parameter(Tensor::normal({4, 4, 3, 3}, 2));
  const Var y = max_pool(relu(conv2d(x, w, {}, same)), 2);
  const Report report = backward(sum(y), {.threads = 1}).report();
  constexpr Bytes image = 8 * 4 * 64 * 64 * 4;
  // The activation, its gradient and a quarter; the gradient of x.
  CHECK(report.measured_peak < 3 * image);
}

TEST_CASE("the gradient of a weight that is read at every step takes no memory for its terms") {
  constexpr int steps = 40;
  Tape tape;
  const Var w = tape.parameter(Tensor::uniform({300, 300}, 1, -0.1, 0.1, DType::f32));
  Var h = tape.constant(Tensor::uniform({8, 300}, 2, -1, 1, DType::f32));
  for (int step = 0; step < steps; ++step) h = tanh(matmul(h, w));
  const Report report = backward(sum(h), {.threads = 1, .profile = true}).report();
  CHECK(count_of(report, "matmul+add") == steps - 1);
  constexpr Bytes weight = 300 * 300 * 4;
  constexpr Bytes state = 8 * 300 * 4;
  CHECK(report.measured_peak < 2 * weight + (steps + 10) * state + 400'000);
}

TEST_CASE("a recognised program runs with its own numbers and random streams") {
  const auto evaluator = lazy({.threads = 1});
  const auto results = [&](double number, bool fuse) {
    Tape tape(evaluator);
    tape.set_seed(static_cast<std::uint64_t>(number));
    const Var x = tape.parameter(Tensor::full({1000}, 0.5));
    const Var y = dropout(tanh(x * number) + number, 0.5) * 2.0;
    const Gradients gradients = backward(sum(y * y), {.threads = 1, .fuse = fuse});
    return std::vector<Tensor>{gradients.loss(), gradients[x]};
  };
  for (const double number : {2.0, 3.0, 2.0})
    CHECK(equal(results(number, true), results(number, false)));
  CHECK_FALSE(equal(results(2, true), results(3, true)));
}

TEST_CASE("where groups take more than the budget, nodes run one by one") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({100, 100}, 0.5));
  const Var y = exp(x);
  const std::vector<Var> values{sum(y, {0}), sum(y * y, {0}), sum(tanh(y), {0}), sum(y - 1.0, {0})};
  const Bytes one = evaluate(values, {.threads = 1, .fuse = false}).measured_peak;
  for (const Var& value : values) tape.drop(value.id());
  REQUIRE(evaluate(values, {.threads = 1}).measured_peak > one);
  for (const Var& value : values) tape.drop(value.id());
  const Report report = evaluate(values, {.memory_budget = one, .threads = 1});
  CHECK(report.measured_peak <= one);
}

TEST_CASE("a program recorded anew is known by what planning and fusing read of it") {
  LoweredStore store;
  const auto lowered = [&](std::int64_t elements, double number, std::int64_t first, bool fuse) {
    Tape tape;
    const Var x = tape.parameter(Tensor::zeros({elements}));
    const Var y = tanh(slice(x, 0, {first, first + 10}) * number);
    const ValueId target = y.id();
    const LoweredStore::Request request{{&target, 1}, tape.node_count(), {}, 1};
    return store.find_or_make(tape, request).get(tape, request, fuse);
  };
  const auto first = lowered(20, 2, 0, true);
  CHECK(lowered(20, 2, 0, true) == first);
  CHECK(lowered(20, 3, 0, true) == first);
  CHECK(lowered(20, 2, 5, true) != first);
  CHECK(lowered(30, 2, 0, true) != first);
  CHECK(lowered(20, 2, 0, false) != first);
  CHECK(lowered(20, 2, 0, true) == first);
}

}  // namespace
}  // namespace palimpsest
