#include "nn/parameters.h"

#include "nn/linear.h"
#include "palimpsest.h"
#include "strategy/training/training.h"
#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace palimpsest::parameters_test {
namespace {

using Catch::Matchers::Contains;

struct Model {
  explicit Model(std::uint64_t seed = 0, DType dtype = DType::f32)
      : parameters(seed, dtype),
        first(parameters / "first", 3, 4),
        second(parameters / "second", 4, 2) {}

  Var operator()(const Var& x) const { return second(tanh(first(x))); }

  nn::Parameters parameters;
  nn::Linear first, second;
};

std::vector<std::string> names_of(const std::vector<nn::Parameter>& parameters) {
  std::vector<std::string> names;
  for (const nn::Parameter& each : parameters) names.push_back(each.name());
  return names;
}

}  // namespace

TEST_CASE("parameters have scoped names, and their bits depend on seed and name only") {
  const Model model(5);
  CHECK(names_of(model.parameters.all()) ==
        std::vector<std::string>{"first/bias", "first/weight", "second/bias", "second/weight"});
  CHECK(model.parameters.elements() == 3 * 4 + 4 + 4 * 2 + 2);
  CHECK(model.parameters.bytes() == 4 * model.parameters.elements());
  CHECK(names_of((model.parameters / "second").all()).size() == 2);
  nn::Parameters other(5);
  const nn::Linear second(other / "second", 4, 2);  // first in its container
  CHECK(same_bits(second.weight.tensor(), model.second.weight.tensor()));
  CHECK_FALSE(same_bits(Model(6).first.weight.tensor(), model.first.weight.tensor()));
  CHECK(model.parameters["first/bias"] == model.first.bias);
  CHECK(Model(5, DType::bf16).first.weight.tensor().dtype() == DType::bf16);
}

TEST_CASE("a parameter that is used twice is one parameter") {
  nn::Parameters parameters(1);
  const nn::Linear encoder(parameters / "encoder", 3, 3);
  const nn::Linear decoder(encoder.weight);
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2, 3}));
  const Gradients gradients = backward(sum(square(decoder(tanh(encoder(x))))));
  CHECK(gradients.entries().size() == 2);
  CHECK(gradients.entries()[0].name == "encoder/weight");
  const auto optimizer = sgd();
  optimizer->step(gradients);
  Tape again;
  const Var w = again.parameter(encoder.weight.tensor());
  CHECK(encoder.weight.on(again) == w);
}

TEST_CASE(
    "a constant is not taken for a trainable parameter, and names have no scopes of the tape") {
  nn::Parameters parameters(1);
  const nn::Linear layer(parameters / "layer", 3, 3);
  Tape tape;
  const Var anchor = tape.constant(layer.weight.tensor());
  Var y;
  {
    const auto scope = tape.scope("block");
    y = layer(tape.constant(Tensor::ones({2, 3})));
  }
  const Gradients gradients = backward(sum(y) + sum(anchor));
  REQUIRE(gradients.entries().size() == 2);
  CHECK(gradients.entries()[0].name == "layer/weight");
  Tape outer;
  const auto in_body = [&](const Var& x, const StepNumber&) {
    Tape unrelated;
    return x * (1 + layer(unrelated.constant(Tensor::ones({1, 3}))).value().elements());
  };
  parameters.record(outer);
  CHECK(scan(outer.constant(Tensor::ones({2})), 2, in_body).value().at(0) == 16);
}

TEST_CASE("record records each parameter and state once, in order") {
  Model model;
  const nn::Parameter count =
      (model.parameters / "first").add_state("count", Tensor::zeros({}, DType::i64));
  Tape tape;
  model.parameters.record(tape);
  CHECK(tape.node_count() == 5);
  model.parameters.record(tape);
  model(tape.constant(Tensor::ones({1, 3})));
  std::uint32_t leaves = 0;
  for (NodeId node = 0; node < tape.node_count(); ++node) leaves += tape.is_leaf(node) ? 1 : 0;
  CHECK(leaves == 6);
  CHECK_FALSE(tape.is_parameter(count.on(tape).node()));
}

TEST_CASE("frozen parameters have no gradients") {
  Model model;
  (model.parameters / "first").freeze();
  CHECK(names_of(model.parameters.trainable()) ==
        std::vector<std::string>{"second/bias", "second/weight"});
  CHECK(model.parameters.tensors().size() == 2);
  Tape tape;
  const Var loss = sum(model(tape.constant(Tensor::ones({2, 3}))));
  CHECK(backward(loss).entries().size() == 2);
  model.parameters.unfreeze();
  CHECK(model.parameters.tensors().size() == 4);
}

TEST_CASE("names that share a tensor are frozen together") {
  const Tensor tensor = Tensor::vector({1, 2});
  nn::Parameters own;
  const nn::Parameter a = (own / "a").add("weight", tensor);
  const nn::Parameter b = (own / "b").add("weight", tensor);
  (own / "a").freeze();
  CHECK_FALSE(a.is_trainable());
  CHECK_FALSE(b.is_trainable());
  const nn::Parameter c = (own / "c").add("weight", tensor);
  CHECK_FALSE(c.is_trainable());
  CHECK((own / "c").add("other", Tensor::vector({1})).is_trainable());
  (own / "b").unfreeze();
  CHECK(a.is_trainable());
  CHECK(c.is_trainable());
}

TEST_CASE("what a frozen name records has no gradient, whatever else shares its tensor") {
  const Tensor tensor = Tensor::vector({1, 2});
  nn::Parameters frozen, trained;
  const nn::Parameter a = frozen.add("a", tensor);
  const nn::Parameter b = trained.add("b", tensor);
  frozen.freeze();
  for (const bool is_frozen_first : {true, false}) {
    Tape tape;
    Var loss;
    if (is_frozen_first) {
      const Var by_a = sum(3.0 * a.on(tape));
      loss = by_a + sum(2.0 * b.on(tape));
    } else {
      const Var by_b = sum(2.0 * b.on(tape));
      loss = by_b + sum(3.0 * a.on(tape));
    }
    CHECK(a.on(tape) == a.on(tape));
    CHECK(b.on(tape) == b.on(tape));
    const Gradients gradients = backward(loss);
    REQUIRE(gradients.entries().size() == 1);
    CHECK(same_bits(gradients["b"], Tensor::vector({2, 2})));
  }
}

TEST_CASE("parameters may be frozen and unfrozen between steps") {
  Model model(1);
  const std::vector<Tensor> batch{Tensor::normal({4, 3}, 2)};
  const auto loss = [&](Tape&, std::span<const Var>, std::span<const Var> b) {
    return LossAndOutputs(sum(square(model(b[0]))));
  };
  const std::vector<Tensor> all = model.parameters.tensors();
  for (const int replicas : {1, 2}) {
    ExecutionStrategy strategy;
    if (replicas > 1) strategy.parallelism = ParallelMode::data_parallel;
    if (replicas > 1) strategy.workers = replicas;
    Execution execution(strategy, LossReduction::sum);
    const SgdOptions options{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1};
    auto optimizer = sgd(options);
    const auto step = [&](const std::vector<Tensor>& given) {
      const Tensor first = model.first.weight.tensor().clone();
      const Tensor second = model.second.weight.tensor().clone();
      optimizer->step(execution.gradients(loss, given, batch));
      return std::pair(!same_bits(first, model.first.weight.tensor()),
                       !same_bits(second, model.second.weight.tensor()));
    };
    CHECK(step(model.parameters.tensors()) == std::pair(true, true));
    (model.parameters / "first").freeze();
    CHECK_THROWS_AS(step(all), ArgumentError);
    CHECK_THROWS_WITH(step(all), Contains("[execution] parameter 0 f32 (4)") &&
                                     Contains("frozen") && Contains("parameters_test.cpp"));
    const std::vector<Tensor> some = model.parameters.tensors();
    CHECK_THROWS_WITH(step(some), Contains("2 parameters given after steps with 4") &&
                                      Contains("a new one after freeze() and unfreeze()"));
    optimizer = sgd(options);
    CHECK(step(some) == std::pair(false, true));
    if (replicas == 1) CHECK_NOTHROW(execution.value(loss, all, batch));
    model.parameters.unfreeze();
    if (replicas > 1) {
      CHECK_THROWS_WITH(step(some), Contains("records 4 parameters, but is given 2"));
    } else {
      optimizer = sgd(options);
      CHECK(step(some) == std::pair(true, true));
    }
    optimizer = sgd(options);
    CHECK(step(model.parameters.tensors()) == std::pair(true, true));
  }
  // Recorded programs stay as they are.
  const Tensor x = Tensor::ones({1, 3});
  const Program program =
      Program::gradients([&](Tape& tape) { return LossAndOutputs(sum(model(tape.constant(x)))); });
  model.parameters.freeze();
  Runner runner(program);
  runner.run();
  CHECK(runner.gradients().entries().size() == 4);
}

TEST_CASE("gradients are found by the names of parameters") {
  const Model model(1);
  Tape tape;
  const Var loss = sum(model(tape.constant(Tensor::ones({2, 3}))));
  const Gradients gradients = backward(loss);
  for (const nn::Parameter& each : model.parameters.all()) {
    CHECK(same_bits(gradients[each.name()], gradients[each.on(tape)]));
  }
  CHECK(gradients["second/bias"].at(0) == 2);
  CHECK_THROWS_AS(gradients["bias"], ArgumentError);
  CHECK_THROWS_WITH(gradients["bias"],
                    Contains("no parameter called 'bias'; use one of 'first/weight'") ||
                        Contains("no parameter called 'bias'; use one of 'first/bias'"));
  Tape other;
  const Var a = other.parameter(Tensor::ones({1}), "w");
  CHECK_THROWS_WITH(backward(a * other.parameter(Tensor::ones({1}), "w"))["w"],
                    Contains("several parameters are called 'w'"));
  CHECK_THROWS_WITH(backward(other.parameter(Tensor::ones({1})) + a)[""],
                    Contains("no parameter called ''"));
}

TEST_CASE("parameters are saved and loaded") {
  Model model(1), other(2);
  const TemporaryFile file;
  model.parameters.save(file.path());
  const nn::LoadResult result = other.parameters.load(file.path());
  CHECK(result.missing.empty());
  CHECK(result.unexpected.empty());
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(same_bits(other.parameters.all()[i].tensor(), model.parameters.all()[i].tensor()));
  }
}

TEST_CASE("parameters of another program are loaded by name and layout") {
  Model model;
  // As PyTorch names and lays them out.
  const NamedTensors given{{"first.weight", Tensor::arange(12, DType::f64).reshape({4, 3})},
                           {"first.bias", Tensor::ones({4}, DType::f64)},
                           {"head.weight", Tensor::ones({9})}};
  const nn::LoadOptions options{.name_of =
                                    [](const std::string& name) {
                                      std::string dotted = name;
                                      for (char& each : dotted) each = each == '/' ? '.' : each;
                                      return name.starts_with("second") ? std::string() : dotted;
                                    },
                                .layout =
                                    [](const std::string& name, const Tensor& tensor) {
                                      if (!name.ends_with("weight")) return tensor;
                                      Tape tape;
                                      return transpose(tape.constant(tensor)).value();
                                    },
                                .allow_unexpected = true};
  const Tensor before = model.second.weight.tensor().clone();
  const nn::LoadResult result = model.parameters.load(given, options);
  CHECK(result.unexpected == std::vector<std::string>{"head.weight"});
  CHECK(model.first.weight.tensor().at(1) == 3);  // row 0, column 1
  CHECK(model.first.weight.tensor().dtype() == DType::f32);
  CHECK(same_bits(model.second.weight.tensor(), before));
}

TEST_CASE("a file may have tensors of unknown dtypes that are not loaded") {
  const TemporaryFile file;
  nn::Parameters parameters;
  parameters.add("w", Tensor::zeros({1}));
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("q":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[4,8]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  file.write(bytes + header + std::string("\0\0\x80\x3f\1\2\3\4", 8));
  const nn::LoadResult result = parameters.load(file.path(), {.allow_unexpected = true});
  CHECK(result.unexpected == std::vector<std::string>{"q"});
  CHECK(parameters.named().at("w").at(0) == 1);
}

TEST_CASE("a file that does not fit changes nothing") {
  Model model;
  const Tensor before = model.first.weight.tensor().clone();
  NamedTensors given = Model(3).parameters.named();
  given.erase("second/bias");
  given["extra"] = Tensor::ones({2});
  CHECK_THROWS_WITH(model.parameters.load(given), Contains("missing: 'second/bias'") &&
                                                      Contains("unexpected: 'extra'") &&
                                                      Contains("allow_missing"));
  given = Model(3).parameters.named();
  given["second/bias"] = Tensor::ones({7});
  CHECK_THROWS_WITH(model.parameters.load(given),
                    Contains("f32 (7)") && Contains("f32 (2)") && Contains("second/bias"));
  CHECK(same_bits(model.first.weight.tensor(), before));
}

TEST_CASE("converting changes the dtype of parameters and floating states") {
  Model model;
  const nn::Parameter count = model.parameters.add_state("count", Tensor::zeros({}, DType::i64));
  model.parameters.convert(DType::bf16);
  CHECK(model.first.weight.tensor().dtype() == DType::bf16);
  CHECK(count.tensor().dtype() == DType::i64);
  CHECK_THROWS_AS(model.parameters.convert(DType::i32), DTypeError);
}

TEST_CASE("names that share a tensor still do when they are converted, in a scope or all") {
  nn::Parameters parameters(1);
  const Tensor shared = Tensor::vector({1, 2});
  const nn::Parameter first = (parameters / "a").add("first", shared);
  const nn::Parameter second = (parameters / "b").add("second", shared);
  const nn::Parameter other = (parameters / "b").add("other", Tensor::vector({1, 2}));
  (parameters / "a").convert(DType::f64);
  CHECK(first.tensor().dtype() == DType::f64);
  CHECK(first.tensor().raw() == second.tensor().raw());
  CHECK(other.tensor().dtype() == DType::f32);
  parameters.convert(DType::f32);
  CHECK(second.tensor().dtype() == DType::f32);
  CHECK(first.tensor().raw() == second.tensor().raw());
}

TEST_CASE("a tensor with two names counts once, and is trained once") {
  nn::Parameters parameters(1);
  const nn::Linear encoder(parameters / "encoder", 3, 3, {.bias = false});
  const nn::Linear decoder((parameters / "decoder").add("weight", encoder.weight.tensor()));
  CHECK(parameters.all().size() == 2);
  CHECK(parameters.elements() == 9);
  CHECK(parameters.bytes() == 36);
  REQUIRE(parameters.tensors().size() == 1);
  CHECK(parameters.tensors()[0].raw() == encoder.weight.tensor().raw());
  const std::vector<Tensor> batch{Tensor::normal({4, 3}, 3)};
  const auto loss = [&](Tape&, std::span<const Var>, std::span<const Var> x) {
    return LossAndOutputs(mean(square(decoder(tanh(encoder(x[0]))))));
  };
  for (const int parts : {1, 2}) {
    Execution execution({.accumulation = parts});
    const Gradients gradients = execution.gradients(loss, parameters.tensors(), batch);
    CHECK(gradients.entries().size() == 1);
    CHECK_NOTHROW(adam()->step(gradients));
  }
  const Tensor empty({0}, DType::f32);
  parameters.add("none", empty);
  parameters.add("nothing", empty);
  CHECK(parameters.tensors().size() == 3);
}

TEST_CASE("names that share a tensor are loaded from equal tensors only") {
  nn::Parameters parameters(1);
  const Tensor shared = Tensor::zeros({2});
  parameters.add("a", shared);
  parameters.add("b", shared);
  const Tensor ones = Tensor::ones({2}), wide = Tensor::ones({2}, DType::f64);
  CHECK_THROWS_WITH(
      parameters.load(NamedTensors{{"a", ones}, {"b", Tensor::vector({1, 2})}}),
      Contains("'a' and 'b' differ") && Contains("one tensor") && Contains("name_of"));
  CHECK(same_bits(shared, Tensor::zeros({2})));
  parameters.load(NamedTensors{{"a", ones}, {"b", wide}});
  CHECK(same_bits(shared, ones));
  parameters.load(NamedTensors{{"b", Tensor::zeros({2})}}, {.allow_missing = true});
  CHECK(same_bits(shared, Tensor::zeros({2})));
  parameters.load(parameters.named());
  CHECK_THROWS_AS(parameters.check_state({{"a", ones}, {"b", shared}}), ArgumentError);
}

TEST_CASE("names may share the elements of a tensor in different shapes") {
  const TemporaryFile file;
  nn::Parameters parameters(1);
  const Tensor matrix = Tensor::normal({3, 4}, 1);
  const nn::Parameter a = (parameters / "x").add("a", matrix);
  const nn::Parameter b = (parameters / "y").add("b", matrix.reshape({12}));
  CHECK(parameters.elements() == 12);
  CHECK(parameters.bytes() == 48);
  const Tensor before = matrix.clone();
  parameters.load(parameters.named());
  parameters.save(file.path());
  parameters.load(file.path());
  parameters.load_state(parameters.state());
  CHECK(same_bits(matrix, before));
  const Tensor ones = Tensor::ones({3, 4});
  CHECK_THROWS_AS(parameters.load({{"x/a", ones}, {"y/b", before.reshape({12})}}), ArgumentError);
  CHECK_THROWS_AS(parameters.check_state({{"x/a", ones}, {"y/b", before.reshape({12})}}),
                  ArgumentError);
  parameters.load({{"x/a", ones}, {"y/b", ones.reshape({12})}});
  CHECK(same_bits(matrix, ones));

  (parameters / "x").convert(DType::f64);
  CHECK(b.tensor().type() == ValueType{{12}, DType::f64});
  CHECK(a.tensor().raw() == b.tensor().raw());
  (parameters / "y").freeze();
  CHECK_FALSE(a.is_trainable());

  // A part of a tensor is another parameter, although it begins at the same place.
  const Tensor row(matrix.buffer(), Shape{4}, DType::f32);
  nn::Parameters others(1);
  others.add("matrix", matrix);
  others.add("row", row);
  CHECK_NOTHROW(others.load(others.named()));
  CHECK(others.tensors().size() == 2);
}

TEST_CASE("names that share a tensor have a leaf of the first name") {
  nn::Parameters parameters(1);
  const Tensor shared = Tensor::ones({2});
  const nn::Parameter first = (parameters / "encoder").add("weight", shared);
  const nn::Parameter second = (parameters / "decoder").add("weight", shared);
  Tape tape;
  const Var leaf = second.on(tape);
  CHECK(tape.name(leaf.node()) == "encoder/weight");
  CHECK(second.name() == "decoder/weight");
  CHECK(first.on(tape) == leaf);
}

TEST_CASE("names and handles that cannot be are errors") {
  Model model;
  CHECK_THROWS_WITH(nn::Linear(model.parameters / "first", 3, 4),
                    Contains("two parameters 'first/weight'"));
  CHECK_THROWS_WITH(model.parameters / "", Contains("not empty"));
  CHECK_THROWS_WITH(model.parameters / "a/b", Contains("no '/'"));
  CHECK_THROWS_WITH(model.parameters["first/wieght"], Contains("use one of 'first/bias'"));
  CHECK_THROWS_AS(model.parameters.add("ids", Tensor::zeros({2}, DType::i64)), DTypeError);
  CHECK_THROWS_AS(model.parameters.add("none", Tensor()), ArgumentError);
  CHECK_THROWS_AS(nn::Parameters(0, DType::i32), DTypeError);
  Tape tape;
  CHECK_THROWS_WITH(nn::Parameter().on(tape), Contains("empty"));
}

TEST_CASE("parameters are loaded from tensors of the same model") {
  nn::Parameters parameters(3);
  for (int k = 0; k < 3; ++k) parameters.add("l" + std::to_string(k), Tensor::full({1}, k));
  parameters.load(parameters.named(), {.name_of = [](const std::string& name) -> std::string {
                    return name == "l0" ? "l2" : name == "l1" ? "l0" : "l1";
                  }});
  CHECK(parameters["l0"].tensor().at(0) == 2);
  CHECK(parameters["l1"].tensor().at(0) == 0);
  CHECK(parameters["l2"].tensor().at(0) == 1);
}

TEST_CASE("a training part takes the parameters of a model, also after they are converted") {
  const TemporaryFile file;
  Model saved(1);
  save_training(file.path(), {{"model", saved.parameters}});
  Model loaded(2);
  load_training(file.path(), {{"model", loaded.parameters}});
  for (const auto& [name, tensor] : saved.parameters.named()) {
    CHECK(same_bits(tensor, loaded.parameters[name].tensor()));
  }
  const TrainingPart part("model", loaded.parameters);
  loaded.parameters.convert(DType::f64);
  CHECK(part.state().at("first/weight").dtype() == DType::f64);
  CHECK_THROWS_AS(load_training(file.path(), {part}), FileError);
  CHECK_THROWS_AS(part.check_state(saved.parameters.named()), DTypeError);
  CHECK_THROWS_WITH(part.check_state({}), Contains("missing") || Contains("no entry"));
}

TEST_CASE("a scope without parameters is not frozen silently") {
  Model model;
  CHECK_THROWS_WITH((model.parameters / "frist").freeze(),
                    Contains("no parameter has a name that begins with 'frist/'"));
  CHECK_NOTHROW(nn::Parameters(1).freeze());
}

TEST_CASE("a summary lists parameters with their types") {
  Model model;
  (model.parameters / "second").freeze();
  CHECK_THAT(model.parameters.summary(), Contains("first/weight   f32 (3, 4)\n") &&
                                             Contains("second/bias    f32 (2)  frozen") &&
                                             Contains("16 trainable elements, 104 B in all"));
}

}  // namespace palimpsest::parameters_test
