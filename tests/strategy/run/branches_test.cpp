#include <oneapi/tbb/global_control.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::branches_test {
namespace {

/// A meeting point of two threads. Each call ends when another one has begun. It fails after a time
/// so long that no other cause explains it.
class Meeting {
 public:
  void expect(int calls) {
    const std::lock_guard lock(mutex_);
    expected_ = calls;
    begun_ = 0;
    failed_ = false;
  }
  void attend() {
    std::unique_lock lock(mutex_);
    const int mine = ++begun_;
    met_.notify_all();
    if (mine % 2 == 0 || mine >= expected_ || failed_) return;
    const auto is_met = [&] { return begun_ > mine || failed_; };
    if (!met_.wait_for(lock, std::chrono::seconds(20), is_met)) failed_ = true;
  }
  bool all_met() {
    const std::lock_guard lock(mutex_);
    return !failed_ && begun_ == expected_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable met_;
  int expected_ = 0;
  int begun_ = 0;
  bool failed_ = false;
};

/// x², in a meeting that needs two threads.
CustomOperation squares_of(Meeting& meeting) {
  const auto attending = [&meeting](auto compute) {
    return [&meeting, compute](const CustomCall& call) {
      meeting.attend();
      const auto x = call.inputs[0].data<double>();
      const auto y = call.outputs[0].data<double>();
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = compute(x[i]);
    };
  };
  const CustomOperation slope(
      {.name = "slope", .forward = attending([](double x) { return 2 * x; })});
  return CustomOperation(
      {.name = "square",
       .forward = attending([](double x) { return x * x; }),
       .vjp = [slope](const Pullback& p) { p.set(0, p.adjoint() * slope({p.input(0)})); }});
}

constexpr int branch_count = 4;

Var loss_of(Tape& tape, const CustomOperation& square) {
  Var loss;
  for (int k = 0; k < branch_count; ++k) {
    const Var p = tape.parameter(Tensor::full({200}, 1.0 + k, DType::f64));
    const Var one = sum(square({p}));
    loss = k == 0 ? one : loss + one;
  }
  return loss;
}

TEST_CASE("independent branches run at once in all kinds of memory") {
  const tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  Meeting meeting;
  const CustomOperation square = squares_of(meeting);
  for (const AllocationPolicy memory : {AllocationPolicy::minimal_peak, AllocationPolicy::standard,
                                        AllocationPolicy::pooled, AllocationPolicy::cached}) {
    for (const bool fuse : {true, false}) {
      INFO(name_of(memory) << (fuse ? ", fused" : ""));
      const RunOptions options{.threads = 2, .memory = memory, .fuse = fuse};
      Tape values(lazy(options));
      const Var loss = loss_of(values, square);
      meeting.expect(branch_count);
      CHECK(loss.item() == 200 * (1 + 4 + 9 + 16));
      CHECK(meeting.all_met());
      Tape gradients_too(lazy(options));
      meeting.expect(2 * branch_count);
      const Gradients gradients = backward(loss_of(gradients_too, square), options);
      CHECK(meeting.all_met());
      CHECK(gradients.report().measured_peak <= gradients.report().predicted_peak);
    }
  }
}

TEST_CASE("independent branches of a program run at once") {
  const tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  Meeting meeting;
  const CustomOperation square = squares_of(meeting);
  Runner runner(
      Program::gradients([&](Tape& tape) { return loss_of(tape, square); }, {.threads = 2}));
  for (int round = 0; round < 2; ++round) {
    meeting.expect(2 * branch_count);
    runner.run();
    CHECK(meeting.all_met());
  }
}

TEST_CASE("a budget with room for branches lets them run at once") {
  const tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  Meeting meeting;
  const CustomOperation square = squares_of(meeting);
  Tape tape;
  const Var loss = loss_of(tape, square);
  const Bytes serial = plan_backward(loss, {.threads = 1}).predicted_peak();
  meeting.expect(2 * branch_count);
  const Gradients gradients = backward(loss, {.memory_budget = 3 * serial, .threads = 2});
  CHECK(meeting.all_met());
  CHECK(gradients.report().measured_peak <= 3 * serial);
}

}  // namespace
}  // namespace palimpsest::branches_test
