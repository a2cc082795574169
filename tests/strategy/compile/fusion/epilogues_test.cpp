#include "autodiff/operations/binary.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::epilogues_test {
namespace {

/// Elementwise operations after other operations, and how many of these execute one as an epilogue,
/// forward and backward.
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
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      // Several images per block, and several blocks per image.
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
        CHECK(made[0] == (is_half(dtype) ? 0 : row.forward));
        CHECK(made[1] == (is_half(dtype) ? 0 : row.backward));
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
  // The activation, its gradient and a quarter of it; the gradient of x.
  CHECK(report.measured_peak < 3 * image);
}

}  // namespace
}  // namespace palimpsest::epilogues_test
