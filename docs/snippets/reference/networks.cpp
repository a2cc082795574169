// Examples of docs/reference/networks.md.
#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(conv2d, convolution, conv1d, conv3d, ConvolutionOptions) {
  const Tensor images = Tensor::ones({1, 1, 4, 4}), weight = Tensor::ones({2, 1, 3, 3});
  print(conv2d(images, weight).shape());                                   // → (1, 2, 2, 2)
  print(conv2d(images, weight, {}, {.stride = 2, .padding = 1}).shape());  // → (1, 2, 2, 2)
  const Tensor line = Tensor::vector({1, 2, 3, 4}).reshape({1, 1, 4});
  print(conv1d(line, Tensor::vector({1, -1}).reshape({1, 1, 2})));  // → [[[-1, -1, -1]]]
}

EXAMPLE(transposed_convolution, TransposedConvolutionOptions) {
  const Tensor y = Tensor::ones({1, 2, 3, 3}), weight = Tensor::ones({2, 1, 2, 2});
  print(transposed_convolution(y, weight, {}, {.stride = 2}).shape());  // → (1, 1, 6, 6)
}

EXAMPLE(unfold, fold, UnfoldOptions) {
  const Tensor x = Tensor::arange(9, DType::f32).reshape({1, 1, 3, 3});
  const Tensor columns = unfold(x, 2);
  print(columns.shape());  // → (1, 4, 4)
  // Overlapping patches add up.
  print(fold(columns, {3, 3}, 2));  // → [[[[0, 2, 2], [6, 16, 10], [6, 14, 8]]]]
}

EXAMPLE(layer_norm, rms_norm) {
  const Tensor x = Tensor::matrix({{1, 3}, {10, 30}});
  print(layer_norm(x));  // → [[-1, 1], [-1, 1]]
  print(rms_norm(x));    // → [[0.4472, 1.342], [0.4472, 1.342]]
}

EXAMPLE(group_norm, instance_norm) {
  const Tensor x = Tensor::normal({2, 4, 5, 5}, /*seed=*/1);
  print(group_norm(x, 2).shape(), instance_norm(x).shape());  // → (2, 4, 5, 5) (2, 4, 5, 5)
}

EXAMPLE(batch_norm, BatchNorm) {
  const auto made = batch_norm(Tensor::matrix({{1, 10}, {3, 30}}));
  print(made.y);                    // → [[-1, -1], [1, 1]]
  print(made.mean, made.variance);  // → [2, 20] [1, 100]
}

EXAMPLE(softmax, log_softmax) {
  const Tensor x = Tensor::vector({1, 2, 3});
  print(softmax(x), log_softmax(x));  // → [0.09003, 0.2447, 0.6652] [-2.408, -1.408, -0.4076]
}

EXAMPLE(weight_norm, spectral_norm, SpectralNorm, SpectralNormOptions) {
  const Tensor v = Tensor::matrix({{3, 4}, {0, 2}});
  // Rows of the given lengths.
  print(weight_norm(v, Tensor::vector({1, 1})));  // → [[0.6, 0.8], [0, 1]]
  print(spectral_norm(v, Tensor::vector({1, 0}), {.iterations = 20}).sigma);  // → 5.263
}

EXAMPLE(scaled_dot_product_attention, AttentionOptions) {
  Tape tape;
  const Var q =
      tape.constant(Tensor::normal({2, 4, 5, 8}, /*seed=*/1));  // batch, heads, length, width
  print(scaled_dot_product_attention(q, q, q, {.causal = true}).shape());  // → (2, 4, 5, 8)
}

EXAMPLE(multi_head_attention, AttentionParameters) {
  Tape tape;
  const auto weight = [&] { return tape.constant(Tensor::normal({8, 8}, /*seed=*/1)); };
  const Var x = tape.constant(Tensor::ones({2, 5, 8}));
  const AttentionParameters parameters{weight(), weight(), weight(), weight()};
  print(multi_head_attention(x, parameters, /*heads=*/2).shape());  // → (2, 5, 8)
}

EXAMPLE(rotary_embedding, RotaryOptions) {
  Tape tape;
  print(rotary_embedding(tape.constant(Tensor::ones({1, 2, 2}))));
  // → [[[1, 1], [-0.3012, 1.382]]]
}

EXAMPLE(rnn_cell, gru_cell, CellParameters, CellActivation) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({1, 2})), h = tape.constant(Tensor::zeros({1, 3}));
  const auto weights = [&](std::int64_t gates) {
    return CellParameters{tape.constant(Tensor::ones({2, 3 * gates})),
                          tape.constant(Tensor::ones({3, 3 * gates}))};
  };
  print(rnn_cell(x, h, weights(1)), gru_cell(x, h, weights(3)).shape());
  // → [[0.964, 0.964, 0.964]] (1, 3)
}

EXAMPLE(lstm_cell, LstmState) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({1, 2})), zero = tape.constant(Tensor::zeros({1, 3}));
  const CellParameters weights{tape.constant(Tensor::ones({2, 12})),
                               tape.constant(Tensor::ones({3, 12}))};
  const LstmState next = lstm_cell(x, {zero, zero}, weights);
  print(next.h.shape(), next.c.shape());  // → (1, 3) (1, 3)
}

EXAMPLE(rnn, gru, lstm, RecurrentOutput, LstmOutput) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({7, 1, 2}));  // 7 steps
  const Var zero = tape.constant(Tensor::zeros({1, 3}));
  const CellParameters weights{tape.constant(Tensor::ones({2, 12})),
                               tape.constant(Tensor::ones({3, 12}))};
  print(lstm(x, {zero, zero}, weights).outputs.shape());  // → (7, 1, 3)
  const CellParameters narrow{tape.constant(Tensor::ones({2, 3})),
                              tape.constant(Tensor::ones({3, 3}))};
  print(rnn(x, zero, narrow).h.shape());  // → (1, 3)
}

EXAMPLE(resize, interpolate, upsample, ResizeOptions, Interpolation) {
  const Tensor x = Tensor::vector({0, 2}).reshape({1, 1, 2});
  print(resize(x, 4), resize(x, 4, {.interpolation = Interpolation::linear}));
  // → [[[0, 0, 2, 2]]] [[[0, 0.5, 1.5, 2]]]
  print(upsample(Tensor::ones({1, 3, 8, 8}), 2).shape());  // → (1, 3, 16, 16)
}

EXAMPLE(pixel_shuffle, pixel_unshuffle, channel_shuffle) {
  const Tensor x = Tensor::ones({1, 4, 2, 2});
  print(pixel_shuffle(x, 2).shape(), pixel_unshuffle(x, 2).shape());
  // → (1, 1, 4, 4) (1, 16, 1, 1)
  print(channel_shuffle(Tensor::vector({1, 2, 3, 4}).reshape({1, 4, 1}), 2));
  // → [[[1], [3], [2], [4]]]
}

EXAMPLE(grid_sample, GridSampleOptions, GridPadding) {
  const Tensor image = Tensor::vector({1, 2, 3, 4}).reshape({1, 1, 2, 2});
  // The middle of the image, and its upper left corner.
  const Tensor points = Tensor::vector({0, 0, -1, -1}).reshape({1, 1, 2, 2});
  print(grid_sample(image, points, {.align_corners = true}));  // → [[[[2.5, 1]]]]
}

EXAMPLE(max_pool, average_pool, PoolOptions, AveragePoolOptions) {
  const Tensor x = Tensor::vector({1, 5, 2, 4}).reshape({1, 1, 4});
  print(max_pool(x, 2), average_pool(x, 2));  // → [[[5, 4]]] [[[3, 3]]]
  print(max_pool(x, 2, {.stride = 1}));       // → [[[5, 5, 4]]]
}

EXAMPLE(lp_pool, LpPoolOptions) {
  print(lp_pool(Tensor::vector({3, 4, 0, 1}).reshape({1, 1, 4}), 2, 2));  // → [[[5, 1]]]
}

EXAMPLE(adaptive_max_pool, adaptive_average_pool, global_max_pool, global_average_pool) {
  const Tensor x = Tensor::vector({1, 5, 2, 4}).reshape({1, 1, 4});
  print(adaptive_max_pool(x, 2), adaptive_average_pool(x, 2));  // → [[[5, 4]]] [[[3, 3]]]
  print(global_max_pool(x), global_average_pool(x));            // → [[[5]]] [[[3]]]
}

EXAMPLE(cross_entropy, nll, ClassificationOptions, nll_loss) {
  const Tensor logits = Tensor::matrix({{2, 0}, {0, 2}});
  const Tensor classes = Tensor::from<std::int64_t>({0, 0}, {2});
  print(cross_entropy(logits, classes));                                  // → 1.127
  print(cross_entropy(logits, classes, {.reduction = Reduction::none}));  // → [0.1269, 2.127]
  print(nll(log_softmax(logits), classes));                               // → 1.127
}

EXAMPLE(mse, l1, huber, smooth_l1_loss, mse_loss, l1_loss, huber_loss) {
  const Tensor found = Tensor::vector({1, 2}), expected = Tensor::vector({1, 5});
  print(mse(found, expected), l1(found, expected));                // → 4.5 1.5
  print(huber(found, expected), smooth_l1_loss(found, expected));  // → 1.25 1.25
}

EXAMPLE(binary_cross_entropy, bce_with_logits, binary_cross_entropy_with_logits) {
  const Tensor targets = Tensor::vector({1, 0});
  print(binary_cross_entropy(Tensor::vector({0.9, 0.1}), targets));  // → 0.1054
  print(bce_with_logits(Tensor::vector({2, -2}), targets));          // → 0.1269
}

EXAMPLE(multilabel_soft_margin_loss, soft_margin_loss) {
  print(multilabel_soft_margin_loss(Tensor::matrix({{2, -2}}), Tensor::matrix({{1, 0}})));
  // → 0.1269
  print(soft_margin_loss(Tensor::vector({2, -2}), Tensor::vector({1, -1})));  // → 0.1269
}

EXAMPLE(kl_div, KlDivOptions) {
  const Tensor p = Tensor::matrix({{0.5, 0.5}}), q = Tensor::matrix({{0.9, 0.1}});
  print(kl_div(log(q), p, {.reduction = Reduction::batch_mean}));  // → 0.5108
}

EXAMPLE(gaussian_nll_loss, GaussianNllOptions, poisson_nll_loss, PoissonNllOptions) {
  const Tensor found = Tensor::vector({1, 2}), expected = Tensor::vector({1, 3});
  print(gaussian_nll_loss(found, expected, Tensor::vector({1, 4})));  // → 0.4091
  print(poisson_nll_loss(found, expected, {.log_input = false}));     // → 0.4603
}

EXAMPLE(ctc_loss, CtcOptions) {
  // 4 steps, 1 sequence, 3 classes; the target is 1, 2.
  const Tensor logits = log_softmax(Tensor::zeros({4, 1, 3}));
  const auto numbers = [](std::vector<std::int64_t> values, Shape shape) {
    return Tensor::from(values, shape);
  };
  print(ctc_loss(logits, numbers({1, 2}, {1, 2}), numbers({4}, {1}), numbers({2}, {1})));
  // → 0.8432
}

EXAMPLE(cosine_similarity, pairwise_distance, cdist, DistanceOptions) {
  const Tensor a = Tensor::matrix({{1, 0}, {0, 2}}), b = Tensor::matrix({{1, 1}, {0, 1}});
  print(cosine_similarity(a, b), pairwise_distance(a, b));  // → [0.7071, 1] [1, 1]
  print(cdist(a, b));                                       // → [[1, 1.414], [1.414, 1]]
}

EXAMPLE(cosine_embedding_loss, margin_ranking_loss, hinge_embedding_loss) {
  const Tensor a = Tensor::vector({0.5, 2}), b = Tensor::vector({1, 1});
  const Tensor sign = Tensor::vector({1, -1});
  print(margin_ranking_loss(a, b, sign), hinge_embedding_loss(a, sign));  // → 0.75 0.25
  print(cosine_embedding_loss(Tensor::matrix({{1, 0}}), Tensor::matrix({{0, 1}}),
                              Tensor::vector({1})));  // → 1
}

EXAMPLE(triplet_margin_loss, TripletMarginOptions) {
  const Tensor anchor = Tensor::matrix({{0, 0}}), near = Tensor::matrix({{0, 1}});
  print(triplet_margin_loss(anchor, near, Tensor::matrix({{1, 1}})));  // → 0.5858
}

EXAMPLE(uniform, normal, truncated_normal) {
  Tape tape;
  const Var x = uniform(tape, {3}, -1, 1), y = normal(tape, {3}, 0, 2);
  print(x.shape(), y.dtype());                            // → (3) f32
  print(truncated_normal(tape, {1000}).value().shape());  // → (1000)
}

EXAMPLE(bernoulli, randint, randperm, permutation) {
  Tape tape;
  print(bernoulli(tape, {4}, 0.5).shape(), randint(tape, 0, 10, {4}).dtype());  // → (4) i64
  // Each number occurs once.
  print(sum(randperm(tape, 5)));                                      // → 10
  print(sum(permutation(tape.constant(Tensor::vector({1, 2, 3})))));  // → 6
}

EXAMPLE(exponential, laplace, gumbel, cauchy) {
  Tape tape;
  print(exponential(tape, {2}, 3).shape(), laplace(tape, {2}).shape());  // → (2) (2)
  print(gumbel(tape, {2}).shape(), cauchy(tape, {2}).shape());           // → (2) (2)
}

EXAMPLE(gamma, beta, dirichlet, log_gamma_variate) {
  Tape tape;
  const Var a = tape.parameter(Tensor::vector({1, 2, 3}));
  // Differentiable by the concentration.
  print(gradient(sum(gamma(a)), a).shape());     // → (3)
  print(sum(dirichlet(a)), beta(a, a).shape());  // → 1 (3)
}

EXAMPLE(poisson, categorical, multinomial) {
  Tape tape;
  print(poisson(tape.constant(Tensor::vector({1, 100}))).shape());  // → (2)
  print(categorical(tape.constant(Tensor::vector({0, 100, 0}))));   // → 1
  print(multinomial(tape.constant(Tensor::vector({1, 0, 0})), 2, /*replacement=*/true));
  // → [0, 0]
}

EXAMPLE(dropout) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({1000}));
  print(dropout(x, 0.5, /*training=*/false)[0]);  // → 1
  // The other elements are scaled up.
  print(max(dropout(x, 0.5)));  // → 2
}

EXAMPLE(reduce_loss, Reduction) {
  print(reduce_loss(Tensor::vector({1, 3}), Reduction::sum));  // → 4
}

EXAMPLE(weighted_mean) {
  const ModelFunction masked = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    const Var errors = square(matmul(batch[0], p[0]) - batch[1]);
    return weighted_mean(sum(errors * batch[2]), sum(batch[2]));  // batch[2] is a mask
  };
  const std::vector<Tensor> parameters{Tensor::matrix({{2}})};
  const std::vector<Tensor> batch{Tensor::matrix({{1}, {1}, {1}}), Tensor::matrix({{0}, {1}, {5}}),
                                  Tensor::matrix({{1}, {1}, {0}})};
  Execution execution({.accumulation = 3});                      // three parts
  print(execution.gradients(masked, parameters, batch).loss());  // → 2.5
}

EXAMPLE(multi_margin_loss, MultiMarginOptions) {
  const Tensor scores = Tensor::matrix({{1, 3}, {2, 0}});
  const Tensor classes = Tensor::from<std::int64_t>({1, 1}, {2});
  print(multi_margin_loss(scores, classes));  // → 0.75
}

EXAMPLE(with_channels_first, with_channels_at, Channels) {
  Tape tape;
  const Var image = tape.constant(Tensor::ones({1, 8, 9, 3}));  // (batch, sizes, channels)
  const Var x = with_channels_first(image, Channels::last, Where::current());
  print(x.shape(), with_channels_at(x, Channels::last, Where::current()).shape());
  // → (1, 3, 8, 9) (1, 8, 9, 3)
}

EXAMPLE(PerAxis, PerAxis::fill, spatial_axes, spatial_sizes, with_spatial_sizes) {
  // What an operation on images makes of its settings.
  const Where where = Where::current();
  const Shape image{1, 3, 8, 9};
  const int axes = spatial_axes("blur", {image, DType::f32}, where);
  const auto stride = PerAxis{2, 3}.fill(axes, /*missing=*/1, /*least=*/1, "blur", "stride", where);
  print(axes, stride[0], stride[1], stride[2]);                                // → 2 1 2 3
  print(spatial_sizes(image, 2)[1], with_spatial_sizes(image, 2, {1, 4, 3}));  // → 8 (1, 3, 4, 3)
}

}  // namespace reference
