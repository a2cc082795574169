// Turns bytes into a tape program, a mode and a budget. Its gradients within the budget must have
// the same bits as with keep-all, and its peak must stay below the prediction and the budget.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/planners/eviction.h"
#include "checkpoint/schedule.h"
#include "palimpsest.h"

namespace palimpsest {
namespace {

class Bytestream {
 public:
  explicit Bytestream(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  /// Returns 0 once the bytes are used up.
  std::size_t next() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// All of these shapes broadcast with each other.
const std::array<Shape, 5> shapes{Shape{4, 4}, Shape{4, 1}, Shape{1, 4}, Shape{}, Shape{16, 4, 4}};

bool is_matrix(const Var& x) {
  return x.rank() >= 2 && x.shape().size(-1) == 4 && x.shape().size(-2) == 4;
}

/// An operation with two outputs, the second of which is read twice.
Var split_and_meet(const Var& x) {
  const std::int64_t last = x.shape().size(-1);
  const std::vector<Var> parts = split(x, {1, last - 1}, -1);
  return parts[0] * parts[1] + sum(parts[1], {-1}, true);
}

Var record_one(std::size_t kind, const Var& a, const Var& b) {
  switch (kind % 16) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return tanh(a);
    case 4:
      return relu(a);
    case 5:
      return exp(a * 0.1);
    case 6:
      return a.rank() == 0 ? a : sum(a, {-1}, true);
    case 7:
      return a.shape().elements() % 4 == 0 ? reshape(a, {-1, 4}) : a;
    case 8:
      return is_matrix(a) && is_matrix(b) ? matmul(a, b) : a * 0.5;
    case 9:
      return a.rank() == 0 ? tanh(a) : softmax(a);
    case 10:
      return stop_gradient(a);
    case 11:
      return checkpoint([](const Var& x, const Var& y) { return tanh(x * y) + x; }, a, b);
    case 12:
      return dropout(a, 0.3);
    case 13:
      return a.rank() < 2 ? a : transpose(a);
    case 14:
      return a.rank() == 0 || a.shape().size(-1) == 1 ? a : split_and_meet(a);
    default:
      return a.rank() == 0 ? a : slice(a, -1, {.step = -1});
  }
}

/// Whether the shapes of `a` and `b` broadcast. A reshape can produce shapes that do not.
bool broadcasts(const Var& a, const Var& b) {
  try {
    broadcast(a.shape(), b.shape(), "fuzz", Where::current());
    return true;
  } catch (const ShapeError&) {
    return false;
  }
}

Var record(Tape& tape, Bytestream program) {
  std::vector<Var> values;
  for (const Shape& shape : shapes) {
    values.push_back(tape.parameter(Tensor::uniform(shape, values.size(), -1, 1)));
  }
  for (int steps = 0; !program.empty() && steps < 200; ++steps) {
    const std::size_t kind = program.next();
    const Var& a = values[program.next() % values.size()];
    const Var& b = values[program.next() % values.size()];
    if (broadcasts(a, b)) values.push_back(record_one(kind, a, b));
  }
  Var loss = sum(values.back());
  for (const Var& value : values) loss = loss + sum(tanh(value));
  return loss;
}

void require(bool holds, const char* promise) {
  if (holds) return;
  std::cerr << "broken promise: " << promise << '\n';
  std::abort();
}

/// One of the many orders that `automatic` considers. Much cheaper, so that the fuzzer tries more
/// programs.
class OneOrder final : public Planner {
 public:
  explicit OneOrder(std::size_t byte) : byte_(byte) {}
  std::string name() const override { return "one order"; }
  std::string key() const override { return name() + std::to_string(byte_); }

  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    const Eviction eviction(graph);
    const Bytes range = eviction.highest_level() - eviction.lowest_level();
    const Bytes level = eviction.lowest_level() + range * static_cast<Bytes>(byte_) / 255;
    const auto order = eviction.run(level, 8 * graph.node_count() + 64);
    return {order ? drop_after_last_use(graph, *order)
                  : keep_all()->propose(graph, 0).front().schedule};
  }

 private:
  std::size_t byte_;
};

PlannerPtr choose_planner(Bytestream& settings) {
  const std::size_t kind = settings.next();
  const std::size_t level = settings.next();
  switch (kind % 16) {
    case 0:
      return automatic();
    case 1:
      return square_root();
    case 2:
      return uniform({.segments = 3});
    default:
      return std::make_shared<OneOrder>(level);
  }
}

Gradients run_within(const Var& loss, RunOptions options) {
  try {
    return backward(loss, options);
  } catch (const BudgetError& error) {
    require(error.smallest_feasible() > options.memory_budget, "an infeasible budget is too small");
    options.memory_budget = error.smallest_feasible();
    return backward(loss, options);
  }
}

void run(std::span<const std::uint8_t> bytes) {
  Bytestream settings(bytes.first(5));
  const Bytestream program(bytes.subspan(5));

  Tape reference_tape;
  const Gradients reference = backward(record(reference_tape, program), {.threads = 1});

  Tape tape(settings.next() % 4 == 0 ? eager() : lazy());
  const Var loss = record(tape, program);
  RunOptions options{.planner = choose_planner(settings)};
  options.threads = 1 + static_cast<int>(settings.next() % 2);
  const Bytes keep_all_peak = plan_backward(loss, {}).predicted_peak();
  options.memory_budget = keep_all_peak * static_cast<Bytes>(settings.next()) / 255;
  const Gradients gradients = run_within(loss, options);

  const Report& report = gradients.report();
  require(report.measured_peak <= report.predicted_peak, "measured peak is at most predicted");
  require(report.predicted_peak <= report.budget, "predicted peak is at most the budget");
  require(same_bits(gradients.loss(), reference.loss()), "the loss has the same bits");
  require(gradients.entries().size() == reference.entries().size(), "every parameter is there");
  for (std::size_t i = 0; i < reference.entries().size(); ++i) {
    require(same_bits(gradients.entries()[i].gradient, reference.entries()[i].gradient),
            "gradients have the same bits");
  }
}

}  // namespace
}  // namespace palimpsest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 6) return -1;
  palimpsest::run({data, size});
  return 0;
}
