#include "autodiff/operations/convolution.h"

#include "autodiff/error.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"

namespace palimpsest::convolution_test {
namespace {

using Catch::Matchers::Contains;

std::string message_of(void (*call)(Tape&)) {
  Tape tape;
  try {
    call(tape);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

Var zero(Tape& tape, const Shape& shape) { return tape.parameter(Tensor::zeros(shape)); }

TEST_CASE("convolution says what does not fit") {
  const struct {
    void (*call)(Tape&);
    const char* words;
  } cases[] = {
      {[](Tape& t) { conv2d(zero(t, {2, 3, 8, 8}), zero(t, {4, 2, 3, 3})); },
       "input (2, 3, 8, 8) has 3 channels, but weight (4, 2, 3, 3) with 1 groups takes 2"},
      {[](Tape& t) {
         conv2d(zero(t, {2, 8, 9, 3}), zero(t, {4, 2, 3, 3}), {}, {.channels = Channels::last});
       },
       "input (2, 8, 9, 3) has 3 channels, but weight (4, 2, 3, 3) with 1 groups takes 2"},
      {[](Tape& t) { conv2d(zero(t, {2, 3, 8}), zero(t, {4, 3, 3})); },
       "input (2, 3, 8) must have 4 axes"},
      {[](Tape& t) { conv2d(zero(t, {2, 3, 8, 8}), zero(t, {4, 3, 3})); },
       "differs in number of axes"},
      {[](Tape& t) { convolution(zero(t, {2, 3}), zero(t, {4, 3})); }, "1 to 3 spatial axes"},
      {[](Tape& t) { conv2d(zero(t, {2, 3, 8, 2}), zero(t, {4, 3, 3, 5}), {}, {.padding = 1}); },
       "spans 5 elements, but input (2, 3, 8, 2) with padding has 4; pad more"},
      {[](Tape& t) { conv2d(zero(t, {2, 3, 8, 8}), zero(t, {4, 1, 3, 3}), {}, {.groups = 2}); },
       "2 groups do not divide the 3 channels"},
      {[](Tape& t) { conv2d(zero(t, {2, 3, 8, 8}), zero(t, {4, 3, 3, 3}), zero(t, {3})); },
       "bias (3) does not fit; give (4)"},
      {[](Tape& t) { conv2d(zero(t, {2, 3, 8, 8}), zero(t, {4, 3, 3, 3}), {}, {.stride = 0}); },
       "stride is 0; it must be at least 1"},
      {[](Tape& t) {
         conv2d(zero(t, {2, 3, 8, 8}), zero(t, {4, 3, 3, 3}), {}, {.dilation = {1, 2, 3}});
       },
       "dilation has 3 numbers for 2 spatial axes"},
      {[](Tape& t) { conv2d(zero(t, {2, 3, 8, 8}), zero(t, {4, 3, 0, 3})); },
       "has an axis of size 0"},
      {[](Tape& t) {
         conv2d(t.constant(Tensor::zeros({1, 1, 2, 2}, DType::i64)),
                t.constant(Tensor::zeros({1, 1, 1, 1}, DType::i64)));
       },
       "takes floating dtypes, not i64 (1, 1, 2, 2)"},
      {[](Tape& t) {
         transposed_convolution(zero(t, {1, 2, 5}), zero(t, {2, 1, 3}), {},
                                {.stride = 2, .output_padding = 2});
       },
       "output_padding 2 must be less than the stride 2"},
      {[](Tape& t) {
         transposed_convolution(zero(t, {1, 2, 2}), zero(t, {2, 1, 3}), {}, {.padding = 2});
       },
       "removes the whole result"},
      {[](Tape& t) { transposed_convolution(zero(t, {1, 2, 2}), zero(t, {3, 1, 3})); },
       "has 2 channels, but weight (3, 1, 3) with 1 groups takes 3"},
  };
  for (const auto& [call, words] : cases) {
    CHECK_THAT(message_of(call), Contains(words) && Contains("convolution_test.cpp"));
  }
}

TEST_CASE("a convolution without a batch is the one of a batch of one") {
  Tape tape;
  const Var x = tape.constant(Tensor::normal({3, 5, 4}, 1));
  const Var batch = tape.constant(x.value().reshape({1, 3, 5, 4}));
  const Var w = tape.constant(Tensor::normal({2, 3, 3, 3}, 2));
  const Var y = conv2d(x, w);
  CHECK(y.shape() == Shape{2, 3, 2});
  CHECK(same_bits(y.value(), conv2d(batch, w).value().reshape({2, 3, 2})));
  const Var z = transposed_convolution(y, w);
  CHECK(z.shape() == Shape{3, 5, 4});
  CHECK(conv1d(zeros(tape, {3, 8}), zeros(tape, {4, 3, 3})).shape() == Shape{4, 6});
  CHECK(conv3d(zeros(tape, {3, 8, 8, 8}), zeros(tape, {4, 3, 3, 3, 3})).rank() == 4);
}

TEST_CASE("a convolution with channels last is the one with channels first") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({2, 5, 4, 3}, 1));
  const Var first = tape.parameter(permute(x, {0, 3, 1, 2}).value());
  const Var w = tape.parameter(Tensor::normal({6, 3, 3, 2}, 2));
  const Var bias = tape.parameter(Tensor::normal({6}, 3));
  const Var y = conv2d(x, w, bias, {.stride = {2, 1}, .padding = 1, .channels = Channels::last});
  const Var y_first = conv2d(first, w, bias, {.stride = {2, 1}, .padding = 1});
  REQUIRE(y.shape() == Shape{2, 3, 5, 6});
  CHECK(same_bits(permute(y, {0, 3, 1, 2}).value(), y_first.value()));
  const Var back = transposed_convolution(y, w, {}, {.channels = Channels::last});
  CHECK(same_bits(permute(back, {0, 3, 1, 2}).value(), transposed_convolution(y_first, w).value()));
  const Var alone = reshape(slice(x, 0, {.stop = 1}), {5, 4, 3});
  CHECK(conv2d(alone, w, {}, {.channels = Channels::last}).shape() == Shape{3, 3, 6});
  CHECK(same_bits(permute(gradient(sum(y * y), x), {0, 3, 1, 2}).value(),
                  gradient(sum(y_first * y_first), first).value()));
}

TEST_CASE("gradients of one output do not depend on the stride, however large") {
  const std::int64_t stride =
      GENERATE(std::int64_t{1}, std::int64_t{500}, (std::int64_t{1} << 31) - 1);
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({1, 1, 4, 4}, 1));
  const Var w = tape.parameter(Tensor::normal({1, 1, 4, 4}, 2));
  const Var y = conv2d(x, w, {}, {.stride = stride});
  REQUIRE(y.shape() == Shape{1, 1, 1, 1});
  CHECK(same_bits(gradient(y, x).value(), w.value()));
  CHECK(same_bits(gradient(y, w).value(), x.value()));
}

TEST_CASE("elements between the windows of a convolution have gradient zero") {
  Tape tape;
  const Var x = tape.parameter(Tensor::zeros({1, 1, 11}));
  const Var w = tape.constant(Tensor::vector({2, 3}).reshape({1, 1, 2}));
  const Var y = conv1d(x, w, {}, {.stride = 4, .padding = 1});
  CHECK(same_bits(gradient(y, x).value(),
                  Tensor::vector({3, 0, 0, 2, 3, 0, 0, 2, 3, 0, 0}).reshape({1, 1, 11})));
}

}  // namespace
}  // namespace palimpsest::convolution_test
