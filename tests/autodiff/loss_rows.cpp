#include "autodiff/operations/loss.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> loss_rows() {
  const Tensor logits = Tensor::normal({4, 6}, 51, 0, 2, DType::f64);
  const Tensor image = Tensor::normal({2, 5, 3, 2}, 52, 0, 2, DType::f64);
  const Tensor classes = Tensor::from<std::int64_t>({5, 0, 3, 3}, {4});
  const Tensor pixels = Tensor::from<std::int32_t>({0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1}, {2, 3, 2});
  const ClassificationOptions smooth{.label_smoothing = 0.2};
  const ClassificationOptions ignoring{.ignore_index = 3};
  const ClassificationOptions everything{
      .reduction = Reduction::none, .axis = 1, .label_smoothing = 0.1, .ignore_index = 3};
  using Loss = Var (*)(const Var&, const Var&, const ClassificationOptions&, Where);
  const auto of = [](Loss loss, const ClassificationOptions& options) {
    return [=](std::span<const Var> xs) { return loss(xs[0], xs[1], options, Where::current()); };
  };
  // The class labels are the last input, so the gradient is with respect to floating inputs only.
  const auto slope = [](Loss loss, const ClassificationOptions& options) {
    return [=](std::span<const Var> xs) {
      const Var y = loss(xs[0], xs[2], options, Where::current());
      return gradient(y * xs[1], xs[0]);
    };
  };
  const Tensor w = Tensor::normal({}, 53, 0, 1, DType::f64);
  const Tensor ws = Tensor::normal({2, 3, 2}, 54, 0, 1, DType::f64);
  // No difference is near 0 or ±0.7, where the derivatives jump.
  const Tensor prediction = Tensor::from({-1.9, 0.3, 2.2, 1.1, -0.4, 0.9}, {2, 3});
  const Tensor target = Tensor::from({0.1, 0.7, 0.5, 0.8, -0.1, 2.4}, {2, 3});
  const Tensor likely = Tensor::uniform({4, 6}, 55, 0, 1, DType::f64);
  const ClassificationOptions along{
      .reduction = Reduction::none, .axis = 1, .label_smoothing = 0.1};
  const Tensor chances = Tensor::uniform({2, 5, 3, 2}, 56, 0, 1, DType::f64);
  const Tensor chances_of_logits = Tensor::uniform({4, 6}, 57, 0, 1, DType::f64);
  const Tensor sides = Tensor::from<std::int64_t>({1, -1, 1, -1, -1, 1}, {2, 3});
  const Tensor variances = Tensor::uniform({2, 3}, 58, 0.25, 2, DType::f64);
  const Tensor counts = Tensor::from({0.0, 2.0, 1.25, 3.0, 7.0, 0.5}, {2, 3});
  const Tensor certain = Tensor::from({0.0, 1.0, 0.0, 1.0}, {4});
  const Tensor sure = Tensor::from({-40.0, 40.0, 30.0, -30.0}, {4});
  return {
      {"cross_entropy", "mean", {logits, classes}, of(cross_entropy, {})},
      {"cross_entropy", "sum", {logits, classes}, of(cross_entropy, {Reduction::sum})},
      {"cross_entropy", "smoothed", {logits, classes}, of(cross_entropy, smooth)},
      {"cross_entropy", "ignoring a class", {logits, classes}, of(cross_entropy, ignoring)},
      {"cross_entropy", "of pixels", {image, pixels}, of(cross_entropy, everything)},
      {"log_softmax", "cross entropy with probabilities", {logits, likely}, of(cross_entropy, {})},
      {"log_softmax", "smoothed probabilities", {image, chances}, of(cross_entropy, along)},
      {"cross_entropy_adjoint", "mean", {logits, w, classes}, slope(cross_entropy, {})},
      {"cross_entropy_adjoint", "ignoring", {logits, w, classes}, slope(cross_entropy, ignoring)},
      {"cross_entropy_adjoint", "of pixels", {image, ws, pixels}, slope(cross_entropy, everything)},
      {"nll", "mean", {logits, classes}, of(nll, {})},
      {"nll", "smoothed, ignoring", {image, pixels}, of(nll, everything)},
      {"nll_adjoint", "mean", {logits, w, classes}, slope(nll, {})},
      {"nll_adjoint", "smoothed, ignoring", {image, ws, pixels}, slope(nll, everything)},
      {"square", "as mse", {prediction, target}, [](auto xs) { return mse(xs[0], xs[1]); }},
      {"abs",
       "as l1",
       {prediction, target},
       [](auto xs) { return l1(xs[0], xs[1], Reduction::none); }},
      {"huber_loss", "mean", {prediction, target}, [](auto xs) { return huber(xs[0], xs[1]); }},
      {"huber_loss",
       "sum",
       {prediction, target},
       [](auto xs) { return huber(xs[0], xs[1], 0.7, Reduction::sum); }},
      {"huber_loss_adjoint",
       "each",
       {prediction, target},
       [](auto xs) { return gradient(huber(xs[0], xs[1], 0.7, Reduction::none), xs[0]); }},
      {"huber_loss",
       "smooth_l1",
       {prediction, target},
       [](auto xs) { return smooth_l1_loss(xs[0], xs[1], 0.7); }},
      {"log1p",
       "binary_cross_entropy",
       {likely, chances_of_logits},
       [](auto xs) { return binary_cross_entropy(xs[0], xs[1]); }},
      {"bce_with_logits",
       "multilabel_soft_margin_loss",
       {logits, likely},
       [](auto xs) { return multilabel_soft_margin_loss(xs[0], xs[1], Reduction::none); }},
      {"softplus",
       "soft_margin_loss",
       {prediction, sides},
       [](auto xs) { return soft_margin_loss(xs[0], xs[1]); }},
      {"xlogy",
       "kl_div",
       {logits, likely},
       [](auto xs) { return kl_div(xs[0], xs[1], {.reduction = Reduction::batch_mean}); }},
      {"exp",
       "kl_div of logarithms",
       {prediction, target},
       [](auto xs) { return kl_div(xs[0], xs[1], {.log_target = true}); }},
      {"one_hot",
       "multi_margin_loss",
       {logits, classes},
       [](auto xs) { return multi_margin_loss(xs[0], xs[1]); }},
      {"one_hot",
       "multi_margin_loss, squared, weighted",
       {logits, classes, Tensor::uniform({6}, 59, 0, 1, DType::f64)},
       [](auto xs) {
         return multi_margin_loss(xs[0], xs[1],
                                  {.reduction = Reduction::none, .p = 2, .margin = 0.7}, xs[2]);
       }},
      {"log",
       "gaussian_nll_loss",
       {prediction, target, variances},
       [](auto xs) { return gaussian_nll_loss(xs[0], xs[1], xs[2], {.full = true}); }},
      {"exp",
       "poisson_nll_loss",
       {prediction, counts},
       [](auto xs) { return poisson_nll_loss(xs[0], xs[1], {.full = true}); }},
      {"log",
       "poisson_nll_loss of rates",
       {variances, counts},
       [](auto xs) {
         return poisson_nll_loss(xs[0], xs[1],
                                 {.reduction = Reduction::none, .log_input = false, .eps = 0.01});
       }},
      {"bce_with_logits",
       "mean",
       {logits, likely},
       [](auto xs) { return bce_with_logits(xs[0], xs[1]); }},
      {"bce_with_logits",
       "certain targets, far logits",
       {sure, certain},
       [](auto xs) { return bce_with_logits(xs[0], xs[1], Reduction::none); }},
  };
}

}  // namespace palimpsest
