#include <functional>
#include <memory>
#include <optional>

#include "nn/nn.h"
#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::optimizer_state_test {
namespace {

using Catch::Matchers::Contains;

using Make = std::function<std::unique_ptr<Optimizer>()>;

struct Net {
  Tensor weight = Tensor::uniform({5, 3}, 1, -1, 1);
  Tensor bias = Tensor::uniform({3}, 2, -1, 1).to(DType::bf16);
  bool named = true;
  bool reversed = false;

  Net clone() const { return {weight.clone(), bias.clone(), named, reversed}; }

  void step(Optimizer& optimizer) const {
    Tape tape;
    Var w, b;
    if (reversed) b = tape.parameter(bias, named ? "bias" : "");
    w = tape.parameter(weight, named ? "weight" : "");
    if (!reversed) b = tape.parameter(bias, named ? "bias" : "");
    optimizer.step(backward(sum(square(w) * cast(b, DType::f32) + w)));
  }
};

const Make makes[] = {
    [] { return sgd({.momentum = 0.9}); },
    [] { return sgd(); },
    [] { return adam(); },
    [] { return adamw({.groups = {{.matches = axes_at_most(1), .weight_decay = 0}}}); },
    [] { return rmsprop({.momentum = 0.5, .centered = true}); },
    [] { return lion(); },
    [] { return adafactor(); },
};

TEST_CASE("a restored optimizer continues with the same bits") {
  for (const Make& make : makes) {
    for (const bool named : {true, false}) {
      for (const bool was_used : {false, true}) {
        Net net;
        net.named = named;
        const auto optimizer = make();
        for (int i = 0; i < 3; ++i) net.step(*optimizer);
        optimizer->set_learning_rate(0.02);
        const Net copy = net.clone();
        const auto restored = make();
        if (was_used) net.clone().step(*restored);
        const NamedTensors state = optimizer->state();
        CAPTURE(state.begin()->first, named, was_used);
        restored->load_state(state);
        CHECK(restored->steps() == 3);
        CHECK(restored->learning_rate() == 0.02);
        for (const auto& [name, tensor] : restored->state()) {
          CHECK(same_bits(tensor, state.at(name)));
        }
        for (int i = 0; i < 2; ++i) {
          net.step(*optimizer);  // also shows that the restored state is a copy
          copy.step(*restored);
        }
        CHECK(same_bits(net.weight, copy.weight));
        CHECK(same_bits(net.bias, copy.bias));
        CHECK(restored->state().size() == state.size());
      }
    }
  }
}

TEST_CASE("state of named parameters does not depend on their order") {
  Net net;
  Net other = net.clone();
  const auto optimizer = adam();
  const auto expected = adam();
  for (int i = 0; i < 4; ++i) {
    net.reversed = i % 2 == 1;
    net.step(*optimizer);
    other.step(*expected);
  }
  CHECK(same_bits(net.weight, other.weight));
  CHECK(same_bits(net.bias, other.bias));
}

TEST_CASE("parameters of one name have state by position") {
  const Tensor a = Tensor::ones({2}), b = Tensor::ones({2});
  const auto optimizer = lion();
  Tape tape;
  const Var p = tape.parameter(a, "x");
  const Var q = tape.parameter(b, "x");
  optimizer->step(backward(sum(p + q)));
  CHECK(optimizer->state().contains("lion/position/1/momentum"));
}

/// Steps of an `Execution` on two layers. The second one may be left out of a step, and then has no
/// names there.
struct Layers {
  explicit Layers(std::unique_ptr<Optimizer> given = adamw({.weight_decay = 0.1}))
      : optimizer(std::move(given)) {}

  void step(bool skips) {
    const std::vector<Tensor> batch{Tensor::normal({4, 3}, 3)};
    const auto loss = [&](Tape&, std::span<const Var>, std::span<const Var> x) {
      const Var hidden = tanh(first(x[0]));
      return LossAndOutputs(mean(square(skips ? hidden : hidden + tanh(second(hidden)))));
    };
    optimizer->step(execution.gradients(loss, parameters.tensors(), batch));
  }

  nn::Parameters parameters{1};
  nn::Linear first{parameters / "first", 3, 3};
  nn::Linear second{parameters / "second", 3, 3};
  Execution execution;
  std::unique_ptr<Optimizer> optimizer;
};

/// Weights decay, except biases.
std::vector<ParameterGroup> without_biases() {
  return {{.matches = names_ending({"bias"}), .weight_decay = 0}};
}

void require_equal(const Layers& a, const Layers& b) {
  for (const auto& [name, tensor] : a.parameters.named()) {
    CHECK(same_bits(tensor, b.parameters[name].tensor()));
  }
  const NamedTensors expected = a.optimizer->state();
  const NamedTensors found = b.optimizer->state();
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, tensor] : expected) CHECK(same_bits(found.at(name), tensor));
}

TEST_CASE("a layer may be left out of any step, also of the first and of those around a save") {
  const Make kinds[] = {
      [] { return adamw({.weight_decay = 0.1}); },
      [] { return adamw({.weight_decay = 0.5, .groups = without_biases()}); },
      [] { return sgd({.weight_decay = 0.5, .groups = without_biases()}); },
      [] { return sgd({.momentum = 0.9, .weight_decay = 0.5, .groups = without_biases()}); },
  };
  for (const Make& make : kinds) {
    for (int left_out = 0; left_out < 16; ++left_out) {
      const auto skips = [&](int step) { return (left_out >> step & 1) != 0; };
      const auto started = [&] {
        Layers layers(make());
        layers.parameters.load(NamedTensors{{"second/bias", Tensor::ones({3})}},
                               {.allow_missing = true});
        return layers;
      };
      Layers whole = started();
      for (int step = 0; step < 4; ++step) whole.step(skips(step));
      for (int saved_at = 1; saved_at < 4; ++saved_at) {
        CAPTURE(left_out, saved_at);
        Layers begun = started(), resumed = started();
        for (int step = 0; step < saved_at; ++step) begun.step(skips(step));
        resumed.parameters.load(begun.parameters.named());
        resumed.optimizer->load_state(begun.optimizer->state());
        for (int step = saved_at; step < 4; ++step) resumed.step(skips(step));
        require_equal(whole, resumed);

        NamedTensors parameters, state;
        for (const auto& [name, tensor] : begun.parameters.named()) {
          parameters.emplace(name, tensor.clone());
        }
        for (const auto& [name, tensor] : begun.optimizer->state()) {
          state.emplace(name, tensor.clone());
        }
        begun.step(false);  // which is undone
        begun.parameters.load(parameters);
        begun.optimizer->load_state(state);
        for (int step = saved_at; step < 4; ++step) begun.step(skips(step));
        require_equal(whole, begun);
      }
    }
  }
}

TEST_CASE("an optimizer keeps its names when it loads a state of an earlier version") {
  Layers layers, expected;
  for (Layers* each : {&layers, &expected}) each->step(false);
  NamedTensors state = layers.optimizer->state();
  const auto is_position = [](const auto& each) { return each.first.ends_with("/position"); };
  CHECK(std::erase_if(state, is_position) == 4);
  layers.optimizer->load_state(state);
  for (Layers* each : {&layers, &expected}) each->step(true);
  require_equal(expected, layers);
}

TEST_CASE("a group may be for a layer that the first steps leave out") {
  const auto of = [](const char* scope) -> ParameterPredicate {
    return [scope](const ParameterInfo& info) { return info.name.starts_with(scope); };
  };
  const auto make = [&](const char* scope) {
    return sgd({.learning_rate = 1, .groups = {{.matches = of(scope), .learning_rate_factor = 0}}});
  };
  Layers layers(make("second/"));
  layers.step(true);
  const Tensor start = layers.second.weight.tensor().clone();
  layers.step(false);
  CHECK(same_bits(layers.second.weight.tensor(), start));
  Layers resumed(make("second/"));
  resumed.optimizer->load_state(layers.optimizer->state());
  resumed.step(true);
  CHECK(resumed.optimizer->steps() == 3);

  Layers misspelt(make("third/"));
  misspelt.step(true);
  const Tensor before = misspelt.first.weight.tensor().clone();
  CHECK_THROWS_WITH(misspelt.step(false), Contains("group 0 selects no parameter"));
  CHECK(misspelt.optimizer->steps() == 1);
  CHECK(same_bits(misspelt.first.weight.tensor(), before));
}

TEST_CASE("two parameters may have one name, also where a step leaves one of them out") {
  const auto run = [](const Make& make, std::optional<int> saved_at) {
    nn::Parameters one(1), other(2);
    const nn::Linear a(one / "first", 3, 3, {.bias = false});
    const nn::Linear b(other / "first", 3, 3, {.bias = false});
    const std::vector<Tensor> tensors{a.weight.tensor(), b.weight.tensor()};
    const std::vector<Tensor> batch{Tensor::normal({4, 3}, 3)};
    Execution execution;
    auto optimizer = make();
    const int left_out[] = {0, 2, 1, 0, 2, 1};
    for (int step = 0; step < 6; ++step) {
      if (step == saved_at) {
        const NamedTensors state = optimizer->state();
        optimizer = make();
        optimizer->load_state(state);
        CHECK(optimizer->state().size() == state.size());
      }
      const auto loss = [&](Tape&, std::span<const Var>, std::span<const Var> x) {
        Var hidden = x[0];
        if (left_out[step] != 1) hidden = tanh(a(hidden));
        if (left_out[step] != 2) hidden = tanh(b(hidden));
        return LossAndOutputs(mean(square(hidden)));
      };
      optimizer->step(execution.gradients(loss, tensors, batch));
    }
    return tensors;
  };
  const std::vector<ParameterGroup> weights{
      {.matches = names_ending({"weight"}), .weight_decay = 0}};
  const Make kinds[] = {
      [&] { return adamw({.weight_decay = 0.5, .groups = weights}); },
      [&] { return sgd({.weight_decay = 0.5, .groups = weights}); },
  };
  for (const Make& make : kinds) {
    const std::vector<Tensor> expected = run(make, {});
    for (int saved_at = 1; saved_at < 6; ++saved_at) {
      const std::vector<Tensor> found = run(make, saved_at);
      CAPTURE(saved_at);
      for (std::size_t i = 0; i < 2; ++i) CHECK(same_bits(found[i], expected[i]));
    }
  }
}

TEST_CASE("a step may leave out either of two layers that share a tensor") {
  const auto run = [](std::optional<int> saved_at) {
    nn::Parameters parameters(1);
    const nn::Linear encoder(parameters / "encoder", 3, 3, {.bias = false});
    const nn::Linear decoder((parameters / "decoder").add("weight", encoder.weight.tensor()));
    const nn::Linear middle(parameters / "middle", 3, 3);
    const std::vector<Tensor> batch{Tensor::normal({4, 3}, 3)};
    Execution execution;
    auto optimizer = adam();
    const int left_out[] = {0, 2, 1, 2, 1};
    for (int step = 0; step < 5; ++step) {
      if (step == saved_at) {
        const NamedTensors state = optimizer->state();
        optimizer = adam();
        optimizer->load_state(state);
      }
      const auto loss = [&](Tape&, std::span<const Var>, std::span<const Var> x) {
        Var hidden = middle(x[0]);
        if (left_out[step] != 1) hidden = tanh(encoder(hidden));
        if (left_out[step] != 2) hidden = tanh(decoder(hidden));
        return LossAndOutputs(mean(square(hidden)));
      };
      optimizer->step(execution.gradients(loss, parameters.tensors(), batch));
    }
    return encoder.weight.tensor();
  };
  const Tensor expected = run({});
  for (int saved_at = 1; saved_at < 5; ++saved_at) CHECK(same_bits(run(saved_at), expected));
}

TEST_CASE("a parameter that is named later belongs to the group of its name from then on") {
  const auto make = [] {
    return sgd({.learning_rate = 1,
                .groups = {{.matches = names_ending({"bias"}), .learning_rate_factor = 0}}});
  };
  Layers layers(make());
  const Tensor start = layers.second.bias.tensor().clone();
  layers.step(true);
  CHECK(layers.optimizer->state().size() == 4);  // with two positions
  layers.step(false);
  CHECK(same_bits(layers.second.bias.tensor(), start));
}

TEST_CASE("a parameter without a name is not taken for one of another position") {
  const Tensor a = Tensor::ones({2}), b = Tensor::ones({2});
  const auto optimizer = adam();
  const auto step = [&](const char* first, const char* second) {
    Tape tape;
    const Var p = tape.parameter(a, first);
    const Var q = tape.parameter(b, second);
    optimizer->step(backward(sum(p + q)));
  };
  step("a", "");
  CHECK(optimizer->state().contains("adam/name/a/mean"));
  CHECK(optimizer->state().contains("adam/position/1/mean"));
  step("a", "b");
  CHECK(optimizer->state().contains("adam/name/b/mean"));
  CHECK_THROWS_WITH(step("b", ""), Contains("parameter 1 has no name") && Contains("'b'"));
  CHECK_THROWS_WITH(step("", "a"), Contains("parameter 0 has no name") && Contains("'a'"));
  step("", "");
  CHECK_THROWS_WITH(step("a", "c"), Contains("'c' did not occur"));
  CHECK(optimizer->steps() == 3);

  const auto restored = adam();
  restored->load_state(optimizer->state());
  Tape tape;
  const Var p = tape.parameter(a, "b");
  const Var q = tape.parameter(b, "");
  CHECK_THROWS_WITH(restored->step(backward(sum(p + q))),
                    Contains("'adam/name/b/") && Contains("two parameters"));
}

TEST_CASE("states by name of earlier versions have no positions") {
  const Net net;
  const auto optimizer = adam();
  net.step(*optimizer);
  NamedTensors state = optimizer->state();
  CHECK(state.erase("adam/name/weight/position") + state.erase("adam/name/bias/position") == 2);
  Net unnamed;
  unnamed.named = false;
  const auto restored = adam();
  restored->load_state(state);
  CHECK_THROWS_WITH(unnamed.step(*restored), Contains("has no name"));
  net.step(*restored);
  CHECK(restored->steps() == 2);
}

TEST_CASE("a state saved before the first step begins anew") {
  const Net net;
  const auto optimizer = adam();
  const NamedTensors begin = optimizer->state();
  CHECK(begin.size() == 2);
  net.step(*optimizer);
  optimizer->load_state(begin);
  CHECK(optimizer->steps() == 0);
  Net().step(*optimizer);
  CHECK(optimizer->steps() == 1);
}

TEST_CASE("other parameters than at the first step are errors that name them") {
  const auto optimizer = adam();
  const auto step = [&](const char* first, const char* second, std::int64_t size) {
    Tape tape;
    const Var p = tape.parameter(Tensor::ones({size}), first);
    const Var q = tape.parameter(Tensor::ones({2}), second);
    optimizer->step(backward(sum(p) + sum(q)));
  };
  step("a", "b", 3);
  CHECK_THROWS_WITH(step("a", "c", 3), Contains("'c' did not occur at the first step"));
  CHECK_THROWS_WITH(step("a", "a", 3), Contains("two parameters are named 'a'"));
  CHECK_THROWS_WITH(step("a", "b", 4), Contains("'a' was f32 (3) and is now f32 (4)"));
  CHECK(optimizer->steps() == 1);
}

TEST_CASE("states that do not fit are errors, and change nothing") {
  const Net net;
  const auto optimizer = adam();
  net.step(*optimizer);
  NamedTensors good;
  for (const auto& [name, tensor] : optimizer->state()) good.emplace(name, tensor.clone());
  const std::string mean = "adam/name/weight/mean";

  struct Row {
    std::function<void(NamedTensors&)> change;
    const char* words;
  };
  const Row rows[] = {
      {[&](NamedTensors& s) { s.erase(mean); }, "'adam/name/weight/mean' of the state is missing"},
      {[&](NamedTensors& s) { s.at(mean) = Tensor::ones({5, 4}); },
       "f32 (5, 4) and must be f32 (5, 3)"},
      {[&](NamedTensors& s) { s.at(mean) = Tensor::ones({5, 3}, DType::f64); }, "must be f"},
      {[&](NamedTensors& s) { s.at(mean) = Tensor(); }, "empty"},
      {[](NamedTensors& s) { s.erase("adam/steps"); }, "'adam/steps' of the state is missing"},
      {[](NamedTensors& s) { s.at("adam/steps") = Tensor::from({std::int64_t{-1}}, {}); }, "is -1"},
      {[](NamedTensors& s) { s.at("adam/steps") = Tensor::scalar(1); }, "must be i64"},
      {[](NamedTensors& s) { s.at("adam/learning_rate") = Tensor::scalar(-1, DType::f64); },
       "is -1"},
      {[](NamedTensors& s) { s.emplace("lion/steps", Tensor::scalar(1)); }, "unknown"},
      {[](NamedTensors& s) { s.emplace("adam/name/mean", Tensor::scalar(1)); }, "unknown"},
      {[](NamedTensors& s) { s.emplace("adam/name/bias/momentum", Tensor::ones({3})); },
       "'adam/name/bias/momentum' of the state is unknown"},
      {[](NamedTensors& s) { s.emplace("adam/position/7/x/y", Tensor::ones({3})); },
       "'adam/position/7/x/y' of the state is unknown"},
      {[](NamedTensors& s) { s.emplace("adam/position/0/mean", Tensor::ones({3})); },
       "'adam/position/0/mean' of the state belongs to no parameter"},
      {[](NamedTensors& s) { s.erase("adam/name/bias/position"); },
       "'adam/name/bias/position' of the state is missing"},
      {[](NamedTensors& s) { s.at("adam/name/bias/position") = s.at("adam/name/weight/position"); },
       "'adam/name/weight/position' of the state is that of another parameter"},
      {[](NamedTensors& s) {
         s.emplace("adam/name/other/position", Tensor::from({std::int64_t{2}}, {}));
       },
       "'adam/name/other/position' of the state belongs to no parameter"},
  };
  const auto fresh = adam();
  for (const Row& row : rows) {
    NamedTensors state = good;
    row.change(state);
    CAPTURE(row.words);
    CHECK_THROWS_AS(fresh->load_state(state), UsageError);
    CHECK_THROWS_WITH(optimizer->load_state(state), Contains(row.words));
    CHECK_THROWS_AS(optimizer->check_state(state), UsageError);
    CHECK(fresh->steps() == 0);
    for (const auto& [name, tensor] : optimizer->state()) CHECK(same_bits(tensor, good.at(name)));
  }
  CHECK_THROWS_WITH(lion()->load_state(good), Contains("'lion/steps' of the state is missing"));
}

TEST_CASE("a loaded state of other parameters is an error at the next step") {
  Net net;
  const auto optimizer = adam();
  net.step(*optimizer);
  const auto restored = adam();
  restored->load_state(optimizer->state());
  Net wide;
  wide.weight = Tensor::ones({4, 3});
  CHECK_THROWS_WITH(wide.step(*restored), Contains("f32 (5, 3) and must be f32 (4, 3)"));
  CHECK(same_bits(wide.weight, Tensor::ones({4, 3})));
  Net unnamed;
  unnamed.named = false;
  unnamed.reversed = true;
  CHECK_THROWS_AS(unnamed.step(*restored), ShapeError);
  Tape tape;
  const Var p = tape.parameter(Tensor::ones({5, 3}), "weight");
  CHECK_THROWS_WITH(restored->step(backward(sum(p))),
                    Contains("'adam/name/bias/mean'") && Contains("belongs to no parameter"));
  net.step(*restored);
  CHECK(restored->steps() == 2);
}

}  // namespace
}  // namespace palimpsest::optimizer_state_test
