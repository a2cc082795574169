#include "autodiff/error.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "autodiff/custom.h"
#include "autodiff/execute.h"
#include "autodiff/gradcheck.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/construction.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/distance.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/mixed_matrices.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/sequence.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sorting.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::errors_test {
namespace {

/// Requires that `f` throws an error of type `E`; returns its message.
template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing of the expected type was thrown";
}

struct Values {
  Tape tape;
  Var x = tape.parameter(Tensor::zeros({2, 3}));
  Var y = tape.parameter(Tensor::zeros({2, 4}));
  Var i = tape.constant(Tensor::arange(3));
  Var b = tape.constant(Tensor::zeros({2, 3}, DType::boolean));
};

using Call = void (*)(Values&);

/// Requires that every row throws an `E` whose message contains all the words and the line in this
/// file.
template <class E>
void check_words(const std::vector<std::pair<Call, std::vector<std::string>>>& rows) {
  for (const auto& [call, words] : rows) {
    Values values;
    const std::string message = message_of<E>([&, f = call] { f(values); });
    INFO(message);
    for (const std::string& word : words) {
      INFO(word);
      CHECK(message.find(word) != std::string::npos);
    }
    CHECK(message.find("(recorded at ") != std::string::npos);
    CHECK(message.find("errors_test.cpp:") != std::string::npos);
  }
}

TEST_CASE("empty and stale handles are named with the operation and the line") {
  const std::string empty = "a Var without a value";
  const std::string stale = "no longer on its tape";
  check_words<TapeError>({
      {[](Values& v) { v.x + Var(); }, {"[add]", empty}},
      {[](Values&) { Var() * 2.0; }, {"[multiply]", empty}},
      {[](Values&) { exp(Var()); }, {"[exp]", empty}},
      {[](Values&) { sum(Var()); }, {"[sum]", empty}},
      {[](Values&) { reshape(Var(), {1}); }, {"[reshape]", empty}},
      {[](Values& v) { where(Var(), v.x, v.x); }, {"[where]", empty}},
      {[](Values&) { cast(Var(), DType::f64); }, {"[cast]", empty}},
      {[](Values&) { -Var(); }, {"[negate]", empty}},
      {[](Values&) { split(Var(), {1}, 0); }, {"[split]", empty}},
      {[](Values&) { chunk(Var(), 2, 0); }, {"[chunk]", empty}},
      {[](Values& v) { stack({v.x, Var()}, 0); }, {"[stack]", empty}},
      {[](Values& v) { logical_and(v.b, Var()); }, {"[logical_and]", empty}},
      {[](Values&) { logical_not(Var()); }, {"[logical_not]", empty}},
      {[](Values&) { pixel_shuffle(Var(), 2); }, {"[pixel_shuffle]", empty}},
      {[](Values&) { batch_norm(Var()); }, {"[batch_norm]", empty}},
      {[](Values& v) { batch_norm(v.x, Var(), v.x, Var(), Var()); }, {"[batch_norm]", empty}},
      {[](Values& v) { batch_norm(Var(), v.x, v.x, Var(), Var()); }, {"[batch_norm]", empty}},
      {[](Values&) { stop_gradient(Var()); }, {"[stop_gradient]", empty}},
      {[](Values&) { identity(Var()); }, {"[identity]", empty}},
      {[](Values&) { full_like(Var(), 0); }, {"[full_like]", empty}},
      {[](Values& v) { grid_sample(v.x, Var()); }, {"[grid_sample]", empty}},
      {[](Values& v) { rnn_cell(v.x, Var(), {}); }, {"[rnn_cell]", empty}},
      {[](Values& v) { lstm_cell(v.x, {}, {}); }, {"[lstm_cell]", empty}},
      {[](Values& v) { mse(v.x, Var()); }, {"[mse]", empty}},
      {[](Values& v) { huber(Var(), v.x); }, {"[huber]", empty}},
      {[](Values&) { reduce_loss(Var(), Reduction::none); }, {"[reduce_loss]", empty}},
      {[](Values&) { multi_head_attention(Var(), {}, 1); }, {"[multi_head_attention]", empty}},
      {[](Values& v) { jacobian(v.x, Var()); }, {"[jacobian]", empty}},
      {[](Values& v) { hessian(Var(), v.x); }, {"[hessian]", empty}},
      {[](Values& v) { jvp(Var(), v.x, v.x); }, {"[jvp]", empty}},
      {[](Values& v) { jvp(v.x, v.x, Var()); }, {"[jvp]", empty}},
      {[](Values& v) { hvp(Var(), v.x, v.x); }, {"[hvp]", empty}},
      {[](Values&) { sum_to(Var(), {}); }, {"[sum_to]", empty}},
      {[](Values& v) { v.tape.clear(), v.x + v.x; }, {"[add]", stale}},
      {[](Values& v) { v.tape.clear(), transpose(v.x); }, {"[transpose]", stale}},
  });
}

TEST_CASE("shape errors name the operation, the shapes and the next step") {
  check_words<ShapeError>({
      {[](Values& v) { v.x + v.y; }, {"[add]", "(2, 3)", "(2, 4)", "sizes must be equal or 1"}},
      {[](Values& v) { where(v.b, v.y, v.y); }, {"[where]", "(2, 3)", "(2, 4)"}},
      {[](Values& v) { sum(v.x, {2}); }, {"[sum]", "axis 2", "(2, 3)"}},
      {[](Values& v) { sum(v.x, {0, -2}); }, {"[sum]", "named twice"}},
      {[](Values& v) { reshape(v.x, Shape{5}); },
       {"[reshape]", "(2, 3)", "6 elements", "(5)", "product is 6"}},
      {[](Values& v) { reshape(v.x, {-1, 4}); }, {"[reshape]", "(-1, 4)", "divides 6"}},
      {[](Values& v) { reshape(v.x, {4, 2}); }, {"[reshape]", "(4, 2)", "product is 6"}},
      {[](Values& v) { unsqueeze(reshape(v.x, {1, 1, 1, 1, 1, 1, 2, 3}), 0); },
       {"[unsqueeze]", "9 axes", "at most 8 axes"}},
      {[](Values& v) { one_hot(v.i, -1); }, {"size -1", "give 0 or more"}},
      {[](Values& v) { mean(slice(v.x, 0, {0, 0})); }, {"[mean]", "(0, 3)", "check for empty"}},
      {[](Values& v) {
         const Var y = reshape(v.x, {1, 1, 1, 1, 2, 3});
         jacobian(y, y);
       },
       {"[jacobian]", "more than 8 axes"}},
      {[](Values& v) { cross_entropy(v.x, v.y); },
       {"[cross_entropy]", "probabilities", "(2, 3)", "(2, 4)"}},
      {[](Values& v) { broadcast_to(v.x, Shape{3}); },
       {"[broadcast_to]", "(2, 3)", "(3)", "must be 1 or that of the result"}},
      {[](Values& v) { vjp({&v.x, 1}, {&v.x, 1}, {&v.y, 1}); },
       {"[gradient]", "seed 0 is f32 (2, 4)", "f32 (2, 3)", "give a seed of the same type"}},
  });
}

TEST_CASE("errors name the function that was called, not one that it consists of") {
  const std::string away = "axis 7 is out of range for shape (2, 3)";
  const std::string apart = "shapes (2, 3) and (2, 4) do not broadcast";
  check_words<ShapeError>({
      {[](Values& v) { argmax(v.x, {7}); }, {"[argmax]", away}},
      {[](Values& v) { argmin(v.x, {7}); }, {"[argmin]", away}},
      {[](Values& v) { argsort(v.x, 7); }, {"[argsort]", away}},
      {[](Values& v) { tril(sum(v.x, {0})); }, {"[tril]", "shape (3)"}},
      {[](Values& v) { triu(sum(v.x, {0})); }, {"[triu]", "shape (3)"}},
      {[](Values& v) { lerp(v.x, v.y, 0.5); }, {"[lerp]", apart}},
      {[](Values& v) { lerp(v.x, v.x, v.y); }, {"[lerp]", apart}},
      {[](Values& v) { vecdot(v.x, v.y); }, {"[vecdot]", apart}},
      {[](Values& v) { pairwise_distance(v.x, v.y); }, {"[pairwise_distance]", apart}},
      {[](Values& v) { triplet_margin_loss(v.x, v.x, v.y); }, {"[triplet_margin_loss]", apart}},
      {[](Values& v) { det(v.x); }, {"[det]", "(2, 3)", "lstsq, pinv, qr and svd"}},
  });
  check_words<DTypeError>({
      {[](Values& v) { embedding(v.x, v.x); }, {"[embedding]", "f32 (2, 3)"}},
      {[](Values& v) { argmax(v.b); }, {"[argmax]", "bool (2, 3)"}},
  });
}

TEST_CASE("dtype errors name the operation, the dtypes and the next step") {
  check_words<DTypeError>({
      {[](Values& v) { exp(v.i); }, {"[exp]", "i64 (3)", "takes floating dtypes", "cast it first"}},
      {[](Values& v) { v.b + v.b; }, {"[add]", "not bool (2, 3)", "cast the operands first"}},
      {[](Values& v) { pow(v.i, v.i); }, {"[pow]", "i64 (3)", "cast one first"}},
      {[](Values& v) { where(v.x, v.x, v.x); },
       {"[where]", "takes bool", "f32 (2, 3)", "compare it first"}},
      {[](Values& v) { logical_not(v.x); }, {"[logical_not]", "f32 (2, 3)"}},
      {[](Values& v) { gradient(v.i, v.i); },
       {"[gradient]", "i64 (3)", "derivatives exist for floating dtypes only", "cast it first"}},
  });
}

TEST_CASE("argument errors name the operation, the argument and the next step") {
  check_words<ArgumentError>({
      {[](Values& v) { clamp(v.x, 1, -1); },
       {"[clamp]", "lower bound 1 is", "upper bound -1;", "swap them"}},
      {[](Values& v) { leaky_relu(v.x, -0.5); },
       {"[leaky_relu]", "the slope is -0.5", "give 0 or more"}},
      {[](Values& v) { quantile(v.x, 1e-20 - 1e-10); },
       {"[quantile]", "q is -9.999999999", "e-11; give a number from 0 to 1"}},
      {[](Values& v) { elu(v.x, -1); }, {"[elu]", "the factor is -1;", "give 0 or more"}},
      {[](Values& v) { v.i + 1e30; },
       {"[add]", "is out of range for i64", "cast the other operand first"}},
      {[](Values& v) { chunk(v.x, 0, 1); },
       {"[chunk]", "0 parts of axis 1", "(2, 3)", "give 1 or more"}},
      {[](Values& v) { cross_entropy(v.x, v.x, {.ignore_index = 1}); },
       {"[cross_entropy]", "ignore_index", "probabilities"}},
      {[](Values& v) { v.tape.parameter(Tensor()); },
       {"[parameter]", "the tensor is empty", "assign a tensor"}},
      {[](Values& v) { v.x.output(1); }, {"[parameter]", "has 1 outputs", "no output 1"}},
      {[](Values& v) { static_cast<void>(v.i < 1e30); }, {"[less]", "is out of range for i64"}},
      {[](Values& v) { where(v.i > 0, v.i, 0x1p63); }, {"[where]", "is out of range for i64"}},
      {[](Values& v) { cast(v.i, DType::i32) + 3e9; }, {"[add]", "is out of range for i32"}},
      {[](Values& v) { gather(sum(v.x, {0}), 0, v.i + 1).value(); },
       {"[gather]", "index 3", "out of range for an axis of 3"}},
      {[](Values& v) { gradient(scatter_add(sum(v.x, {0}), 0, v.i, 2), v.x).value(); },
       {"[gather]", "index 2", "out of range for an axis of 2"}},
      {[](Values& v) { nll(v.x, slice(v.i, 0, {.start = 1}) + 1).value(); },
       {"[nll]", "class 3", "is outside [0, 3)", "pass it as ignore_index"}},
      {[](Values& v) { vjp({}, {&v.x, 1}, {}); }, {"[gradient]", "at least one"}},
      {[](Values& v) {
         const Var seeds[] = {v.x, v.x};
         vjp({&v.x, 1}, {&v.x, 1}, seeds);
       },
       {"[gradient]", "2 seeds for 1 values", "give one seed per value"}},
  });
}

/// A number that no enumerator has.
template <class E>
E unnamed() {
  return static_cast<E>(77);
}

TEST_CASE("values of enumerations without a name are refused") {
  static const std::string refused = " is 77, which has no name; give one of";
  static constexpr auto image = [](Values& v) {
    return v.tape.constant(Tensor::zeros({1, 2, 3, 4}));
  };
  static constexpr auto places = [](Values& v) {
    return v.tape.constant(Tensor::zeros({1, 3, 4, 2}));
  };
  static constexpr auto weights = [](Values& v) {
    return v.tape.constant(Tensor::zeros({2, 2, 1, 1}));
  };
  check_words<ArgumentError>({
      {[](Values& v) { reduce_loss(v.x, unnamed<Reduction>()); },
       {"[reduce_loss]", "the reduction" + refused + " the 4 names"}},
      {[](Values& v) { mse(v.x, v.x, unnamed<Reduction>()); }, {"the reduction" + refused}},
      {[](Values& v) {
         const Var h = v.tape.constant(Tensor::zeros({2, 3}));
         const Var w = v.tape.constant(Tensor::zeros({3, 3}));
         rnn_cell(v.x, h, {w, w}, unnamed<CellActivation>());
       },
       {"[rnn_cell]", "the activation" + refused}},
      {[](Values& v) { matrix_norm(v.x, unnamed<MatrixNorm>()); },
       {"[matrix_norm]", "the kind" + refused + " the 5 names"}},
      {[](Values& v) { pad(v.x, {{1, 1}, {0, 0}}, unnamed<PadMode>()); },
       {"[pad]", "the mode" + refused}},
      {[](Values& v) {
         const Var index = v.tape.constant(Tensor::zeros({2, 3}, DType::i64));
         scatter_reduce(v.x, 0, index, v.x, unnamed<ScatterReduction>());
       },
       {"[scatter_reduce]", "the reduction" + refused + " the 5 names"}},
      {[](Values& v) {
         grid_sample(image(v), places(v), {.interpolation = unnamed<Interpolation>()});
       },
       {"[grid_sample]", "the interpolation" + refused}},
      {[](Values& v) { grid_sample(image(v), places(v), {.padding = unnamed<GridPadding>()}); },
       {"[grid_sample]", "the padding" + refused}},
      {[](Values& v) { resize(image(v), 5, {.interpolation = unnamed<Interpolation>()}); },
       {"[resize]", "the interpolation" + refused + " the 3 names"}},
      {[](Values& v) { meshgrid({v.i, v.i}, unnamed<GridIndexing>()); },
       {"[meshgrid]", "the indexing" + refused}},
      {[](Values& v) { quantile(v.x, 0.5, {.method = unnamed<QuantileMethod>()}); },
       {"[quantile]", "the method" + refused + " the 5 names"}},
      {[](Values& v) { nanquantile(v.x, 0.5, {.method = unnamed<QuantileMethod>()}); },
       {"[nanquantile]", "the method" + refused}},
      {[](Values& v) { convolution(image(v), weights(v), {}, {.channels = unnamed<Channels>()}); },
       {"[convolution]", "the position of channels" + refused}},
      {[](Values& v) { max_pool(image(v), 2, {.channels = unnamed<Channels>()}); },
       {"[max_pool]", "the position of channels" + refused}},
      {[](Values& v) { adaptive_max_pool(image(v), 1, unnamed<Channels>()); },
       {"[adaptive_max_pool]", "the position of channels" + refused}},
      {[](Values& v) { global_average_pool(image(v), unnamed<Channels>()); },
       {"[global_average_pool]", "the position of channels" + refused}},
      {[](Values& v) { cast(v.x, unnamed<DType>()); },
       {"[cast]", "the dtype" + refused + " f64, f32, bf16"}},
      {[](Values& v) { full(v.tape, {2}, 1, unnamed<DType>()); }, {"the dtype" + refused}},
      {[](Values& v) { sum(cast(v.b, unnamed<DType>())); }, {"the dtype" + refused}},
  });
  check_words<ArgumentError>({{[](Values&) {
                                 CustomOperation({.name = "own",
                                                  .forward = [](const CustomCall&) {},
                                                  .half = unnamed<HalfSupport>()});
                               },
                               {"[own]", "its support of 16 bits" + refused}}});
  CHECK(message_of<ArgumentError>([] { Tensor({2}, unnamed<DType>()); }) ==
        "[tensor] the dtype" + refused + " f64, f32, bf16, f16, i64, i32, i16, i8, u8, bool");
  CHECK(message_of<ArgumentError>([] {
          Tensor::zeros({2}).to(unnamed<DType>());
        }).starts_with("[tensor] the dtype" + refused));
}

TEST_CASE("an operation whose derivative has the wrong type is found out") {
  static const Operation crooked{
      .name = "crooked",
      .formula = "y = x",
      .summary = "its adjoint has another shape",
      .vjp = [](const Pullback& p) { p.set(0, sum(p.adjoint())); },
      .view = true,
  };
  Values v;
  const ValueType type = v.x.type();
  const Var y = v.tape.record(crooked, {&v.x, 1}, {&type, 1}, {}, Where::current());
  CHECK_THAT(message_of<ShapeError>([&] { gradient(y, v.x); }),
             Catch::Matchers::Contains("[crooked]") && Catch::Matchers::Contains("input 0") &&
                 Catch::Matchers::Contains("f32 (2, 3)") && Catch::Matchers::Contains("f32 ()"));
}

TEST_CASE("errors are one family with three kinds of blame") {
  const auto where = Where::current();
  CHECK_THROWS_AS(throw ShapeError("op", "text", where), UsageError);
  CHECK_THROWS_AS(throw AnomalyError("op", "text", where), UsageError);
  CHECK_THROWS_AS(throw FileError("text"), EnvironmentError);
  CHECK_THROWS_AS(throw InternalError("text"), Error);
  CHECK_THAT(InternalError("tape out of order").what(),
             Catch::Matchers::Contains("[internal] tape out of order") &&
                 Catch::Matchers::Contains("please report it"));
  CHECK(to_string(where).find("errors_test.cpp:") != std::string::npos);
}

TEST_CASE("the first number that is not finite is reported with all that is known") {
  Tape tape;
  const auto layer = tape.scope("encoder");
  const Var x = tape.constant(Tensor::vector({1, 0, -2}));
  const Var y = log(x).named("score");
  const Tensor input = x.value();
  const Tensor output = y.value();
  const Operand in{input.raw(), input.type()};
  const Operand out{output.raw(), output.type()};
  const std::string message =
      message_of<AnomalyError>([&] { check_finite(tape, y.node(), {&in, 1}, {&out, 1}); });
  INFO(message);
  for (const char* word : {"[log]", "output 0 f32 (3)", "encoder/score log #1", "2 elements",
                           "not finite", "input 0 f32 (3)", "[-2, 1]", "errors_test.cpp:"}) {
    INFO(word);
    CHECK(message.find(word) != std::string::npos);
  }
  CHECK_NOTHROW(check_finite(tape, x.node(), {}, {&in, 1}));
}

TEST_CASE(
    "no number that is not finite is overlooked, wherever it is, and no other is taken for one") {
  const auto is_refused = [](const Tensor& made) {
    Tape tape;
    const Var x = tape.constant(made);
    const Operand out{made.raw(), made.type()};
    try {
      check_finite(tape, x.node(), {}, {&out, 1});
    } catch (const AnomalyError&) {
      return true;
    }
    return false;
  };
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  CAPTURE(dtype);
  const std::int64_t size = GENERATE(1, 7, 300'001);
  visit(dtype, [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) {
      Tensor tensor = Tensor::zeros({size}, dtype);
      const std::span<T> elements = tensor.data<T>();
      const double largest = dtype == DType::f16 ? 65504 : dtype == DType::f64 ? 1e308 : 3e38;
      for (const double finite : {0.0, -0.0, 1.5, largest, -largest, 1e-45, -6e-8}) {
        std::ranges::fill(elements, convert_element<T>(finite));
        CHECK_FALSE(is_refused(tensor));
      }
      constexpr double infinity = std::numeric_limits<double>::infinity();
      for (const double bad : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
        for (const std::int64_t at : {std::int64_t{0}, size / 2, size - 1}) {
          const auto place = static_cast<std::size_t>(at);
          elements[place] = convert_element<T>(bad);
          CHECK(is_refused(tensor));
          elements[place] = T{};
        }
      }
    }
  });
}

}  // namespace
}  // namespace palimpsest::errors_test
