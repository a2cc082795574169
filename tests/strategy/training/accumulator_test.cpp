#include "strategy/training/accumulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::accumulator_test {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using Sizes = std::vector<std::int64_t>;

Tensor rows(const Tensor& of, std::int64_t first, std::int64_t count) {
  Tensor some({count, of.shape()[1]}, of.dtype());
  const std::int64_t row = of.bytes() / of.shape()[0];
  std::memcpy(some.raw(), of.raw() + first * row, static_cast<std::size_t>(count * row));
  return some;
}

/// Two layers and 30 examples.
struct Network {
  explicit Network(DType dtype_of_all) : dtype(dtype_of_all) {}

  DType dtype;
  Tensor w1 = Tensor::normal({6, 8}, 1, 0, 0.5, dtype);
  Tensor b1 = Tensor::normal({8}, 2, 0, 0.5, dtype);
  Tensor w2 = Tensor::normal({8, 3}, 3, 0, 0.5, dtype);
  Tensor inputs = Tensor::normal({30, 6}, 4, 0, 1, dtype);
  Tensor wanted = Tensor::normal({30, 3}, 5, 0, 1, dtype);

  /// Squared errors of `count` examples from `first` on.
  Var errors(Tape& tape, std::int64_t first, std::int64_t count) const {
    const auto scope = tape.scope("network");
    const Var x = tape.constant(rows(inputs, first, count));
    const Var hidden = tanh(matmul(x, tape.parameter(w1, "w1")) + tape.parameter(b1, "b1"));
    const Var out = matmul(hidden, tape.parameter(w2, "w2"));
    const Var error = out - tape.constant(rows(wanted, first, count));
    return error * error;
  }

  Gradients gradients(Tape& tape, std::int64_t first, std::int64_t count, bool by_sum) const {
    tape.clear();
    const Var all = errors(tape, first, count);
    return backward(by_sum ? sum(all) : mean(all));
  }

  /// One update from micro-batches of these sizes; returns the result of the last step.
  bool accumulate(GradientAccumulator& accumulator, Tape& tape, const Sizes& sizes,
                  bool by_sum = false) const {
    std::int64_t first = 0;
    bool due = false;
    for (const std::int64_t count : sizes) {
      CHECK_FALSE(due);
      due = accumulator.step(gradients(tape, first, count, by_sum), count);
      first += count;
    }
    return due;
  }
};

double largest(const Tensor& x) {
  double most = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) most = std::max(most, std::abs(x.at(i)));
  return most;
}

/// The difference between two results, relative to the largest element of each parameter.
double distance(const Gradients& a, const Gradients& b) {
  double most = std::abs(a.loss().item() - b.loss().item()) / std::abs(b.loss().item());
  REQUIRE(a.entries().size() == b.entries().size());
  for (std::size_t i = 0; i < b.entries().size(); ++i) {
    const Tensor& x = a.entries()[i].gradient;
    const Tensor& y = b.entries()[i].gradient;
    REQUIRE(x.type() == y.type());
    for (std::int64_t e = 0; e < x.elements(); ++e) {
      most = std::max(most, std::abs(x.at(e) - y.at(e)) / largest(y));
    }
  }
  return most;
}

const std::vector<Sizes> equal_sizes = {{30}, {15, 15}, {10, 10, 10}, {6, 6, 6, 6, 6}};
const std::vector<Sizes> unequal_sizes = {{30}, {19, 11}, {1, 7, 22}, {1, 2, 3, 4, 20}};

TEST_CASE("micro-batches give the gradient of the whole batch") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  const double tolerance = dtype == DType::f64 ? 1e-14 : dtype == DType::f32 ? 3e-6 : 6e-2;
  const Network network(dtype);
  Tape tape, own;
  const auto check = [&](const Sizes& sizes, GradientNormalization normalization, bool by_sum) {
    const Gradients whole = network.gradients(own, 0, 30, by_sum);
    GradientAccumulator accumulator(
        {.steps = static_cast<int>(sizes.size()), .normalization = normalization});
    CHECK(network.accumulate(accumulator, tape, sizes, by_sum));
    CHECK(distance(accumulator.gradients(), whole) <= tolerance);
    CHECK(accumulator.statistics().effective_batch == 30);
  };
  for (const Sizes& sizes : equal_sizes) {
    check(sizes, GradientNormalization::mean, false);
    check(sizes, GradientNormalization::sum, true);
    check(sizes, GradientNormalization::weighted, false);
  }
  for (const Sizes& sizes : unequal_sizes) {
    check(sizes, GradientNormalization::weighted, false);
    check(sizes, GradientNormalization::sum, true);
  }
}

TEST_CASE("one micro-batch and equal ones have the bits that they should") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  const Network network(dtype);
  Tape tape, own;
  const auto same = [](const Gradients& a, const Gradients& b) {
    return same_bits(a.loss(), b.loss()) &&
           std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
             return same_bits(x.gradient, y.gradient);
           });
  };
  for (const auto normalization :
       {GradientNormalization::sum, GradientNormalization::mean, GradientNormalization::weighted}) {
    GradientAccumulator accumulator({.normalization = normalization});
    network.accumulate(accumulator, tape, {7});
    CHECK(same(accumulator.gradients(), network.gradients(own, 0, 7, false)));
  }
  GradientAccumulator by_mean({.steps = 3});
  GradientAccumulator by_weight({.steps = 3, .normalization = GradientNormalization::weighted});
  network.accumulate(by_mean, tape, {7, 7, 7});
  network.accumulate(by_weight, own, {7, 7, 7});
  CHECK(same(by_mean.gradients(), by_weight.gradients()));
}

TEST_CASE("gradients of 16 bits are rounded once, at the end") {
  GradientAccumulator accumulator({.steps = 5, .normalization = GradientNormalization::sum});
  accumulator.register_parameter("p", {{1}, DType::bf16});
  // In bf16, 256 + 1 is 256.
  accumulator.step({{"p", Tensor::full({1}, 256, DType::bf16)}});
  for (int i = 0; i < 4; ++i) accumulator.step({{"p", Tensor::full({1}, 1, DType::bf16)}});
  CHECK(accumulator.gradient("p").at(0) == 260);
  CHECK(accumulator.gradient("p").dtype() == DType::bf16);
}

TEST_CASE("every element of a long gradient is added, and counts in the norm") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t n = 100'003;
  const Tensor x = Tensor::normal({n}, 1, 0, 1, dtype);
  const Tensor y = Tensor::normal({n}, 2, 0, 1, dtype);
  GradientAccumulator accumulator({.steps = 2, .normalization = GradientNormalization::sum});
  accumulator.register_parameter("p", {{n}, dtype});
  accumulator.step({{"p", x}});
  accumulator.step({{"p", y}});
  const DType wide = compute_dtype(dtype);
  double square = 0;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Tensor sum = Tensor::scalar(x.at(i) + y.at(i), wide);
    square += sum.item() * sum.item();
    wrong += accumulator.gradient("p").at(i) != sum.to(dtype).item();
  }
  CHECK(wrong == 0);
  CHECK_THAT(accumulator.norm(), WithinRel(std::sqrt(square), 1e-12));
}

TEST_CASE("what optimizers make of micro-batches is what they make of whole batches") {
  const auto train = [](const std::vector<Sizes>& updates, double clip_norm) {
    Network network(DType::f64);
    const auto optimizer = adam({.learning_rate = 0.05});
    Tape tape;
    for (const Sizes& sizes : updates) {
      GradientAccumulator accumulator({.steps = static_cast<int>(sizes.size()),
                                       .normalization = GradientNormalization::weighted,
                                       .clip_norm = clip_norm});
      network.accumulate(accumulator, tape, sizes);
      optimizer->step(accumulator.gradients());
    }
    return network;
  };
  const auto train_whole = [](std::size_t updates, double clip_norm) {
    Network network(DType::f64);
    const auto optimizer = adam({.learning_rate = 0.05});
    Tape tape;
    for (std::size_t i = 0; i < updates; ++i) {
      const Gradients gradients = network.gradients(tape, 0, 30, false);
      clip_by_norm(gradients, clip_norm);
      optimizer->step(gradients);
    }
    return network;
  };
  for (const double clip_norm : {0.25, 1e9}) {
    std::vector<Sizes> updates;
    for (int i = 0; i < 8; ++i) {
      for (const Sizes& sizes : unequal_sizes) updates.push_back(sizes);
    }
    const Network by_parts = train(updates, clip_norm);
    const Network by_all = train_whole(updates.size(), clip_norm);
    const Network untrained(DType::f64);
    CHECK_FALSE(same_bits(by_all.w1, untrained.w1));
    const auto close = [](const Tensor& a, const Tensor& b) {
      for (std::int64_t i = 0; i < a.elements(); ++i) {
        CHECK_THAT(a.at(i), WithinAbs(b.at(i), 1e-12));
      }
    };
    close(by_parts.w1, by_all.w1);
    close(by_parts.b1, by_all.b1);
    close(by_parts.w2, by_all.w2);
  }
}

TEST_CASE("a runner's gradients are accumulated, and one accumulator serves every update") {
  const Network network(DType::f64);
  Var x;
  const Program program = Program::gradients([&](Tape& tape) {
    x = tape.constant(rows(network.inputs, 0, 10), "x");
    return mean(tanh(matmul(x, tape.parameter(network.w1))));
  });
  Runner runner(program);
  GradientAccumulator accumulator({.steps = 3});
  runner.bind(x, rows(network.inputs, 0, 10));
  Tensor expected;
  for (int update = 0; update < 3; ++update) {
    for (int part = 0; part < 3; ++part) {
      runner.bind(x, rows(network.inputs, part * 10, 10));
      runner.run();
      CHECK(accumulator.step(runner.gradients()) == (part == 2));
    }
    if (update == 0) expected = accumulator.gradient("parameter 0").clone();
    CHECK(same_bits(accumulator.gradients().entries()[0].gradient, expected));
    accumulator.reset();
  }
  Tape tape;
  const Var all = mean(tanh(matmul(tape.constant(network.inputs), tape.parameter(network.w1))));
  const Gradients whole = backward(all);
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    CHECK_THAT(expected.at(i), WithinRel(whole.entries()[0].gradient.at(i), 1e-12));
  }
}

TEST_CASE("a runner's gradients of one place are added to each sum, and are the runner's") {
  const auto program = Program::gradients([](Tape& tape) {
    const Var b1 = tape.parameter(Tensor::full({5}, 0.3, DType::f64));
    const Var b2 = tape.parameter(Tensor::full({5}, 0.4, DType::f64));
    return sum(tanh(tape.parameter(Tensor::full({5}, 0.5, DType::f64))) * (b1 + b2));
  });
  Runner runner(program);
  GradientAccumulator copies({.steps = 2});
  GradientAccumulator takes({.steps = 2, .clip_norm = 0.1});
  GradientAccumulator takes_whole({.steps = 2});
  runner.run();
  const Gradients held = runner.gradients();
  const Tensor before = held.entries()[0].gradient.clone();
  for (int part = 0; part < 2; ++part) {
    runner.run();
    copies.step(runner.gradients());
    takes.step_taking(runner.gradients());
    takes_whole.step_taking(runner.gradients());
  }
  for (int i = 0; i < 3; ++i) {
    const std::string name = "parameter " + std::to_string(i);
    CHECK(same_bits(takes_whole.gradient(name), copies.gradient(name)));
    CHECK(takes.gradient(name).at(0) < copies.gradient(name).at(0));
  }
  CHECK(same_bits(held.entries()[0].gradient, before));
  CHECK(same_bits(runner.gradients().entries()[0].gradient, before));
}

/// Two registered parameters, one of them in 16 bits.
GradientAccumulator two_parameters(AccumulatorOptions options) {
  GradientAccumulator accumulator(options);
  accumulator.register_parameter("w", {{2}, DType::f64});
  accumulator.register_parameter("b", {{}, DType::bf16});
  return accumulator;
}

NamedTensors two_gradients(double w0, double w1, double b) {
  return {{"w", Tensor::from({w0, w1}, {2})}, {"b", Tensor::scalar(b, DType::bf16)}};
}

TEST_CASE("the norm is that of all normalised gradients, and clipping scales them to it") {
  GradientAccumulator accumulator = two_parameters({.steps = 2, .clip_norm = 6.5});
  accumulator.step(two_gradients(1, 5, 20));
  CHECK(accumulator.step(two_gradients(5, 3, 4)));
  CHECK(accumulator.norm() == 13);  // the norm of 3, 4, 12
  CHECK_THAT(accumulator.gradient("w").at(0), WithinAbs(1.5, 1e-15));
  CHECK_THAT(accumulator.gradient("w").at(1), WithinAbs(2, 1e-15));
  CHECK(accumulator.gradient("b").item() == 6);
  CHECK(accumulator.norm() == 13);

  accumulator.reset();
  accumulator.step(two_gradients(0, 3, 4));
  CHECK(accumulator.norm() == 5);  // below the limit; the norm of one micro-batch instead of two
  CHECK(accumulator.gradient("b").item() == 4);

  GradientAccumulator sums =
      two_parameters({.steps = 2, .normalization = GradientNormalization::sum});
  sums.step(two_gradients(1, 5, 20));
  sums.step(two_gradients(5, 3, 4));
  CHECK(sums.norm() == 26);

  GradientAccumulator weighted =
      two_parameters({.steps = 2, .normalization = GradientNormalization::weighted});
  weighted.step(two_gradients(4, 8, 0), 1);
  weighted.step(two_gradients(0, 0, 16), 3);
  CHECK(weighted.norm() == std::sqrt(1 + 4 + 144.0));
  CHECK(weighted.gradient("w").at(1) == 2);
}

TEST_CASE("an update can be looked at midway, and goes on") {
  for (const double clip : {std::numeric_limits<double>::infinity(), 6.5}) {
    const AccumulatorOptions options{.steps = 3, .clip_norm = clip};
    GradientAccumulator accumulator = two_parameters(options);
    GradientAccumulator untouched = two_parameters(options);
    CHECK(accumulator.statistics().accumulation_steps == 3);
    for (const int part : {1, 2, 3}) {
      CHECK_FALSE(accumulator.should_update());
      for (GradientAccumulator* each : {&accumulator, &untouched}) {
        each->step(two_gradients(5 * part, 3, 4 * part));
      }
      if (part == 3) break;
      // The result of an update with only these micro-batches.
      GradientAccumulator alone = two_parameters({.steps = part, .clip_norm = clip});
      for (int k = 1; k <= part; ++k) alone.step(two_gradients(5 * k, 3, 4 * k));
      CHECK(accumulator.norm() == alone.norm());
      const Tensor w = accumulator.gradient("w");
      CHECK(same_bits(w, alone.gradient("w")));
      CHECK(same_bits(accumulator.gradient("b"), alone.gradient("b")));
      w.data<double>()[0] = 1e9;  // the caller owns the tensor
      CHECK(accumulator.statistics().updates == 0);
    }
    CHECK(accumulator.should_update());
    CHECK(accumulator.norm() == untouched.norm());
    CHECK(same_bits(accumulator.gradient("w"), untouched.gradient("w")));
    CHECK(same_bits(accumulator.gradient("b"), untouched.gradient("b")));
    CHECK_FALSE(accumulator.should_update());
    CHECK(accumulator.statistics().updates == 1);
    accumulator.reset();
    CHECK_FALSE(accumulator.should_update());
  }
}

TEST_CASE("gradients given one by one make up a micro-batch") {
  GradientAccumulator one_by_one = two_parameters({.steps = 2});
  GradientAccumulator whole = two_parameters({.steps = 2});
  for (const double x : {0.1, 0.7}) {
    const NamedTensors gradients = two_gradients(x, -x, 3 * x);
    for (const char* name : {"w", "b"}) one_by_one.accumulate(name, gradients.at(name));
    CHECK(one_by_one.step() == (x == 0.7));
    whole.step(gradients);
  }
  CHECK(same_bits(one_by_one.gradient("w"), whole.gradient("w")));
  CHECK(same_bits(one_by_one.gradient("b"), whole.gradient("b")));
}

TEST_CASE("statistics count what was done") {
  GradientAccumulator accumulator =
      two_parameters({.steps = 2, .normalization = GradientNormalization::weighted});
  CHECK(accumulator.statistics().parameters == 2);
  CHECK(accumulator.statistics().elements == 3);
  CHECK(accumulator.statistics().buffers == 2 * 8 + 4 + 2);
  CHECK(accumulator.statistics().effective_batch == 0);
  for (int update = 0; update < 3; ++update) {
    accumulator.step(two_gradients(1, 2, 3), 5);
    CHECK(accumulator.micro_batches() == 1);
    accumulator.step(two_gradients(1, 2, 3), 6);
    accumulator.norm();
    accumulator.norm();
    accumulator.reset();
  }
  CHECK(accumulator.micro_batches() == 0);
  CHECK(accumulator.statistics().micro_batches == 6);
  CHECK(accumulator.statistics().updates == 3);
  CHECK(accumulator.statistics().effective_batch == 11);
  accumulator.step(two_gradients(1, 2, 3), 4);
  accumulator.reset();
  CHECK(accumulator.statistics().micro_batches == 7);
  CHECK(accumulator.statistics().updates == 3);
}

TEST_CASE("buffers serve again unless somebody holds them") {
  GradientAccumulator accumulator = two_parameters({});
  const auto update = [&](double x) {
    accumulator.reset();
    accumulator.step(two_gradients(x, x, x));
    return std::pair(accumulator.gradient("w"), accumulator.gradient("b"));
  };
  const std::byte* const w = update(1).first.raw();
  const std::byte* const b = update(2).second.raw();
  CHECK(update(3).first.raw() == w);
  CHECK(update(3).second.raw() == b);
  const auto held = update(4);
  const auto later = update(5);
  CHECK(held.first.at(0) == 4);
  CHECK(held.second.item() == 4);
  CHECK(later.first.at(0) == 5);
  CHECK(later.second.item() == 5);
  // An accumulator accepts its own results.
  accumulator.reset();
  accumulator.step({{"w", later.first}, {"b", later.second}});
  CHECK(accumulator.gradient("w").at(1) == 5);
}

TEST_CASE("accumulating takes the memory of a micro-batch and of the buffers") {
  constexpr std::int64_t examples = 512;
  const Tensor weight = Tensor::normal({64, 64}, 1, 0, 0.1);
  const Tensor inputs = Tensor::normal({examples, 64}, 2);
  const auto record = [&](Tape& tape, std::int64_t first, std::int64_t count) {
    tape.clear();
    Var state = tape.constant(rows(inputs, first, count));
    for (int layer = 0; layer < 6; ++layer) {
      state = tanh(matmul(state, tape.parameter(weight.clone())));
    }
    return backward(mean(state * state));
  };
  Tape tape;
  const Bytes whole = record(tape, 0, examples).report().measured_peak;
  const Bytes micro_batch = record(tape, 0, examples / 8).report().measured_peak;
  GradientAccumulator accumulator({.steps = 8});
  for (std::int64_t part = 0; part < 8; ++part) {
    accumulator.step(record(tape, part * examples / 8, examples / 8));
  }
  const Bytes buffers = accumulator.statistics().buffers;
  CHECK(buffers == 6 * weight.bytes());
  CHECK(accumulator.gradients().report().measured_peak == micro_batch);
  CHECK(2 * (micro_batch + buffers) < whole);
  // The report is that of the micro-batch with the largest peak.
  accumulator.reset();
  for (const std::int64_t count : {16, 64, 32}) accumulator.step(record(tape, 0, count));
  CHECK(accumulator.gradients().report().measured_peak == micro_batch);
  // A micro-batch is not held, so the next one can reuse its memory.
  const Gradients last = record(tape, 0, examples / 8);
  const auto holders = last.entries()[0].gradient.buffer().use_count();
  accumulator.reset();
  accumulator.step(last);
  CHECK(last.entries()[0].gradient.buffer().use_count() == holders);
}

TEST_CASE("norms hold where squares of f64 overflow or vanish") {
  for (const double scale : {1e200, 1e-200, 1e-310}) {
    const Tensor v = Tensor::from<double>({3 * scale, 4 * scale}, {2});
    GradientAccumulator accumulator({.steps = 1, .clip_norm = scale});
    accumulator.register_parameter("v", {{2}, DType::f64});
    accumulator.step(NamedTensors{{"v", v}});
    CHECK_THAT(accumulator.norm(), WithinRel(5 * scale, 1e-12));
    CHECK_THAT(accumulator.gradient("v").at(0), WithinRel(0.6 * scale, 1e-12));
    CHECK_THAT(clip_by_norm(std::vector<Tensor>{v}, scale), WithinRel(5 * scale, 1e-12));
    CHECK_THAT(v.at(1), WithinRel(0.8 * scale, 1e-12));
  }
}

}  // namespace
}  // namespace palimpsest::accumulator_test
