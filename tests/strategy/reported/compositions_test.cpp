#include <functional>
#include <string>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"

// Reports of another library in which a compiler made wrong gradients of right values
// (docs/reported-elsewhere.md).

namespace palimpsest::reported_compositions_test {
namespace {

struct Composition {
  std::string name;
  std::vector<Tensor> inputs;
  std::function<Var(std::span<const Var>)> record;
};

std::vector<Composition> compositions() {
  const auto image = [](std::int64_t size, std::uint64_t seed) {
    return Tensor::normal({2, 3, size, size}, seed, 0, 1, DType::f64);
  };
  std::vector<Composition> all;
  all.push_back({"185509: resize, convolution, pooling, where",
                 {image(7, 1), Tensor::normal({4, 3, 3, 3}, 2, 0, 0.3, DType::f64)},
                 [](std::span<const Var> x) {
                   const Var large =
                       resize(x[0], {11, 13}, {.interpolation = Interpolation::linear});
                   const Var convolved = conv2d(large, x[1], {}, {.padding = 1});
                   const Var pooled = max_pool(convolved, {3}, {.stride = 2});
                   return where(pooled > 0.2, tanh(pooled), 0.5 * pooled);
                 }});
  all.push_back(
      {"180164: a scatter into a slice",
       {image(6, 3), Tensor::normal({2, 3, 2, 6}, 4, 0, 1, DType::f64)},
       [](std::span<const Var> x) {
         const Var& image = x[0];
         const Var part = slice(image, 2, {1, 5});
         const Var index = image.tape().constant(Tensor::from({3, 0}, {1, 1, 2, 1}));
         const Var changed = scatter(part, 2, broadcast_to(index, x[1].shape()), sin(x[1]));
         return concat({slice(image, 2, {0, 1}), changed * part, slice(image, 2, {5, 6})}, 2);
       }});
  all.push_back(
      {"182012: average pooling with ceil_mode", {image(8, 5)}, [](std::span<const Var> x) {
         const Var a = average_pool(x[0], {3}, {.stride = 2, .padding = 1, .ceil_mode = true});
         const Var b = average_pool(
             x[0], {3}, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
         return sin(a) * b;
       }});
  return all;
}

TEST_CASE(
    "pytorch 185509, 180164, 182012: compositions have one gradient in each form, that of "
    "differences") {
  for (const Composition& one : compositions()) {
    INFO(one.name);
    const GradcheckResult checked = gradcheck(one.record, one.inputs);
    INFO(checked.message);
    CHECK(checked.passed);

    const auto run = [&](std::shared_ptr<Evaluator> mode, RunOptions options) {
      Tape tape(std::move(mode));
      std::vector<Var> inputs;
      for (const Tensor& input : one.inputs) inputs.push_back(tape.parameter(input));
      options.threads = 1;
      return backward(sum(square(one.record(inputs))), options);
    };
    const Gradients plain =
        run(lazy(), {.fuse = false, .simplify = false, .native = NativeCode::off});
    const std::vector<Gradients> others{run(lazy(), {.native = NativeCode::off}),
                                        run(lazy(), {.native = NativeCode::at_once}),
                                        run(eager(), {}), run(hybrid({}, {.nodes = 3}), {})};
    for (const Gradients& other : others) {
      for (std::size_t k = 0; k < one.inputs.size(); ++k) {
        CHECK(same_bits(other.entries()[k].gradient, plain.entries()[k].gradient));
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::reported_compositions_test
