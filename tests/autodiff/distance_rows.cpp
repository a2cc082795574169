#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/shape.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {

/// The rows of `ctc_loss`: sequences of four, three and two steps, with a repeated label, without a
/// label, and one that is too long for its steps.
std::vector<OperationRow> ctc_rows() {
  const Tensor x = Tensor::normal({4, 3, 5}, 81, 0, 1, DType::f64);
  const Tensor w = Tensor::normal({}, 82, 0, 1, DType::f64);
  const Tensor targets = Tensor::from<std::int64_t>({1, 2, 3, 3, -1, -1}, {3, 2});
  const Tensor steps = Tensor::from<std::int64_t>({4, 3, 2}, {3});
  const Tensor lengths = Tensor::from<std::int64_t>({2, 2, 0}, {3});
  const Tensor short_steps = Tensor::from<std::int32_t>({4, 2, 3}, {3});
  const auto loss = [](const CtcOptions& options) {
    return [=](std::span<const Var> xs) {
      return ctc_loss(log_softmax(xs[0]), xs[1], xs[2], xs[3], options);
    };
  };
  return {
      {"ctc_loss", "mean", {x, targets, steps, lengths}, loss({})},
      {"ctc_loss", "sum", {x, targets, steps, lengths}, loss({.reduction = Reduction::sum})},
      {"ctc_loss",
       "another blank, impossible targets",
       {x, targets, short_steps, lengths},
       loss({.blank = 4, .reduction = Reduction::none, .zero_infinity = true})},
      {"ctc_loss_adjoint",
       "of unnormalized scores",
       {x, w, targets, steps, lengths},
       [](std::span<const Var> xs) {
         return gradient(ctc_loss(xs[0], xs[2], xs[3], xs[4]) * xs[1], xs[0]);
       }},
  };
}

}  // namespace

std::vector<OperationRow> distance_rows() {
  const Tensor a = normal_numbers({3, 4}, 83);
  const Tensor b = normal_numbers({3, 4}, 84);
  const Tensor c = normal_numbers({3, 4}, 85);
  const Tensor few = normal_numbers({2, 4}, 86);
  const Tensor batch = normal_numbers({2, 3, 4}, 87);
  const Tensor sides = Tensor::from<std::int64_t>({1, -1, 1}, {3});
  const Tensor s = Tensor::from({0.3, -1.2, 2.4}, {3});
  const Tensor t = Tensor::from({0.9, -0.7, 1.1}, {3});
  std::vector<OperationRow> rows = {
      {"norm",
       "cosine_similarity",
       {a, b},
       [](auto xs) { return cosine_similarity(xs[0], xs[1]); }},
      {"norm",
       "cosine_similarity, broadcast",
       {batch, few},
       [](auto xs) { return cosine_similarity(xs[0], reshape(xs[1], {2, 1, 4}), 2); }},
      {"norm",
       "pairwise_distance",
       {a, b},
       [](auto xs) { return pairwise_distance(xs[0], xs[1]); }},
      {"norm",
       "pairwise_distance, p = 3",
       {batch, a},
       [](auto xs) {
         return pairwise_distance(xs[0], xs[1], {.p = 3, .eps = 0.125, .keep_axis = true});
       }},
      {"norm", "cdist", {a, few}, [](auto xs) { return cdist(xs[0], xs[1]); }},
      {"norm", "cdist, p = 1", {batch, few}, [](auto xs) { return cdist(xs[0], xs[1], 1); }},
      {"norm",
       "cosine_embedding_loss",
       {a, b, sides},
       [](auto xs) { return cosine_embedding_loss(xs[0], xs[1], xs[2], -0.75); }},
      {"clamp",
       "margin_ranking_loss",
       {s, t, sides},
       [](auto xs) { return margin_ranking_loss(xs[0], xs[1], xs[2], 0.25, Reduction::none); }},
      {"clamp",
       "hinge_embedding_loss",
       {s, sides},
       [](auto xs) { return hinge_embedding_loss(xs[0], xs[1], 0.75, Reduction::sum); }},
      {"norm",
       "triplet_margin_loss",
       {a, b, c},
       [](auto xs) { return triplet_margin_loss(xs[0], xs[1], xs[2], {.margin = 4}); }},
      {"norm",
       "triplet_margin_loss, swapped",
       {a, b, c},
       [](auto xs) {
         return triplet_margin_loss(xs[0], xs[1], xs[2],
                                    {.margin = 4, .swap = true, .reduction = Reduction::none});
       }},
  };
  for (OperationRow& row : ctc_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace palimpsest
