#include <filesystem>
#include <vector>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/resumed_loop.h"
#include "tests/temporary_directory.h"

// Journals of loops at the same place on several tapes.

namespace palimpsest::loop_resume_parts_test {

using namespace palimpsest::tests;

namespace {

/// The gradients of a model whose layers are loops.
std::vector<Tensor> found_by_layers(LayerCheckpointing::Mode mode, const std::string& directory,
                                    const RunOptions& run) {
  LayerModel model;
  for (int layer = 0; layer < 4; ++layer) {
    model.layer.parameters.push_back({Tensor::full({10}, 0.1 * (layer + 1), DType::f64)});
  }
  model.layer.forward = [&](const Var& x, std::span<const Var> w, int) -> Var {
    return scan(
        x, 6, [&](const Var& u, const StepNumber&) { return sin(u + w[0]); },
        recorded_often({.memory_budget = 20'000, .resume = directory}));
  };
  LayerCheckpointing checkpointing{.mode = mode};
  if (mode == LayerCheckpointing::Mode::every) checkpointing.interval = 2;
  LayerCheckpointer layers(model, checkpointing, run);
  layers.forward(wave(10));
  const LayerGradients gradients = layers.backward([](const Var& y) { return sum(y * y); });
  std::vector<Tensor> found{gradients.input.clone()};
  for (int layer = 0; layer < 4; ++layer) {
    found.push_back(gradients.parameters[layers.parameter(layer, 0)].clone());
  }
  return found;
}

/// The sum of the gradients of micro-batches, each on a tape of its own.
Tensor found_by_parts(bool are_numbered, const std::string& directory, const RunOptions& run) {
  GradientAccumulator sums({.steps = 3});
  const Tensor speed = number(0.2);
  for (std::uint32_t part = 0; part < 3; ++part) {
    Tape tape;
    if (are_numbered) tape.set_part(part);
    const Var parameter = tape.parameter(speed);
    const Var u = tape.constant(wave(10 + part));
    const Var x = scan(
        u, 12, [&](const Var& x, const StepNumber&) { return ring_step(x, parameter); },
        recorded_often({.resume = directory}));
    sums.step(backward(sum(x * x), run));
  }
  return sums.gradients().entries()[0].gradient.clone();
}

/// Stops runs after so many steps until one ends. Returns the number of stops.
template <class Run>
int stop_until_ended(int steps, Run run) {
  int stops = 0;
  while (is_stopped_after(steps + stops % 5, [&](std::stop_token stop, auto progress) {
    run(RunOptions{.stop = std::move(stop), .progress = std::move(progress)});
  })) {
    REQUIRE(++stops < 200);
  }
  return stops;
}

}  // namespace

TEST_CASE("loops, resume: each stage of a LayerCheckpointer has journals of its own") {
  using Mode = LayerCheckpointing::Mode;
  for (const Mode mode : {Mode::every, Mode::none}) {
    const std::vector<Tensor> expected = found_by_layers(mode, "", {});
    const TemporaryDirectory directory(quick_folder());
    const int stops = stop_until_ended(
        13, [&](const RunOptions& run) { found_by_layers(mode, directory.path(), run); });
    CHECK(stops > 1);
    const std::vector<Tensor> found = found_by_layers(mode, directory.path(), {});
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(found[i], expected[i]));
    CHECK(std::filesystem::is_directory(directory.path() + "/palimpsest-part-3"));
  }
}

TEST_CASE("loops, resume: tapes of numbered parts have journals of their own") {
  const Tensor expected = found_by_parts(true, "", {});
  const TemporaryDirectory directory(quick_folder());
  const int stops = stop_until_ended(
      9, [&](const RunOptions& run) { found_by_parts(true, directory.path(), run); });
  CHECK(stops > 2);
  CHECK(same_bits(found_by_parts(true, directory.path(), {}), expected));
  // Without numbers, a process that starts again meets the journal of a later part.
  const TemporaryDirectory other(quick_folder());
  check_error(
      [&] {
        stop_until_ended(30,
                         [&](const RunOptions& run) { found_by_parts(false, other.path(), run); });
      },
      {"of another run",
       "name another directory, or give each tape of a batch's parts a number "
       "with Tape::set_part"});
}

}  // namespace palimpsest::loop_resume_parts_test
