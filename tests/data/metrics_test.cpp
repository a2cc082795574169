#include "data/metrics.h"

#include <oneapi/tbb/global_control.h>
#include <cmath>
#include <limits>

#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::metrics_test {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor labels(std::initializer_list<std::int64_t> numbers) {
  return Tensor::from(numbers, Shape{static_cast<std::int64_t>(numbers.size())});
}

TEST_CASE("a mean is weighted") {
  WeightedMean mean;
  CHECK(std::isnan(mean.value()));
  mean.add(2, 3);
  mean.add(6);
  CHECK(mean.value() == 3);  // (2·3 + 6) / 4
  CHECK(mean.weight() == 4);
  mean.add(Tensor::vector({1, 2}));
  CHECK(mean.value() == 2.5);  // 15 / 6
  mean.add(Tensor::vector({10, 0.5}), Tensor::from<std::int32_t>({1, 4}, {2}));
  CHECK(mean.value() == 27.0 / 11);
  mean.reset();
  mean.add(Tensor::scalar(4), Tensor::scalar(0));
  CHECK(std::isnan(mean.value()));
  check_error([&] { mean.add(1, -1); }, {"a weight is -1"});
  check_error([&] { mean.add(Tensor::vector({1}), Tensor::vector({1, 2})); }, {"(1)", "(2)"});
  check_error([&] { mean.add(1, not_a_number); }, {"a weight is nan"});
}

TEST_CASE("accuracy is the share of labels among the largest logits") {
  const Tensor logits = Tensor::matrix({{1, 3, 2}, {5, 4, 3}, {1, 2, 9}, {7, 7, 0}});
  Accuracy first;
  first.add(logits, labels({1, 1, 2, 1}));  // of equal logits, the first is the answer
  CHECK(first.value() == 0.5);
  CHECK(first.examples() == 4);
  Accuracy second({.top = 2});
  second.add(logits, labels({0, 1, 2, 1}));
  CHECK(second.value() == 0.75);
  second.add(logits, labels({0, 0, 0, 0}).to(DType::i32));
  CHECK(second.value() == 5.0 / 8);
  Accuracy all({.top = 3});
  all.add(logits, labels({0, 2, 1, 0}));
  CHECK(all.value() == 1);
  all.reset();
  CHECK(std::isnan(all.value()));
}

TEST_CASE("accuracy takes logits of every floating dtype and any rank") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    Accuracy accuracy({.ignore_index = -1});
    accuracy.add(Tensor::from<float>({0, 1, 2, 1, 3, -1, 2, 5}, {1, 4, 2}).to(dtype),
                 Tensor::from<std::int64_t>({1, 1, -1, 1}, {1, 4}));
    CHECK(accuracy.examples() == 3);
    CHECK(accuracy.value() == 2.0 / 3);
  }
}

TEST_CASE("NaN is the largest logit and never right") {
  const auto nan = static_cast<float>(not_a_number);
  Accuracy accuracy;
  accuracy.add(Tensor::matrix({{nan, 1}, {nan, 1}, {1, 0}}), labels({0, 1, 0}));
  CHECK(accuracy.value() == 1.0 / 3);
  ConfusionMatrix matrix(2);
  matrix.add(Tensor::matrix({{1, nan}, {nan, nan}}), labels({0, 0}));
  CHECK(same_bits(matrix.value(), Tensor::from<std::int64_t>({1, 1, 0, 0}, {2, 2})));
}

TEST_CASE("a confusion matrix counts labels and answers") {
  ConfusionMatrix matrix(3, -100);
  matrix.add(labels({0, 0, 1, 1, 7}), labels({0, 1, 1, 1, -100}));
  matrix.add(Tensor::matrix({{3, 1, 2}, {0, 0, 1}}), labels({1, 1}));
  CHECK(same_bits(matrix.value(), Tensor::from<std::int64_t>({1, 0, 0, 2, 2, 1, 0, 0, 0}, {3, 3})));
  CHECK(matrix.accuracy() == 0.5);
  const Tensor precision = matrix.precision();
  CHECK(precision.dtype() == DType::f64);
  CHECK(precision.at(0) == 1.0 / 3);
  CHECK(precision.at(1) == 1);
  CHECK(precision.at(2) == 0);
  const Tensor recall = matrix.recall();
  CHECK(recall.at(0) == 1);
  CHECK(recall.at(1) == 2.0 / 5);
  CHECK(std::isnan(recall.at(2)));
  matrix.reset();
  CHECK(std::isnan(matrix.accuracy()));
  CHECK(std::isnan(matrix.precision().at(0)));
}

TEST_CASE("perplexity weights losses by their tokens") {
  Perplexity perplexity;
  CHECK(std::isnan(perplexity.value()));
  perplexity.add(std::log(2.0), 3);
  perplexity.add(Tensor::scalar(std::log(32.0), DType::f64), 1);
  CHECK(std::abs(perplexity.value() - 4) < 1e-14);  // (2³·32)^¼
  perplexity.reset();
  perplexity.add(0, 5);
  CHECK(perplexity.value() == 1);
  check_error([&] { perplexity.add(1, -1); }, {"-1 tokens"});
}

TEST_CASE("wrong arguments of metrics are errors, after which nothing is added") {
  Accuracy accuracy;
  const Tensor logits = Tensor::matrix({{1, 2}, {2, 1}});
  check_error([&] { accuracy.add(logits, labels({0})); }, {"[accuracy]", "(1)", "(2)"});
  check_error([&] { accuracy.add(logits, labels({0, 2})); }, {"2 is no class", "0 to 1"});
  check_error([&] { accuracy.add(logits, labels({0, -1})); }, {"-1 is no class"});
  check_error([&] { accuracy.add(logits, Tensor::vector({0, 1})); }, {"cannot be f32"});
  check_error([&] { accuracy.add(labels({0, 1}), labels({0, 1})); }, {"logits cannot be i64"});
  check_error([&] { accuracy.add(Tensor::scalar(1), labels({})); }, {"last axis of classes"});
  check_error([&] { Accuracy({.top = 0}); }, {"top is 0"});
  CHECK(accuracy.examples() == 0);

  ConfusionMatrix matrix(2);
  check_error([&] { matrix.add(labels({0, 2}), labels({0, 1})); }, {"2 is no class"});
  check_error([&] { matrix.add(Tensor::matrix({{1, 2, 3}}), labels({0})); }, {"not 2 classes"});
  check_error([&] { ConfusionMatrix(0); }, {"0 classes"});
  CHECK(std::isnan(matrix.accuracy()));
}

TEST_CASE("metrics have the same bits on any number of threads") {
  const Tensor values = Tensor::uniform({100'000}, 1);
  const Tensor logits = Tensor::normal({10'000, 7}, 2, 0, 1, DType::bf16);
  const Tensor classes = Tensor::uniform({10'000}, 3, 0, 7).to(DType::i32);
  const auto measured = [&](std::size_t threads) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    WeightedMean mean;
    mean.add(values);
    Accuracy accuracy({.top = 2});
    accuracy.add(logits, classes);
    ConfusionMatrix matrix(7);
    matrix.add(logits, classes);
    return std::pair(std::pair(mean.value(), accuracy.value()), matrix.accuracy());
  };
  CHECK(measured(1) == measured(4));
}

}  // namespace
}  // namespace palimpsest::metrics_test
