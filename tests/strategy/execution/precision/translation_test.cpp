#include "strategy/execution/precision/translation.h"

#include "autodiff/recording_guards.h"
#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::translation_test {
namespace {

int count(const Tape& tape, std::string_view operation) {
  int nodes = 0;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    nodes += tape.operation(node).name == operation;
  }
  return nodes;
}

NodeId find(const Tape& tape, std::string_view operation) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.operation(node).name == operation) return node;
  }
  throw InternalError("no such node");
}

TEST_CASE("a value is cast once to each dtype, and leaves share their storage") {
  Tape tape;
  const Tensor weights = Tensor::normal({4, 4}, 1);
  const Var w = tape.parameter(weights, "w");
  const Var x = tape.constant(Tensor::normal({4, 4}, 2));
  const Var y = matmul(matmul(x, w), w);
  sum(y) + sum(y * y);
  Translation translation({.half = DType::f16}, lazy());
  translation.follow(tape);
  Tape& other = translation.tape();
  // Casts of w and x to f16; casts of y and y² back for the sums.
  CHECK(count(other, "cast") == 4);
  CHECK(other.is_parameter(0));
  CHECK(other.name(0) == "w");
  CHECK(other.buffer(0) == weights.buffer());
  CHECK(translation[y.id()].dtype() == DType::f16);
  CHECK(translation.in_dtype(y.id(), DType::f32).dtype() == DType::f32);
  CHECK(count(other, "cast") == 4);
}

TEST_CASE("scopes, names, lines, attributes and blocked derivatives are those that were recorded") {
  Tape tape;
  tape.set_seed(5);
  const Var x = tape.parameter(Tensor::normal({4, 4}, 1));
  Var dropped, stopped;
  {
    const auto outer = tape.scope("outer");
    const auto inner = tape.scope("inner");
    dropped = dropout(matmul(x, x), 0.5);
    const auto blocked = tape.no_gradient();
    stopped = exp(dropped);
  }
  Translation translation({}, lazy());
  translation.follow(tape);
  dropped.named("later");
  translation.follow_names(tape);
  const Tape& other = translation.tape();
  const NodeId node = find(other, "dropout");
  CHECK(other.scope_of(node) == "outer/inner");
  CHECK(other.name(node) == "later");
  CHECK(same_line(other.where(node), tape.where(dropped.node())));
  CHECK(other.attributes(node) == tape.attributes(dropped.node()));
  CHECK_FALSE(other.is_blocked(node));
  CHECK(other.is_blocked(find(other, "exp")));
  CHECK(other.seed() == 5);
  for (NodeId each = 0; each < other.node_count(); ++each) {
    if (other.operation(each).name == "cast") CHECK_FALSE(other.is_blocked(each));
  }
}

TEST_CASE("numbers that are made of several stay wide, and so does what is wide alone") {
  Tape tape;
  const Var x = tape.constant(Tensor::normal({4, 4}, 2));
  const Var product = matmul(x, x);
  const Var loss = sum(product) + reshape(slice(product, {{.stop = 1}, {.stop = 1}}), {});
  const Var wide = tanh(x) * 0.5;
  const Var joint = wide + product;
  const Var classes = argmax(product, {1});
  Translation translation({}, lazy());
  translation.follow(tape);
  CHECK(translation[loss.id()].dtype() == DType::f32);
  CHECK(translation[wide.id()].dtype() == DType::f32);
  CHECK(translation[joint.id()].dtype() == DType::bf16);
  CHECK(translation[classes.id()].dtype() == DType::i64);
}

TEST_CASE("normalisation takes x as it comes, and makes f32 statistics") {
  Tape tape;
  const Var x = tape.constant(Tensor::normal({4, 6}, 2));
  const Var w = tape.parameter(Tensor::ones({4}));
  const auto [y, mean, variance] = batch_norm(matmul(x, transpose(x, 0, 1)), w, w);
  for (const Precision& precision :
       {Precision{}, Precision{PrecisionKind::half, DType::f16}, Precision{PrecisionKind::full}}) {
    Translation translation(precision, lazy());
    translation.follow(tape);
    CHECK(translation[y.id()].dtype() == precision.narrow());
    CHECK(translation[mean.id()].dtype() == compute_dtype(precision.wide()));
    CHECK(translation[variance.id()].dtype() == compute_dtype(precision.wide()));
  }
}

TEST_CASE("explicit casts, random numbers and users' operations stay as they were recorded") {
  const CustomOperation twice({.name = "twice", .forward = [](const CustomCall& call) {
                                 const auto from = call.inputs[0].data<float>();
                                 const auto to = call.outputs[0].data<float>();
                                 for (std::size_t i = 0; i < to.size(); ++i) to[i] = 2 * from[i];
                               }});
  for (const PrecisionKind kind :
       {PrecisionKind::full, PrecisionKind::half, PrecisionKind::mixed}) {
    Tape tape;
    const Var x = tape.constant(Tensor::normal({3, 3}, 2));
    const Var y = twice({matmul(x, x)});
    const Var rounded = cast(cast(x, DType::bf16), DType::f32);
    const Var noise = normal(tape, {3});
    Translation translation({kind, DType::f16}, lazy());
    translation.follow(tape);
    CHECK(translation[y.id()].dtype() == DType::f32);
    CHECK(translation[rounded.id()].dtype() == DType::f32);
    CHECK(same_bits(translation[rounded.id()].value(), rounded.value()));
    CHECK(same_bits(translation[noise.id()].value(), noise.value()));
  }
}

TEST_CASE("casts read what is computed, and whole numbers become wide") {
  Tape tape;
  const Var x = tape.constant(Tensor::full({}, 1.0 / 3));
  const Var third = cast(x * 3.0 / 9.0, DType::f64);
  const Var whole = tape.constant(Tensor::full({}, 16777217, DType::i64));
  const Var number = cast(whole, DType::f32) - 1.0;
  Translation full({PrecisionKind::full}, lazy());
  full.follow(tape);
  CHECK(full[third.id()].item() != third.item());
  CHECK(full[number.id()].item() == 16777216);
  CHECK(number.item() == 16777215);
}

TEST_CASE("what was recorded for a while is taken off again, casts of older values included") {
  Tape tape;
  const Var x = tape.constant(Tensor::normal({3, 3}, 2));
  Translation translation({}, lazy());
  translation.follow(tape);
  {
    const TemporaryNodes region(tape);
    const Translation::Temporary other(translation);
    matmul(x, x);
    translation.follow(tape);
    CHECK(translation.tape().node_count() == 3);
  }
  CHECK(translation.tape().node_count() == 1);
  const Var y = matmul(x, x);
  translation.follow(tape);
  CHECK(translation.tape().node_count() == 3);
  CHECK(translation[y.id()].value().dtype() == DType::bf16);
}

}  // namespace
}  // namespace palimpsest::translation_test
