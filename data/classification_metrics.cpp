#include "data/metrics.h"

#include <cmath>
#include <span>
#include <string>

namespace palimpsest {
namespace {

/// Integers of a tensor of any shape.
std::vector<std::int64_t> integers_of(const Tensor& tensor, const std::string& operation) {
  if (!is_integer(tensor.dtype())) {
    throw DTypeError("[" + operation + "] labels and answers cannot be " +
                     std::string(name_of(tensor.dtype())) + "; convert them to i64");
  }
  const Tensor wide = tensor.to(DType::i64);
  const auto data = wide.data<std::int64_t>();
  return {data.begin(), data.end()};
}

void require_class(std::int64_t number, std::int64_t classes, const std::string& operation) {
  if (number >= 0 && number < classes) return;
  throw ArgumentError("[" + operation + "] " + std::to_string(number) + " is no class; give 0 to " +
                      std::to_string(classes - 1));
}

/// The labels of examples that count: at the place of others, `ignore_index`.
std::vector<std::int64_t> checked_labels(const Tensor& labels, const Shape& expected,
                                         std::int64_t classes,
                                         std::optional<std::int64_t> ignore_index,
                                         const std::string& operation) {
  if (labels.shape() != expected) {
    throw ShapeError("[" + operation + "] labels have shape " + to_string(labels.shape()) +
                     ", not " + to_string(expected) + "; give one for each answer");
  }
  std::vector<std::int64_t> numbers = integers_of(labels, operation);
  for (const std::int64_t label : numbers) {
    if (label != ignore_index) require_class(label, classes, operation);
  }
  return numbers;
}

/// The shape of the labels of some logits.
Shape without_classes(const Tensor& logits, const std::string& operation) {
  if (!is_floating(logits.dtype())) {
    throw DTypeError("[" + operation + "] logits cannot be " +
                     std::string(name_of(logits.dtype())) + "; give a floating dtype");
  }
  Shape shape = logits.shape();
  if (shape.rank() == 0 || shape[-1] == 0) {
    throw ShapeError("[" + operation + "] logits have shape " + to_string(shape) +
                     "; give them a last axis of classes");
  }
  shape.erase(shape.rank() - 1);
  return shape;
}

/// Calls `f(example, logits of the example)` for every example.
template <class F>
void for_examples(const Tensor& logits, F f) {
  const auto classes = static_cast<std::size_t>(logits.shape()[-1]);
  const Tensor computed = logits.to(compute_dtype(logits.dtype()));
  visit_floating(computed.dtype(), [&]<class T>(T) {
    const std::span<const T> data = computed.data<T>();
    for (std::size_t i = 0; i * classes < data.size(); ++i)
      f(i, data.subspan(i * classes, classes));
  });
}

/// True if `a` precedes `b` among logits from large to small. NaN is the largest.
template <class T>
bool precedes(T a, T b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

/// How many logits come before that of `label`.
template <class T>
std::int64_t rank_of(std::span<const T> logits, std::int64_t label) {
  const T own = logits[static_cast<std::size_t>(label)];
  std::int64_t before = 0;
  for (std::int64_t i = 0; const T logit : logits) {
    before += precedes(logit, own) || (i < label && !precedes(own, logit));
    ++i;
  }
  return before;
}

template <class T>
std::int64_t answer_of(std::span<const T> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (precedes(logits[i], logits[best])) best = i;
  }
  return static_cast<std::int64_t>(best);
}

std::vector<std::int64_t> answers_of(const Tensor& logits) {
  std::vector<std::int64_t> answers;
  for_examples(logits, [&](std::size_t, auto row) { answers.push_back(answer_of(row)); });
  return answers;
}

}  // namespace

Accuracy::Accuracy(AccuracyOptions options) : options_(options) {
  if (options_.top < 1) {
    throw ArgumentError("[accuracy] top is " + std::to_string(options_.top) + "; give 1 or more");
  }
}

void Accuracy::add(const Tensor& logits, const Tensor& labels) {
  const Shape shape = without_classes(logits, "accuracy");
  const std::vector<std::int64_t> numbers =
      checked_labels(labels, shape, logits.shape()[-1], options_.ignore_index, "accuracy");
  for_examples(logits, [&](std::size_t i, auto row) {
    const std::int64_t label = numbers[i];
    if (label == options_.ignore_index) return;
    ++examples_;
    right_ +=
        !std::isnan(row[static_cast<std::size_t>(label)]) && rank_of(row, label) < options_.top;
  });
}

ConfusionMatrix::ConfusionMatrix(std::int64_t classes, std::optional<std::int64_t> ignore_index)
    : classes_(classes), ignore_index_(ignore_index) {
  if (classes < 1) {
    throw ArgumentError("[confusion_matrix] there are " + std::to_string(classes) +
                        " classes; give 1 or more");
  }
  counts_.resize(static_cast<std::size_t>(Shape{classes, classes}.elements()));
}

void ConfusionMatrix::add(const Tensor& logits_or_answers, const Tensor& labels) {
  const Tensor& given = logits_or_answers;
  const std::string operation = "confusion_matrix";
  const bool are_answers = is_integer(given.dtype());
  const Shape shape = are_answers ? given.shape() : without_classes(given, operation);
  if (!are_answers && given.shape()[-1] != classes_) {
    throw ShapeError("[confusion_matrix] logits have shape " + to_string(given.shape()) + ", not " +
                     std::to_string(classes_) + " classes; give as many as the matrix has");
  }
  const std::vector<std::int64_t> numbers =
      checked_labels(labels, shape, classes_, ignore_index_, operation);
  const std::vector<std::int64_t> answers =
      are_answers ? integers_of(given, operation) : answers_of(given);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != ignore_index_) require_class(answers[i], classes_, operation);
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == ignore_index_) continue;
    ++counts_[static_cast<std::size_t>(numbers[i] * classes_ + answers[i])];
  }
}

Tensor ConfusionMatrix::value() const { return Tensor::from(counts_, Shape{classes_, classes_}); }

Tensor ConfusionMatrix::precision() const {
  std::vector<double> shares;
  for (std::int64_t answer = 0; answer < classes_; ++answer) {
    std::int64_t all = 0;
    for (std::int64_t label = 0; label < classes_; ++label) all += count(label, answer);
    shares.push_back(static_cast<double>(count(answer, answer)) / static_cast<double>(all));
  }
  return Tensor::from(shares, Shape{classes_});
}

Tensor ConfusionMatrix::recall() const {
  std::vector<double> shares;
  for (std::int64_t label = 0; label < classes_; ++label) {
    std::int64_t all = 0;
    for (std::int64_t answer = 0; answer < classes_; ++answer) all += count(label, answer);
    shares.push_back(static_cast<double>(count(label, label)) / static_cast<double>(all));
  }
  return Tensor::from(shares, Shape{classes_});
}

double ConfusionMatrix::accuracy() const {
  std::int64_t all = 0;
  std::int64_t right = 0;
  for (std::int64_t label = 0; label < classes_; ++label) {
    right += count(label, label);
    for (std::int64_t answer = 0; answer < classes_; ++answer) all += count(label, answer);
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace palimpsest
