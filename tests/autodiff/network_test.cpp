#include <algorithm>
#include <cmath>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/sequence.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"
// Tests what the operation rows do not cover for losses, normalisations, attention and recurrent
// cells: identities, kept values and their bytes, and error messages.

namespace palimpsest {
namespace {

using Catch::Matchers::Contains;

Tensor some(Shape shape, std::uint64_t seed, DType dtype = DType::f64) {
  return Tensor::normal(shape, seed, 0, 1, dtype);
}

void check_near(const Var& a, const Var& b, double tolerance = 1e-12) {
  REQUIRE(a.shape() == b.shape());
  double worst = 0;
  for (std::int64_t i = 0; i < a.shape().elements(); ++i) {
    worst = std::max(worst, std::abs(a.value().at(i) - b.value().at(i)));
  }
  CHECK(worst <= tolerance);
}

TEST_CASE("cross entropy is nll of log_softmax and ignores what it is told to") {
  Tape tape;
  const Var x = tape.parameter(some({5, 7}, 1));
  const Var classes = tape.constant(Tensor::from<std::int64_t>({0, 6, 2, 2, 5}, {5}));
  check_near(cross_entropy(x, classes), nll(log_softmax(x), classes));
  const ClassificationOptions ignoring{.ignore_index = 2};
  const Var each = cross_entropy(x, classes, {.reduction = Reduction::none});
  const Var three = (select(each, 0, 0) + select(each, 0, 1) + select(each, 0, 4)) / 3.0;
  check_near(cross_entropy(x, classes, ignoring), three);
  const Var slope = gradient(cross_entropy(x, classes, ignoring), x);
  CHECK(slope.value().at(2 * 7) == 0);
  // Logits far apart: the loss of a certain answer is exact, not a difference of large numbers.
  const Var far = tape.constant(Tensor::matrix({{1000, 0}, {0, -1000}}));
  const Var zeros = tape.constant(Tensor::from<std::int32_t>({0, 0}, {2}));
  CHECK(cross_entropy(far, zeros).item() == 0);
}

TEST_CASE("losses say what is wrong with their arguments") {
  Tape tape;
  const Var x = tape.constant(some({2, 3}, 1));
  const Var two = tape.constant(Tensor::from<std::int64_t>({0, 1}, {2}));
  const Var three = tape.constant(Tensor::from<std::int64_t>({0, 1, 2}, {3}));
  const Var outside = tape.constant(Tensor::from<std::int64_t>({0, 3}, {2}));
  CHECK_THROWS_WITH(cross_entropy(x, three),
                    Contains("[cross_entropy]") && Contains("(3)") && Contains("give shape (2)"));
  CHECK_THROWS_WITH(cross_entropy(x, two, {.axis = 2}), Contains("axis 2"));
  CHECK_THROWS_WITH(cross_entropy(x, two, {.label_smoothing = 1.5}), Contains("in [0, 1]"));
  CHECK_THROWS_AS(cross_entropy(x, x > 0), DTypeError);
  CHECK_THROWS_AS(nll(two, two), DTypeError);
  CHECK_THROWS_AS(cross_entropy(tape.constant(Tensor::zeros({2, 0})), two), ShapeError);
  CHECK_THROWS_WITH(cross_entropy(x, outside).value(),
                    Contains("class 3 at position 1 is outside [0, 3)"));
  CHECK_THROWS_WITH(mse(x, tape.constant(some({2, 1}, 1))),
                    Contains("[mse]") && Contains("(2, 1)"));
  CHECK_THROWS_AS(bce_with_logits(x, two), ShapeError);
  CHECK_THROWS_WITH(huber(x, x, 0),
                    Contains("delta is 0;") && Contains("give a positive distance"));
}

TEST_CASE("softmax says what is wrong with its arguments") {
  Tape tape;
  const Var x = tape.constant(some({2, 3}, 1));
  CHECK_THROWS_WITH(softmax(x, 2), Contains("[softmax]") && Contains("axis 2"));
  CHECK_THROWS_AS(log_softmax(tape.constant(Tensor::arange(3))), DTypeError);
}

TEST_CASE("normalised values have mean 0 and variance 1") {
  Tape tape;
  const Var x = tape.constant(some({6, 4, 3, 5}, 1)) * 3.0 + 20.0;
  const auto check = [&](const Var& y, const Axes& axes) {
    check_near(mean(y, axes), full_like(mean(y, axes), 0), 1e-12);
    check_near(variance(y, axes, 0), full_like(mean(y, axes), 1), 1e-4);
  };
  check(layer_norm(x), {3});
  check(layer_norm(x, tape.constant(Tensor::ones({3, 5}, DType::f64))), {2, 3});
  check(reshape(group_norm(x, 2), {6, 2, -1}), {2});
  check(instance_norm(x), {2, 3});
  check(batch_norm(x).y, {0, 2, 3});
  check(batch_norm(reshape(x, {-1, 5})).y, {0});
  check_near(mean(square(rms_norm(x)), {3}), tape.constant(Tensor::ones({6, 4, 3}, DType::f64)),
             1e-6);
}

TEST_CASE("batch_norm gives its statistics, and with them given the same values") {
  Tape tape;
  for (const Shape& shape : {Shape{6, 4, 3}, Shape{50, 70}}) {
    const Var x = tape.constant(some(shape, 1));
    const Var weight = tape.constant(some({shape[1]}, 2));
    const Var bias = tape.constant(some({shape[1]}, 3));
    const BatchNorm b = batch_norm(x, weight, bias);
    const Axes axes = shape.rank() == 3 ? Axes{0, 2} : Axes{0};
    check_near(b.mean, mean(x, axes));
    check_near(b.variance, variance(x, axes, 0));
    check_near(batch_norm(x, b.mean, b.variance, weight, bias), b.y);
  }
}

TEST_CASE("weights in f32 serve values in bf16") {
  Tape tape;
  const Var x = tape.parameter(some({3, 8}, 1, DType::bf16));
  const Var weight = tape.parameter(some({8}, 2, DType::f32));
  const Var y = layer_norm(x, weight, weight);
  CHECK(y.dtype() == DType::bf16);
  CHECK(gradient(y * y, weight).dtype() == DType::f32);
  const Var slopes = gradient(gradient(y * y, x), x);
  CHECK(std::isfinite(slopes.value().at(0)));
}

TEST_CASE("normalisations say what is wrong with their arguments") {
  Tape tape;
  const Var x = tape.constant(some({2, 6, 3}, 1));
  const Var four = tape.constant(some({4}, 1));
  const Var six = tape.constant(some({6}, 1));
  CHECK_THROWS_WITH(layer_norm(x, four),
                    Contains("[layer_norm]") && Contains("(4)") && Contains("give shape (3)"));
  CHECK_THROWS_WITH(layer_norm(x, {}, six), Contains("a bias needs a weight"));
  CHECK_THROWS_AS(layer_norm(x, {}, {}, -1), ArgumentError);
  CHECK_THROWS_AS(rms_norm(tape.constant(Tensor::scalar(1))), ShapeError);
  CHECK_THROWS_WITH(group_norm(x, 4), Contains("4 groups do not divide the 6 channels"));
  CHECK_THROWS_AS(batch_norm(four), ShapeError);
  CHECK_THROWS_WITH(batch_norm(x, four, four, Var{}, Var{}), Contains("mean") && Contains("(6)"));
  CHECK_THROWS_WITH(batch_norm(x, six, six, six, six, -1), Contains("epsilon is -1;"));
  CHECK_THROWS_WITH(batch_norm(x, six, six, Var{}, six), Contains("a bias needs a weight"));
  CHECK_THROWS_AS(batch_norm(x, tape.constant(some({6}, 1, DType::f32))), DTypeError);
  CHECK_THROWS_AS(rms_norm(tape.constant(Tensor::arange(4))), DTypeError);
}

TEST_CASE("attention takes some rows of scores for each thread, whatever the batch") {
  Tape tape;
  const std::int64_t length = 512;
  const Bytes all_scores = 8 * 8 * length * length * 4;
  const Var x = tape.parameter(some({8, 8, length, 16}, 1, DType::f32));
  const Var o = scaled_dot_product_attention(x, x, x, {.causal = true});
  gradient(o, x);
  Bytes largest = 0;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const NodeView view(tape.nodes(), node);
    largest = std::max(largest, workspace_of(view, 2));
    for (std::size_t i = 0; i < view.output_count(); ++i) {
      largest = std::max(largest, view.output(i).bytes());
    }
    CHECK(workspace_of(view, 4) == 2 * workspace_of(view, 2));
  }
  CHECK(largest < all_scores / 20);
  CHECK(cost_of(NodeView(tape.nodes(), o.node())).flops < 2.0 * 64 * length * length * 32);
}

TEST_CASE("attention equals its definition") {
  Tape tape;
  const Var q = tape.constant(some({3, 100, 8}, 1));
  const Var k = tape.constant(some({3, 100, 8}, 2));
  const Var v = tape.constant(some({3, 100, 8}, 3));
  const Var causal = scaled_dot_product_attention(q, k, v, {.causal = true});
  const Slice late{.start = 60};
  // As with a key cache, only the last queries are computed.
  check_near(scaled_dot_product_attention(slice(q, 1, late), k, v, {.causal = true}),
             slice(causal, 1, late));
  // The first query sees its own key only.
  check_near(select(causal, 1, 0), select(v, 1, 0));
  // A mask that hides every key but each third one is equal to leaving them out.
  Tensor seen = Tensor::zeros({100}, DType::boolean);
  for (std::size_t i = 0; i < 100; i += 3) seen.data<bool>()[i] = true;
  const Slice third{.step = 3};
  const Var alone = scaled_dot_product_attention(q, slice(k, 1, third), slice(v, 1, third));
  check_near(scaled_dot_product_attention(q, k, v, {.mask = tape.constant(seen)}), alone);
  Tensor added = Tensor::full({100}, -INFINITY, DType::f64);
  for (std::size_t i = 0; i < 100; i += 3) added.data<double>()[i] = 0;
  check_near(scaled_dot_product_attention(q, k, v, {.mask = tape.constant(added)}), alone);
}

TEST_CASE("attention drops its share of weights and scales up the rest") {
  Tape tape;
  tape.set_seed(3);
  const std::int64_t length = 200;
  const Var x = tape.constant(Tensor::zeros({2, length, 1}));
  const Var v = tape.constant(Tensor::ones({2, length, 1}));
  const Var o = scaled_dot_product_attention(x, x, v, {.dropout = 0.25});
  CHECK_THAT(mean(o).item(), Catch::Matchers::WithinAbs(1, 0.01));
  CHECK(variance(o).item() > 1e-4);
  const Var again = scaled_dot_product_attention(x, x, v, {.dropout = 0.25});
  CHECK(!same_bits(o.value(), again.value()));
}

TEST_CASE("grouped attention equals attention with repeated heads of keys, bit for bit") {
  const bool causal = GENERATE(false, true);
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16);
  Tape tape;
  const auto made = [&](const Shape& shape, std::uint64_t seed) {
    return tape.parameter(some(shape, seed).to(dtype));
  };
  // 64 queries make a block, so that the blocks of each head are the same in both.
  const Var q = made({2, 6, 64, 4}, 1);
  const Var k = made({2, 2, 70, 4}, 2);
  const Var v = made({2, 2, 70, 3}, 3);
  const Var mask = tape.constant(some({6, 64, 1}, 4).to(dtype));
  const AttentionOptions options{.mask = mask, .causal = causal};
  const Var repeated = scaled_dot_product_attention(q, repeat(k, 3, 1), repeat(v, 3, 1), options);
  const Var grouped = scaled_dot_product_attention(q, k, v, options);
  CHECK(same_bits(grouped.value(), repeated.value()));
  CHECK(same_bits(gradient(grouped, q).value(), gradient(repeated, q).value()));
}

TEST_CASE("rotary embeddings make products depend on the distance of positions") {
  Tape tape;
  const Var x = tape.constant(some({1, 8}, 1));
  const Var y = tape.constant(some({1, 8}, 2));
  const bool interleaved = GENERATE(false, true);
  const auto product = [&](std::int64_t a, std::int64_t b) {
    const auto at = [&](const Var& z, std::int64_t offset) {
      return rotary_embedding(z, {.offset = offset, .interleaved = interleaved});
    };
    return sum(at(x, a) * at(y, b)).item();
  };
  CHECK_THAT(product(1007, 1000), Catch::Matchers::WithinAbs(product(7, 0), 1e-10));
  CHECK(std::abs(product(7, 0) - product(6, 0)) > 1e-3);
  const Var wide = tape.constant(some({3, 2}, 3));
  const Var third = tape.constant(Tensor::arange(3));
  CHECK(same_bits(rotary_embedding(wide, {.positions = third}).value(),
                  rotary_embedding(wide).value()));
  CHECK_THROWS_WITH(rotary_embedding(tape.constant(some({2, 3}, 1))), Contains("even d"));
  CHECK_THROWS_WITH(rotary_embedding(x, {.base = 0}), Contains("the base is 0"));
  CHECK_THROWS_WITH(rotary_embedding(x, {.positions = third}), Contains("do not fit"));
  CHECK_THROWS_AS(rotary_embedding(third), DTypeError);
}

TEST_CASE("spectral norms approach the largest singular value") {
  Tape tape;
  const Var w = tape.parameter(some({4, 3, 2}, 1));
  Var u = tape.constant(some({3}, 2));
  for (int step = 0; step < 40; ++step) u = spectral_norm(w, u, {.axis = 1}).u;
  const Var matrix = reshape(transpose(w, 0, 1), {3, 8});
  const double largest = svdvals(matrix).value().at(0);
  const SpectralNorm made = spectral_norm(w, u, {.axis = 1, .iterations = 0});
  CHECK_THAT(made.sigma.item(), Catch::Matchers::WithinAbs(largest, 1e-9));
  CHECK(same_bits(made.u.value(), u.value()));
  check_near(made.weight, w / made.sigma);
  CHECK_THROWS_WITH(spectral_norm(w, u), Contains("[spectral_norm] u f64 (3)"));
  CHECK_THROWS_WITH(spectral_norm(w, u, {.axis = 1, .iterations = -1}), Contains("-1 iterations"));
  CHECK_THROWS_WITH(weight_norm(w, u), Contains("[weight_norm] magnitude (3)"));
  CHECK_THROWS_AS(weight_norm(w, u, 3), ShapeError);
}

TEST_CASE("attention says what is wrong with its arguments") {
  Tape tape;
  const Var q = tape.constant(some({2, 5, 4}, 1));
  const Var k = tape.constant(some({2, 7, 4}, 2));
  const auto attend = [&](const Var& a, const Var& b, const Var& c,
                          const AttentionOptions& options = {}) {
    return scaled_dot_product_attention(a, b, c, options);
  };
  CHECK_THROWS_WITH(attend(q, k, q), Contains("[attention]") && Contains("(2, 7, 4)"));
  CHECK_THROWS_AS(attend(q, reshape(k, {14, 4}), k), ShapeError);
  const Var three = tape.constant(some({3, 5, 4}, 4));
  CHECK_THROWS_WITH(attend(three, k, k), Contains("heads of queries that are a multiple"));
  CHECK_THROWS_AS(attend(slice(q, 0, {.stop = 1}), k, k), ShapeError);
  CHECK_THROWS_AS(attend(q, k, cast(k, DType::f32)), DTypeError);
  CHECK_THROWS_WITH(attend(q, k, k, {.mask = q}), Contains("mask"));
  CHECK_THROWS_AS(attend(q, k, k, {.mask = tape.constant(Tensor::arange(7))}), DTypeError);
  CHECK_THROWS_WITH(attend(q, k, k, {.dropout = 1}), Contains("probability below 1"));
  const Var w = tape.constant(some({4, 6}, 3));
  CHECK_THROWS_WITH(multi_head_attention(q, {w, w, w, w}, 4),
                    Contains("4 heads do not divide the projection"));
}

TEST_CASE("recurrent cells say what is wrong with their arguments") {
  Tape tape;
  const Var x = tape.constant(some({2, 3}, 1));
  const Var h = tape.constant(some({2, 4}, 2));
  const CellParameters one{tape.constant(some({3, 4}, 3)), tape.constant(some({4, 4}, 4))};
  CHECK(rnn_cell(x, h, one).shape() == Shape{2, 4});
  CHECK_THROWS_WITH(lstm_cell(x, {h, h}, one),
                    Contains("[lstm_cell]") && Contains("give shape (3, 16)"));
  CHECK_THROWS_WITH(rnn_cell(x, x, one), Contains("[rnn_cell]"));
  CHECK_THROWS_AS(gru_cell(x, select(h, 0, 0), one), ShapeError);
}

TEST_CASE("normalisations of nothing have gradients, of NaN are NaN") {
  using Normal = Var (*)(const Var&, const Var&);
  const Normal normal = GENERATE(values<Normal>({
      [](const Var& x, const Var& w) { return group_norm(x, 2, w); },
      [](const Var& x, const Var& w) { return instance_norm(x, w); },
      [](const Var& x, const Var& w) { return batch_norm(x, w).y; },
      [](const Var& x, const Var&) { return layer_norm(x); },
      [](const Var& x, const Var&) { return rms_norm(x); },
  }));
  Tape tape;
  const Var weight = tape.parameter(Tensor::ones({4}));
  for (const Shape& shape : {Shape{2, 4, 0}, Shape{0, 4, 3}}) {
    const Var x = tape.parameter(Tensor::zeros(shape));
    const auto gradients = gradient(sum(normal(x, weight)), {x, weight});
    CHECK(same_bits(gradients[0].value(), x.value()));
    CHECK(same_bits(gradients[1].value(), Tensor::zeros({4})));
  }
  const Tensor y = normal(tape.constant(Tensor::full({2, 4, 3}, std::nan(""))), weight).value();
  for (std::int64_t i = 0; i < y.elements(); ++i) CHECK(std::isnan(y.at(i)));
}

TEST_CASE("one NaN spoils all that is normalised with it, statistics included") {
  Tape tape;
  const auto nan = std::nanf("");
  const Tensor y = rms_norm(tape.constant(Tensor::vector({nan, 1, 2, 3}))).value();
  for (std::int64_t i = 0; i < 4; ++i) CHECK(std::isnan(y.at(i)));
  const Shape shape = GENERATE(Shape{2, 1, 2}, Shape{4, 1});
  const Var x = tape.constant(Tensor::vector({nan, 1, 2, 3}).reshape(shape));
  CHECK(std::isnan(batch_norm(x).variance.item()));
  const Var none = tape.constant(Tensor::zeros(shape.rank() == 2 ? Shape{0, 1} : Shape{0, 1, 2}));
  CHECK(std::isnan(batch_norm(none).mean.item()));
  CHECK(std::isnan(batch_norm(none).variance.item()));
}

TEST_CASE("means of many 16-bit losses neither overflow nor stall") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const auto n = GENERATE(std::int64_t{30000}, std::int64_t{70000});
  Tape tape;
  const Var logits = tape.constant(Tensor::zeros({n, 10}, dtype));
  const Var classes = tape.constant(Tensor::zeros({n}, DType::i32));
  const Var loss = cross_entropy(logits, classes, {.ignore_index = -100});
  CHECK(loss.dtype() == dtype);
  CHECK(loss.item() == cross_entropy(logits, classes).item());
}

TEST_CASE("wider masks of attention have gradients, and let the others be narrow") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const DType mask_dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  Tape tape;
  const Var q = tape.parameter(some({2, 4}, 1, dtype));
  const Var k = tape.parameter(some({3, 4}, 2, dtype));
  const Var v = tape.parameter(some({3, 4}, 3, dtype));
  const Var mask = tape.parameter(some({2, 3}, 4, mask_dtype));
  const Var o = scaled_dot_product_attention(q, k, v, {.mask = mask});
  const Var slope = gradient(sum(square(o)), mask);
  CHECK(slope.type() == mask.type());
  CHECK(sum(abs(slope)).item() > 0);
  const Var dv = gradient(sum(square(o)), v);
  CHECK(gradient(sum(square(dv)), q).value().type() == q.type());
}

}  // namespace
}  // namespace palimpsest
