#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/gradcheck.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::losses_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using Numbers = std::vector<double>;

Numbers elements(const Var& y) {
  Numbers list;
  for (std::int64_t i = 0; i < y.value().elements(); ++i) list.push_back(y.value().at(i));
  return list;
}

/// The probability of `target` as the sum over all paths of classes.
double enumerated(const Tensor& log_probabilities, const std::vector<int>& target) {
  const std::int64_t steps = log_probabilities.shape()[0];
  const std::int64_t classes = log_probabilities.shape()[2];
  std::int64_t paths = 1;
  for (std::int64_t t = 0; t < steps; ++t) paths *= classes;
  double total = 0;
  for (std::int64_t path = 0; path < paths; ++path) {
    std::vector<int> labels;
    double score = 0;
    int before = 0;
    for (std::int64_t t = 0, rest = path; t < steps; ++t, rest /= classes) {
      const int c = static_cast<int>(rest % classes);
      score += log_probabilities.at(t * classes + c);
      if (c != 0 && c != before) labels.push_back(c);
      before = c;
    }
    if (labels == target) total += std::exp(score);
  }
  return total;
}

TEST_CASE("the CTC loss sums over all alignments") {
  const std::vector<int> target = GENERATE(std::vector<int>{}, std::vector<int>{1},
                                           std::vector<int>{2, 2}, std::vector<int>{1, 2, 1});
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({5, 1, 3}, 3, 0, 1, DType::f64));
  const Var p = log_softmax(x);
  const std::int64_t length = std::ssize(target);
  Tensor labels({1, length}, DType::i64);
  for (std::size_t i = 0; i < target.size(); ++i) labels.data<std::int64_t>()[i] = target[i];
  const Var loss =
      ctc_loss(p, tape.constant(labels), tape.constant(Tensor::from<std::int64_t>({5}, {1})),
               tape.constant(Tensor::from({length}, {1})), {.reduction = Reduction::sum});
  CHECK(std::abs(loss.item() + std::log(enumerated(p.value(), target))) < 1e-12);
  // The classes of each step share the whole loss.
  const Numbers shares = elements(sum(gradient(loss, p), {1, 2}));
  for (const double share : shares) CHECK(std::abs(share + 1) < 1e-12);
}

TEST_CASE("targets that are too long have an infinite CTC loss without derivatives") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({3, 2, 4}, 4));
  const Var targets = tape.constant(Tensor::from<std::int64_t>({1, 1, 2, 3}, {2, 2}));
  const Var steps = tape.constant(Tensor::from<std::int64_t>({2, 0}, {2}));
  const Var lengths = tape.constant(Tensor::from<std::int64_t>({2, 0}, {2}));
  const auto losses = [&](const CtcOptions& options) {
    return ctc_loss(log_softmax(x), targets, steps, lengths, options);
  };
  CHECK(elements(losses({.reduction = Reduction::none})) == Numbers{infinity, 0});
  CHECK(elements(losses({.reduction = Reduction::none, .zero_infinity = true})) == Numbers{0, 0});
  const Var slope = gradient(losses({.reduction = Reduction::none}), x);
  CHECK(elements(norm(slope)) == Numbers{0});
  CHECK(elements(norm(gradient(slope, x))) == Numbers{0});
}

// The second derivative records the recursion, which must treat such labels as the kernel does.
TEST_CASE("derivatives of the CTC loss agree for labels that equal the blank") {
  const Tensor inputs[] = {Tensor::normal({5, 1, 3}, 6, 0, 1, DType::f64)};
  const GradcheckResult result = gradcheck(
      [](auto xs) {
        Tape& tape = xs[0].tape();
        const Var targets = tape.constant(Tensor::from<std::int64_t>({1, 0, 2}, {1, 3}));
        const Var steps = tape.constant(Tensor::from<std::int64_t>({5}, {1}));
        const Var lengths = tape.constant(Tensor::from<std::int64_t>({3}, {1}));
        return ctc_loss(log_softmax(xs[0]), targets, steps, lengths);
      },
      inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("the CTC loss refuses labels and lengths out of range") {
  Tape tape;
  const Var x = tape.parameter(Tensor::zeros({3, 1, 4}));
  const auto whole = [&](std::vector<std::int64_t> numbers, Shape shape) {
    return tape.constant(Tensor::from(numbers, shape));
  };
  const Var targets = whole({1, 4}, {1, 2});
  const Var three = whole({3}, {1});
  const Var two = whole({2}, {1});
  const Var one = whole({1}, {1});
  check_error([&] { ctc_loss(x, targets, three, two).value(); }, {"ctc_loss", "label 4", "[0, 4)"});
  check_error([&] { ctc_loss(x, targets, three, three).value(); }, {"target length 3", "[0, 3)"});
  check_error([&] { ctc_loss(x, targets, whole({4}, {1}), one).value(); }, {"input length 4"});
  check_error([&] { ctc_loss(x, targets, three, two, {.blank = 4}); }, {"blank", "class 4 of 4"});
  check_error([&] { ctc_loss(select(x, 1, 0), targets, three, two); }, {"(steps, batch, classes)"});
  check_error([&] { ctc_loss(x, x, three, two); }, {"ctc_loss"});
  check_error([&] { ctc_loss(x, whole({1, 2, 3}, {3, 1}), three, two); }, {"targets have shape"});
  check_error([&] { ctc_loss(x, cast(targets, DType::f32), three, two); }, {"give i64 or i32"});
}

TEST_CASE("losses at the ends of their ranges") {
  Tape tape;
  const auto numbers = [&](Numbers list) {
    return tape.parameter(Tensor::from(list, {static_cast<std::int64_t>(list.size())}));
  };
  const Var p = numbers({0, 0, 1, 1});
  const Var t = numbers({0, 1, 0, 1});
  const Var bce = binary_cross_entropy(p, t, Reduction::none);
  CHECK(elements(bce) == Numbers{0, 100, 100, 0});
  CHECK(elements(gradient(bce, p)) == Numbers{1, 0, 0, -1});
  CHECK(elements(soft_margin_loss(numbers({-1000, 1000}), numbers({1, 1}), Reduction::none)) ==
        Numbers{1000, 0});
  CHECK(elements(kl_div(numbers({-1, -1}), numbers({0, 1}), {.reduction = Reduction::none})) ==
        Numbers{0, 1});
  CHECK(elements(smooth_l1_loss(numbers({3, -1}), numbers({1, -1}), 0, Reduction::none)) ==
        Numbers{2, 0});
  CHECK(elements(mse(numbers({3, 1}), numbers({1, 1}), Reduction::batch_mean)) == Numbers{2});
  CHECK(elements(hinge_embedding_loss(numbers({1, 1}), numbers({1, -1}), 1, Reduction::none)) ==
        Numbers{1, 0});
  const Var same = numbers({1, 1});
  CHECK(elements(gradient(margin_ranking_loss(same, same, numbers({1, 1})), same)) ==
        Numbers{0, 0});
}

TEST_CASE("scores of an ignored target get no derivative, also where they are infinite") {
  Tape tape;
  const double infinity = std::numeric_limits<double>::infinity();
  const Var x = tape.parameter(Tensor::from({1.0, 2.0, infinity, -1.0}, {2, 2}));
  const Var classes = tape.constant(Tensor::from<std::int64_t>({0, 5}, {2}));
  const Var g = gradient(cross_entropy(x, classes, {.ignore_index = 5}), x);
  const Var second = gradient(sum(square(g)), x);
  CHECK(g.value().at(0) < 0);
  CHECK(second.value().at(0) != 0);
  for (const std::int64_t i : {2, 3}) {
    CHECK(g.value().at(i) == 0);
    CHECK(second.value().at(i) == 0);
  }
}

TEST_CASE("losses have PyTorch's names too") {
  Tape tape;
  const Var a = tape.parameter(Tensor::normal({2, 3}, 5));
  const Var b = tape.parameter(Tensor::normal({2, 3}, 6));
  const Var classes = tape.constant(Tensor::from<std::int64_t>({2, 0}, {2}));
  CHECK(mse_loss(a, b).item() == mse(a, b).item());
  CHECK(l1_loss(a, b).item() == l1(a, b).item());
  CHECK(huber_loss(a, b, 0.5).item() == huber(a, b, 0.5).item());
  CHECK(nll_loss(a, classes).item() == nll(a, classes).item());
  CHECK(binary_cross_entropy_with_logits(a, b).item() == bce_with_logits(a, b).item());
}

TEST_CASE("distances of equal vectors have derivative 0") {
  Tape tape;
  const Var a = tape.parameter(Tensor::ones({2, 3}, DType::f64));
  const Var distances = cdist(a, a);
  CHECK(elements(distances) == Numbers{0, 0, 0, 0});
  for (const double slope : elements(gradient(distances, a))) CHECK(slope == 0);
  const Var zero = tape.parameter(Tensor::zeros({2, 3}, DType::f64));
  CHECK(elements(cosine_similarity(zero, a)) == Numbers{0, 0});
  CHECK(
      cdist(tape.parameter(Tensor::zeros({0, 3})), tape.parameter(Tensor::zeros({4, 3}))).shape() ==
      Shape{0, 4});
}

TEST_CASE("losses refuse operands that do not fit") {
  Tape tape;
  const Var a = tape.parameter(Tensor::zeros({2, 3}));
  const Var b = tape.parameter(Tensor::zeros({2, 4}));
  const Var scalar = tape.parameter(Tensor::scalar(1));
  const Var whole = tape.constant(Tensor::arange(3));
  check_error([&] { kl_div(a, b); }, {"kl_div", "(2, 3)", "(2, 4)"});
  check_error([&] { cdist(a, b); }, {"cdist", "3 and 4 elements"});
  check_error([&] { cdist(scalar, a); }, {"cdist", "at least 2 axes"});
  check_error([&] { cosine_similarity(a, b); }, {"cosine_similarity"});
  check_error([&] { pairwise_distance(whole, whole); }, {"pairwise_distance"});
  check_error([&] { smooth_l1_loss(a, a, -1); }, {"smooth_l1_loss", "0 or more"});
  check_error([&] { gaussian_nll_loss(a, a, a, {.eps = 0}); }, {"gaussian_nll_loss", "positive"});
  const Var classes = tape.constant(Tensor::from<std::int64_t>({0, 2}, {2}));
  check_error([&] { multi_margin_loss(a, whole); }, {"multi_margin_loss", "(3)", "(2, 3)"});
  check_error([&] { multi_margin_loss(a, classes, {.p = 3}); }, {"multi_margin_loss", "1 or 2"});
  check_error([&] { multi_margin_loss(a, classes, {}, b); }, {"multi_margin_loss", "(2, 4)"});
  check_error([&] { multi_margin_loss(whole, classes); }, {"multi_margin_loss"});
  check_error([&] { mse(scalar, scalar, Reduction::batch_mean); }, {"reduce_loss", "axis 0"});
}

}  // namespace
}  // namespace palimpsest::losses_test
