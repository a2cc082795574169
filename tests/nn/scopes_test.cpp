#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nn/nn.h"
#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::module_scopes_test {
namespace {

using Catch::Matchers::Contains;
using Scopes = std::set<std::string>;

/// The scopes of the operations that `layer` records when it is called with x.
template <class Layer>
Scopes scopes_of(const Layer& layer, const Tensor& x) {
  Tape tape;
  const Var input = tape.constant(x);
  const NodeId first = tape.node_count();
  (void)layer(input);
  Scopes scopes;
  for (NodeId node = first; node < tape.node_count(); ++node) {
    const std::string scope(tape.scope_of(node));
    if (tape.name(node).empty()) {
      scopes.insert(scope);
    } else {
      CHECK((scope.empty() || tape.name(node) == "state"));  // a parameter
    }
  }
  return scopes;
}

TEST_CASE("every layer records under the name that its parameters have") {
  nn::Parameters p(1);
  const Tensor x = Tensor::normal({2, 3, 4}, 1);
  const Tensor image = Tensor::normal({2, 3, 5, 5}, 2);
  CHECK(scopes_of(nn::Linear(p / "linear", 4, 3), x) == Scopes{"linear"});
  CHECK(scopes_of(nn::Linear(p / "encoder" / "0" / "in", 4, 3), x) == Scopes{"encoder/0/in"});
  CHECK(scopes_of(nn::Linear(p, 4, 3), x) == Scopes{""});
  CHECK(scopes_of(nn::Conv1d(p / "conv1", 3, 2, 1), x) == Scopes{"conv1"});
  CHECK(scopes_of(nn::Conv2d(p / "conv2", 3, 2, 3), image) == Scopes{"conv2"});
  CHECK(scopes_of(nn::LayerNorm(p / "layer", 4), x) == Scopes{"layer"});
  CHECK(scopes_of(nn::RmsNorm(p / "rms", 4), x) == Scopes{"rms"});
  CHECK(scopes_of(nn::GroupNorm(p / "group", 3, 3), image) == Scopes{"group"});
  CHECK(scopes_of(nn::BatchNormLayer(p / "batch", 3), image) == Scopes{"batch"});
  CHECK(scopes_of(nn::Dropout(p / "drop", 0.5), x) == Scopes{"drop"});
  CHECK(scopes_of(nn::Attention(p / "attention", 4, 2), x) == Scopes{"attention"});
  CHECK(scopes_of(nn::Rnn(p / "rnn", 4, 3), x) == Scopes{"rnn"});
  CHECK(scopes_of(nn::Lstm(p / "lstm", 4, 3), x) == Scopes{"lstm"});
  CHECK(scopes_of(nn::Gru(p / "gru", 4, 3), x) == Scopes{"gru"});
  CHECK(scopes_of(nn::Embedding(p / "table", 5, 2), Tensor::zeros({3}, DType::i64)) ==
        Scopes{"table"});
  const nn::WeightNorm norm(p / "norm", {4, 3}, nn::init::normal(1), {});
  CHECK(scopes_of([&](const Var& y) { return norm.on(y); }, x) == Scopes{"norm"});
  const nn::SpectralNormLayer spectral(p / "spectral", {4, 3}, nn::init::normal(1), {});
  CHECK(scopes_of([&](const Var& y) { return spectral.on(y); }, x) == Scopes{"spectral"});
}

struct Block {
  nn::Linear in, out;

  Block(const nn::Parameters& p, int width)
      : in(p / "in", width, width), out(p / "out", width, width) {}
  Var operator()(const Var& x) const { return x + out(gelu(in(x))); }
};

TEST_CASE("compositions record under the names of their layers") {
  nn::Parameters p(1);
  const Tensor x = Tensor::normal({2, 4}, 1);
  const nn::Sequential two(
      nn::Linear(p / "a", 4, 4), [](const Var& y) { return relu(y); }, nn::Linear(p / "b", 4, 2));
  CHECK(scopes_of(two, x) == Scopes{"", "a", "b"});
  CHECK(scopes_of(nn::Residual{nn::Linear(p / "c", 4, 4)}, x) == Scopes{"", "c"});
  CHECK(
      scopes_of(nn::Stack<Block>(p / "blocks", 2, 4), x) ==
      Scopes{"blocks/0", "blocks/0/in", "blocks/0/out", "blocks/1", "blocks/1/in", "blocks/1/out"});
  const nn::Parameters model = p / "model";
  const nn::Linear head(model / "head", 4, 4);
  const auto call = [&](const Var& y) {
    const auto scope = model.scope(y.tape());
    return exp(head(y));
  };
  CHECK(scopes_of(call, x) == Scopes{"model", "model/head"});
  // A layer with the parameters of another one has its name too.
  CHECK(scopes_of(nn::Linear(head.weight), x) == Scopes{"model/head"});
}

/// Two layers and a loss; with scopes of modules, or the same operations without.
Var loss_of(const nn::Linear& a, const nn::Linear& b, const Var& x, bool with_scopes) {
  const auto plain = [&](const nn::Linear& layer, const Var& y) {
    const Var weight = layer.weight.on(y.tape());
    return linear(y, weight, layer.bias.on(y.tape()));
  };
  const auto call = [&](const nn::Linear& layer, const Var& y) {
    return with_scopes ? layer(y) : plain(layer, y);
  };
  std::optional<Tape::ModuleScope> scope;
  if (with_scopes) scope.emplace(x.tape(), "net");
  return sum(square(call(b, tanh(call(a, x)))));
}

struct Model {
  nn::Parameters p{1};
  nn::Linear a{p / "net" / "a", 16, 64};
  nn::Linear b{p / "net" / "b", 64, 16};
  Tensor x = Tensor::normal({64, 16}, 3);

  Gradients run(Tape& tape, bool with_scopes, const RunOptions& options = {}) const {
    return backward(loss_of(a, b, tape.constant(x), with_scopes), options);
  }
};

TEST_CASE("scopes of modules change neither bits nor plans, which are found again") {
  const Model model;
  for (const RunOptions& options : {RunOptions{}, RunOptions{.memory_budget = 64_KiB}}) {
    Tape tape(lazy());
    const Gradients with = model.run(tape, true, options);
    CHECK_FALSE(with.report().plan_reused);
    tape.clear();
    const Gradients without = model.run(tape, false, options);
    CHECK(without.report().plan_reused);
    CHECK(with.report().predicted_peak == without.report().predicted_peak);
    CHECK(same_bits(with.loss(), without.loss()));
    REQUIRE(with.entries().size() == without.entries().size());
    for (std::size_t i = 0; i < with.entries().size(); ++i) {
      CHECK(with.entries()[i].name == without.entries()[i].name);
      CHECK(same_bits(with.entries()[i].gradient, without.entries()[i].gradient));
    }
  }
}

TEST_CASE("scopes of modules end no stage of a hybrid tape") {
  const Model model;
  Tape tape(hybrid());
  const Var x = tape.constant(model.x);
  const Var hidden = model.a(x);
  const Var loss = sum(square(model.b(tanh(hidden))));
  CHECK_FALSE(tape.has_value(hidden.id()));
  CHECK_FALSE(tape.has_value(loss.id()));
}

TEST_CASE("layer checkpointing takes layers with and without scopes alike") {
  using Mode = LayerCheckpointing::Mode;
  const Tensor x = Tensor::normal({4, 8}, 9);
  std::vector<std::vector<Tensor>> weights;
  for (std::uint64_t i = 0; i < 5; ++i) weights.push_back({Tensor::normal({8, 8}, i)});
  const auto run = [&](bool with_scopes, Mode mode) {
    LayerModel model;
    model.layer = {.parameters = weights,
                   .forward = [with_scopes](const Var& y, std::span<const Var> w, int layer) {
                     const std::string path = with_scopes ? "layers/" + std::to_string(layer) : "";
                     const Tape::ModuleScope scope(y.tape(), path);
                     return tanh(matmul(y, w[0]));
                   }};
    LayerCheckpointing given{.mode = mode};
    if (mode == Mode::every) given.interval = 2;
    LayerCheckpointer layers(model, given);
    const Tensor y = layers.forward(x);
    const LayerGradients made = layers.backward(Tensor::ones(y.shape()));
    std::vector<Tensor> found{y, made.input};
    for (int layer = 0; layer < 5; ++layer) {
      found.push_back(made.parameters[layers.parameter(layer, 0)]);
    }
    return std::pair(found, layers.use().peak);
  };
  for (const Mode mode : {Mode::none, Mode::every}) {
    const auto [with, peak_with] = run(true, mode);
    const auto [without, peak_without] = run(false, mode);
    for (std::size_t i = 0; i < with.size(); ++i) CHECK(same_bits(with[i], without[i]));
    CHECK(peak_with == peak_without);
  }
}

TEST_CASE("a report says which modules hold the bytes at the peak") {
  const Model model;
  Tape tape;
  const Report report = model.run(tape, true).report();
  const std::string text = report.explain();
  INFO(text);
  CHECK_THAT(text, Contains("by scope:") && Contains("× net/b\n") && Contains("scopes_test.cpp:") &&
                       Contains("matmul net/b (scopes_test.cpp:"));
  Tape plain;
  CHECK_THAT(model.run(plain, false).report().explain(), !Contains("by scope:"));
}

/// The rows by scope of an explanation.
std::vector<std::string> rows_by_scope(const std::string& text) {
  const std::string begin = "by scope:\n";
  std::size_t at = text.find(begin);
  std::vector<std::string> rows;
  if (at == text.npos) return rows;
  for (at += begin.size(); text[at] == ' '; at = text.find('\n', at) + 1) {
    rows.push_back(text.substr(at, text.find('\n', at) - at));
  }
  return rows;
}

TEST_CASE("a report of a deep model divides the largest scopes as far as there are rows") {
  nn::Parameters p(1);
  const nn::Stack<Block> blocks(p / "blocks", 8, 4);
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({32, 4}, 1));
  const std::string text = backward(sum(square(blocks(x)))).report().explain();
  INFO(text);
  const std::vector<std::string> rows = rows_by_scope(text);
  CHECK(rows.size() >= 9);
  CHECK(rows.size() <= 12);
  const auto has = [&](const std::string& scope) {
    return std::ranges::any_of(rows,
                               [&](const std::string& row) { return row.ends_with("× " + scope); });
  };
  for (int i = 0; i < 8; ++i) {
    const std::string block = "blocks/" + std::to_string(i);
    CHECK((has(block) || has(block + "/in") || has(block + "/out")));
  }
  CHECK_FALSE(has("blocks"));
}

}  // namespace
}  // namespace palimpsest::module_scopes_test
