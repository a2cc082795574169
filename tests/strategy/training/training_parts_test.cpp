#include "strategy/training/training_parts.h"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest.h"
#include "strategy/training/plateau_schedule.h"
#include "strategy/training/rate_schedule.h"
#include "strategy/training/weight_average.h"
#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace palimpsest::training_parts_test {
namespace {

using Catch::Matchers::Contains;

/// A training run with everything that has state. Each object is a process that may be killed.
struct Run {
  explicit Run(const std::optional<Precision>& precision)
      : tape(precision ? std::shared_ptr<Evaluator>(precise(*precision)) : lazy()) {
    if (precision) {
      // Overflows at first, and grows again after two steps.
      scaler.emplace(LossScalerOptions{.scale = 0x1p24, .interval = 2});
    }
    tape.set_seed(7);
  }

  std::vector<TrainingPart> parts() {
    std::vector<TrainingPart> parts = {{"parameters", parameters}, {"optimizer", *optimizer},
                                       {"random", tape},           {"plateau", plateau},
                                       {"average", average},       {"swa", equal}};
    if (scaler) parts.emplace_back("scaler", *scaler);
    return parts;
  }

  void step() {
    const auto batch = static_cast<std::uint64_t>(integer_at(position, "batch"));
    tape.clear();
    const Var x = tape.constant(Tensor::uniform({8, 4}, batch, -1, 1));
    const Var w = tape.parameter(parameters.at("w"), "w");
    const Var b = tape.parameter(parameters.at("b"), "b");
    const Var hidden = dropout(tanh(matmul(x, w) + b), 0.5);
    const Var loss = mean(square(hidden - uniform(tape, hidden.shape())));
    optimizer->set_learning_rate(plateau.rate() * schedule(integer_at(position, "batch")));
    if (scaler) {
      const Gradients gradients = backward(scaler->scale(loss));
      if (scaler->unscale(gradients)) optimizer->step(gradients);
      plateau.observe(scaler->loss());
    } else {
      const Gradients gradients = backward(loss);
      optimizer->step(gradients);
      plateau.observe(gradients.loss().item());
    }
    average.update(parameters);
    if (batch >= 3) equal.update(parameters);
    position.insert_or_assign("batch", static_cast<std::int64_t>(batch + 1));
  }

  NamedTensors parameters{{"w", Tensor::normal({4, 5}, 1, 0, 0.5)}, {"b", Tensor::zeros({5})}};
  std::unique_ptr<Optimizer> optimizer =
      adamw({.groups = {{.matches = names_ending({"b"}), .weight_decay = 0}}});
  Tape tape;
  RateSchedule schedule = warm_up({.steps = 4}, cosine_decay({.rate = 0.3, .steps = 8}));
  PlateauSchedule plateau{{.rate = 1, .factor = 0.5, .patience = 1}};
  WeightAverage average =
      WeightAverage::exponential({.decay = 0.9, .start = AverageStart::corrected});
  WeightAverage equal = WeightAverage::equal();
  std::optional<LossScaler> scaler;
  DataPosition position{{"batch", 0}, {"shard", "first"}};
};

/// Everything that the run would save, by name.
NamedTensors all_of(Run& run) {
  NamedTensors all;
  for (const TrainingPart& part : run.parts()) {
    for (const auto& [name, tensor] : part.state()) all.emplace(part.name() + "/" + name, tensor);
  }
  return all;
}

TEST_CASE("a run that is killed and resumed has the bits of one that is not") {
  const TemporaryFile file;
  for (const auto& precision :
       {std::optional<Precision>(), std::optional(Precision{.half = DType::f16})}) {
    Run whole(precision);
    for (int i = 0; i < 10; ++i) whole.step();
    for (const int killed_after : {0, 1, 5, 9}) {
      {
        Run first(precision);
        for (int i = 0; i < killed_after; ++i) first.step();
        save_training(file.path(), first.parts(), first.position);
      }
      Run second(precision);
      second.tape.set_seed(0);
      second.position = load_training(file.path(), second.parts());
      CHECK(text_at(second.position, "shard") == "first");
      for (int i = killed_after; i < 10; ++i) second.step();
      const NamedTensors found = all_of(second);
      const NamedTensors expected = all_of(whole);
      REQUIRE(found.size() == expected.size());
      for (const auto& [name, tensor] : expected) {
        CAPTURE(name, killed_after, precision.has_value());
        CHECK(same_bits(found.at(name), tensor));
      }
    }
    if (whole.scaler) {
      CHECK(whole.scaler->skipped() > 0);
      CHECK(whole.scaler->growths() > 0);
      CHECK(whole.optimizer->steps() < 10);
    }
  }
}

TEST_CASE("a program resumes its random streams at the generation that its tape is given") {
  const auto result_of = [](Runner& runner, const Program& program) {
    runner.run();
    return runner.value(program.outputs()[0]).clone();
  };
  const Program program =
      Program::values([&](Tape& tape) { return std::vector<Var>{uniform(tape, {4})}; });
  Runner whole(program);
  std::vector<Tensor> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(result_of(whole, program));
  const Program later = Program::values([&](Tape& tape) {
    tape.set_generation(2);
    return std::vector<Var>{uniform(tape, {4})};
  });
  Runner resumed(later);
  CHECK(same_bits(result_of(resumed, later), expected[2]));
  CHECK(same_bits(result_of(resumed, later), expected[3]));
  CHECK_FALSE(same_bits(expected[2], expected[3]));
}

/// The message of the `FileError` that loading gives.
std::string refusal(const std::string& path, const std::vector<TrainingPart>& parts) {
  try {
    load_training(path, parts);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("files that do not fit are errors, and change nothing") {
  const TemporaryFile file;
  Run saved({});
  for (int i = 0; i < 3; ++i) saved.step();
  save_training(file.path(), saved.parts(), saved.position);
  const TrainingState good = read_training_state(file.path());

  Run run({});
  run.step();
  run.tape.clear();
  NamedTensors before;
  for (const auto& [name, tensor] : all_of(run)) before.emplace(name, tensor.clone());
  struct Row {
    std::function<void(TrainingState&)> change;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {[](TrainingState& s) { s.parts.erase("swa"); }, {"has no part 'swa'", "leave it out"}},
      {[](TrainingState& s) { s.parts["scaler"]; }, {"has a part 'scaler' that is not given"}},
      {[](TrainingState& s) { s.parts["optimizer"].erase("adamw/name/w/mean"); },
       {"part 'optimizer'", "'adamw/name/w/mean' of the state is missing"}},
      {[](TrainingState& s) { s.parts["parameters"].at("w") = Tensor::ones({4, 6}); },
       {"part 'parameters'", "f32 (4, 6) and must be f32 (4, 5)"}},
      {[](TrainingState& s) { s.parts["parameters"].emplace("c", Tensor::ones({1})); },
       {"'c'", "not among the given tensors"}},
      {[](TrainingState& s) { s.parts["parameters"].erase("b"); }, {"'b' of the state is missing"}},
      {[](TrainingState& s) { s.parts["random"].at("generation") = Tensor::scalar(1); },
       {"part 'random'", "must be i64"}},
      {[](TrainingState& s) { s.parts["swa"].emplace("average/x", Tensor::ones({1})); },
       {"part 'swa'", "'average/x'"}},
  };
  for (const Row& row : rows) {
    TrainingState state = good;
    row.change(state);
    write_training_state(file.path(), state);
    const std::string message = refusal(file.path(), run.parts());
    CAPTURE(message);
    CHECK_THAT(message, Contains(file.path()));
    for (const std::string& words : row.words) CHECK_THAT(message, Contains(words));
    for (const auto& [name, tensor] : all_of(run)) CHECK(same_bits(tensor, before.at(name)));
  }
  write_training_state(file.path(), good);
  run.tape.constant(Tensor::scalar(1));
  CHECK_THROWS_AS(load_training(file.path(), run.parts()), TapeError);
  for (const auto& [name, tensor] : all_of(run)) CHECK(same_bits(tensor, before.at(name)));
  run.tape.clear();
  load_training(file.path(), run.parts());
  CHECK(run.optimizer->steps() == 3);
}

TEST_CASE("nothing is loaded while a part is in use") {
  const TemporaryFile file;
  const Tensor weight = Tensor::normal({4, 4}, 1);
  const Tensor start = weight.clone();
  const NamedTensors tensors{{"w", weight}};
  std::function<void()> meanwhile;
  ExecutionStrategy strategy;
  strategy.run.progress = on_progress([&](const RunProgress&) {
    if (meanwhile != nullptr) meanwhile();
  });
  Execution execution(strategy);
  const auto optimizer = adam({.groups = {{.matches = [&](const ParameterInfo&) {
                                 if (meanwhile != nullptr) meanwhile();
                                 return true;
                               }}}});
  save_training(file.path(), {{"tensors", NamedTensors{{"w", Tensor::zeros({4, 4})}}},
                              {"execution", execution},
                              {"optimizer", *optimizer}});
  int refused = 0;
  const NamedTensors calls = execution.state();
  bool is_running = true;
  meanwhile = [&] {
    if (is_running) {
      CHECK_THROWS_WITH(execution.load_state(calls), Contains("Execution::load_state"));
      CHECK_THROWS_WITH(execution.check_state(calls), Contains("Execution::check_state"));
    }
    CHECK_THROWS_AS(
        load_training(file.path(),
                      {{"tensors", tensors}, {"execution", execution}, {"optimizer", *optimizer}}),
        TapeError);
    CHECK(same_bits(weight, start));
    ++refused;
  };
  const std::vector<Tensor> parameters{weight}, batch{Tensor::normal({8, 4}, 2)};
  const auto loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return LossAndOutputs(mean(square(matmul(b[0], p[0]))));
  };
  const Gradients gradients = execution.gradients(loss, parameters, batch);
  CHECK(std::exchange(refused, 0) > 0);
  is_running = false;
  optimizer->step(gradients);
  CHECK(refused > 0);
}

TEST_CASE("names of one tensor are loaded from equal elements only") {
  const Tensor shared = Tensor::zeros({2});
  const NamedTensors own{{"a", shared}, {"b", shared}};
  const TrainingPart part("tensors", own);
  const NamedTensors equal{{"a", Tensor::ones({2})}, {"b", Tensor::ones({2})}};
  const NamedTensors unequal{{"a", Tensor::ones({2})}, {"b", Tensor::vector({1, 2})}};
  CHECK_THROWS_WITH(part.check_state(unequal),
                    Contains("entry 'b'") && Contains("'a'") && Contains("one tensor"));
  CHECK_THROWS_AS(part.load_state(unequal), ArgumentError);
  CHECK(same_bits(shared, Tensor::zeros({2})));
  part.load_state(equal);
  CHECK(same_bits(shared, Tensor::ones({2})));
}

TEST_CASE("files of others and damaged files are errors that say so") {
  const TemporaryFile file;
  save_safetensors(file.path(), {{"w", Tensor::ones({2})}});
  CHECK_THAT(refusal(file.path(), {}), Contains("no 'format'") && Contains("load_safetensors"));
  const auto refusal_with = [&](const Metadata& metadata, const NamedTensors& tensors = {}) {
    save_safetensors(file.path(), tensors, metadata);
    return refusal(file.path(), {});
  };
  CHECK_THAT(refusal_with({{"format", "pt"}}), Contains("has the format 'pt'"));
  Metadata metadata{{"format", "palimpsest-training"}, {"version", "2"}, {"parts", "a"}};
  CHECK_THAT(refusal_with(metadata), Contains("version '2'"));
  metadata["version"] = "1";
  CHECK_THAT(refusal_with(metadata, {{"b/x", Tensor::ones({1})}}), Contains("'b/x'"));
  CHECK_THAT(refusal_with(metadata, {{"a", Tensor::ones({1})}}), Contains("belongs to no part"));
  metadata["integer:epoch"] = "three";
  CHECK_THAT(refusal_with(metadata), Contains("'three' as the number 'epoch'"));
  metadata.erase("parts");
  CHECK_THAT(refusal_with(metadata), Contains("no 'parts'"));

  Run run({});
  save_training(file.path(), run.parts());
  const std::string whole = file.read();
  for (std::size_t length = 0; length < whole.size(); length += 97) {
    file.write(whole.substr(0, length));
    CHECK_FALSE(refusal(file.path(), run.parts()).empty());
  }
}

TEST_CASE("an element that was changed in a training file is found by its checksum") {
  const TemporaryFile file;
  Run run({});
  save_training(file.path(), run.parts());
  const std::string whole = file.read();
  const NamedTensors tensors = load_safetensors(file.path());
  std::string damaged = whole;
  damaged[whole.size() - 5] = static_cast<char>(damaged[whole.size() - 5] ^ 1);
  file.write(damaged);
  CHECK_THAT(refusal(file.path(), run.parts()),
             Contains(file.path()) && Contains("has tensor '") &&
                 Contains("whose checksum is another: the file was damaged; load an earlier one"));

  // Files of earlier versions have no checksums.
  file.write(whole);
  SafetensorsFile old = load_safetensors_file(file.path());
  const auto checksums = std::erase_if(
      old.metadata, [](const auto& entry) { return entry.first.starts_with("xxh3"); });
  CHECK(checksums == tensors.size() + 1);
  save_safetensors(file.path(), old.tensors, old.metadata);
  CHECK_NOTHROW(load_training(file.path(), run.parts()));

  // A tensor of another dtype with the same bytes, and one that is missing.
  old = load_safetensors_file(file.path());
  old.metadata["xxh3:parameters/gone"] = "0123456789abcdef";
  save_safetensors(file.path(), old.tensors, old.metadata);
  CHECK_THAT(refusal(file.path(), run.parts()), Contains("the file was damaged"));
}

TEST_CASE("a changed bit of a training file is found, unless the file means the same") {
  const TemporaryFile file;
  const DataPosition position{{"batch", 128}, {"shard", "first"}};
  const NamedTensors saved{{"w", Tensor::ones({2})}};
  save_training(file.path(), {{"tensors", saved}}, position);
  const std::string whole = file.read();
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    file.write(damaged);
    const NamedTensors loaded{{"w", Tensor::zeros({2})}};
    try {
      const DataPosition found = load_training(file.path(), {{"tensors", loaded}});
      CAPTURE(bit);
      CHECK(found == position);
      CHECK(same_bits(loaded.at("w"), saved.at("w")));
      ++accepted;
    } catch (const FileError&) {  // as it should be
    }
  }
  CHECK(accepted < whole.size() / 4);

  const std::size_t number = whole.find("\"128\"");
  REQUIRE(number != std::string::npos);
  std::string damaged = whole;
  damaged[number + 1] = '2';
  file.write(damaged);
  CHECK_THAT(refusal(file.path(), {{"tensors", saved}}),
             Contains(file.path()) && Contains("position") && Contains("was damaged"));
}

TEST_CASE("the position in the data survives a file") {
  const TemporaryFile file;
  const DataPosition position{{"epoch", 3},
                              {"seed", std::numeric_limits<std::int64_t>::min()},
                              {"file", "a, \"b\"/ü"},
                              {"", ""}};
  save_training(file.path(), {}, position);
  const DataPosition loaded = load_training(file.path(), {});
  CHECK(loaded == position);
  CHECK(integer_at(loaded, "epoch") == 3);
  CHECK_THROWS_WITH(integer_at(loaded, "batch"),
                    Contains("'batch' is missing") && Contains("'epoch'"));
  CHECK_THROWS_WITH(integer_at(loaded, "file"), Contains("'file' is a text"));
  CHECK_THROWS_WITH(text_at(loaded, "epoch"), Contains("'epoch' is a number"));
}

TEST_CASE("parts that cannot be saved are errors") {
  const TemporaryFile file;
  const NamedTensors tensors{{"w", Tensor::ones({1})}};
  CHECK_THROWS_WITH(save_training(file.path(), {{"a", tensors}, {"a", tensors}}),
                    Contains("two parts are named 'a'"));
  CHECK_THROWS_WITH(save_training(file.path(), {{"a/b", tensors}}), Contains("without '/'"));
  CHECK_THROWS_WITH(TrainingPart("a", NamedTensors{{"w", Tensor()}}), Contains("'w' of part 'a'"));
  CHECK_THROWS_AS(save_training(file.path(), {{"a", tensors}}, {{"x", "\xff"}}), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::training_parts_test
