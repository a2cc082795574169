#include <arkode/arkode_erkstep.h>
#include <nvector/nvector_serial.h>
#include <sundials/sundials_version.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

#include "autodiff/bytes.h"
#include "checkpoint/reverse/reverse.h"
#include "tests/catch.h"
#include "tests/checkpoint/solvers/sweep.h"
#include "tests/temporary_directory.h"

namespace reverse_sundials_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

#if SUNDIALS_VERSION_MAJOR < 7 || (SUNDIALS_VERSION_MAJOR == 7 && SUNDIALS_VERSION_MINOR < 1)
// The functions of SUNDIALS 6 under their names since version 7.1.
constexpr auto ARKodeReset = ERKStepReset;
constexpr auto ARKodeEvolve = ERKStepEvolve;
constexpr auto ARKodeFree = ERKStepFree;
constexpr auto ARKodeSetFixedStep = ERKStepSetFixedStep;
constexpr auto ARKodeSetUserData = ERKStepSetUserData;
#endif

void must(int flag) {
  if (flag < 0) throw std::runtime_error("SUNDIALS failed with " + std::to_string(flag));
}

/// A vector of SUNDIALS, whose numbers lie in one block of memory.
struct SerialVector {
  N_Vector vector;

  std::span<double> numbers() const {
    return {N_VGetArrayPointer(vector), static_cast<std::size_t>(N_VGetLength(vector))};
  }
  auto parts() const { return std::tuple(numbers()); }
};

using Three = std::array<double, 3>;

/// The Brusselator with three species, as in SUNDIALS' examples:
///
///     u' = a − (w + 1)·u + v·u²,  v' = w·u − v·u²,  w' = (b − w)/ε − w·u
///
/// ARKODE takes steps of one length by Zonneveld's explicit method of order four. Each step is a
/// call of its own, so the driver can go to any state. The loss is the sum of h·u² over all states
/// but the last one, and v of that.
class Brusselator {
 public:
  static constexpr double h = 0.01;
  static constexpr double epsilon = 0.1;

  explicit Brusselator(std::uint64_t steps) : steps_(steps) {
#if SUNDIALS_VERSION_MAJOR < 7
    must(SUNContext_Create(nullptr, &context_));
#else
    must(SUNContext_Create(SUN_COMM_NULL, &context_));
#endif
    state_.vector = N_VNew_Serial(3, context_);
    reset();
    table_ = ARKodeButcherTable_LoadERK(ARKODE_ZONNEVELD_5_3_4);
    arkode_ = ERKStepCreate(right_hand_side, 0, state_.vector, context_);
    must(ERKStepSetTable(arkode_, table_));
    must(ARKodeSetFixedStep(arkode_, h));
    must(ARKodeSetUserData(arkode_, this));
  }
  ~Brusselator() {
    ARKodeFree(&arkode_);
    ARKodeButcherTable_Free(table_);
    N_VDestroy(state_.vector);
    SUNContext_Free(&context_);
  }
  Brusselator(const Brusselator&) = delete;
  Brusselator& operator=(const Brusselator&) = delete;

  double a = 1;
  double b = 3.5;
  Three start = {1.2, 3.1, 3};
  double loss = 0;
  double gradient_a = 0;
  double gradient_b = 0;

  SerialVector& reset() {
    std::copy(start.begin(), start.end(), state_.numbers().begin());
    loss = gradient_a = gradient_b = 0;
    return state_;
  }

  void advance(N_Vector y, std::uint64_t step) {
    const double t = static_cast<double>(step) * h;
    double reached = 0;
    must(ARKodeReset(arkode_, t, y));
    must(ARKodeEvolve(arkode_, t + h, y, &reached, ARK_ONE_STEP));
  }

  /// The discrete adjoint of the Runge-Kutta method (Hager, 2000).
  void reverse(std::span<const double> y, Three& adjoint) {
    const auto stages = static_cast<std::size_t>(table_->stages);
    std::vector<Three> at(stages);
    std::vector<Three> slope(stages);
    std::vector<Three> back(stages);
    for (std::size_t i = 0; i < stages; ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        at[i][k] = y[k];
        for (std::size_t j = 0; j < i; ++j) at[i][k] += h * table_->A[i][j] * slope[j][k];
      }
      derive(at[i].data(), slope[i].data());
    }
    for (std::size_t i = stages; i-- > 0;) {
      Three seed;
      for (std::size_t k = 0; k < 3; ++k) {
        seed[k] = h * table_->b[i] * adjoint[k];
        for (std::size_t j = i + 1; j < stages; ++j) seed[k] += h * table_->A[j][i] * back[j][k];
      }
      back[i] = pull_back(at[i], seed);
    }
    for (const Three& one : back) {
      for (std::size_t k = 0; k < 3; ++k) adjoint[k] += one[k];
    }
    loss += h * y[0] * y[0];
    adjoint[0] += 2 * h * y[0];
  }

  Three seed(std::span<const double> y) {
    loss += y[1];
    return {0, 1, 0};
  }

  ReverseFunctions<SerialVector, Three> functions() {
    return {.advance = [this](SerialVector& y, std::uint64_t n) { advance(y.vector, n); },
            .reverse = [this](SerialVector& y, Three& adjoint,
                              std::uint64_t) { reverse(y.numbers(), adjoint); },
            .seed = [this](SerialVector& y) { return seed(y.numbers()); },
            .accumulated = {named("loss", loss), named("a", gradient_a), named("b", gradient_b)},
            .inputs = {named("parameter a", a), named("parameter b", b)}};
  }

  /// The loss alone, forward.
  double forward() {
    SerialVector& y = reset();
    for (std::uint64_t n = 0; n < steps_; ++n) {
      loss += h * y.numbers()[0] * y.numbers()[0];
      advance(y.vector, n);
    }
    seed(y.numbers());
    return loss;
  }

  std::vector<double> results(const Three& adjoint) const {
    return {loss, gradient_a, gradient_b, adjoint[0], adjoint[1], adjoint[2]};
  }

 private:
  void derive(const double* y, double* slope) const {
    const double u = y[0];
    const double v = y[1];
    const double w = y[2];
    slope[0] = a - (w + 1) * u + v * u * u;
    slope[1] = w * u - v * u * u;
    slope[2] = (b - w) / epsilon - w * u;
  }
  static int right_hand_side(sunrealtype, N_Vector y, N_Vector slope, void* self) {
    static_cast<const Brusselator*>(self)->derive(N_VGetArrayPointer(y), N_VGetArrayPointer(slope));
    return 0;
  }
  /// The adjoint of `derive`. Adds to the gradient of a and b.
  Three pull_back(const Three& y, const Three& seed) {
    const auto [u, v, w] = y;
    gradient_a += seed[0];
    gradient_b += seed[2] / epsilon;
    const double exchange = seed[0] - seed[1];
    return {exchange * (2 * u * v - w) - seed[0] - seed[2] * w, exchange * u * u,
            -exchange * u - seed[2] * (1 / epsilon + u)};
  }

  std::uint64_t steps_;
  SUNContext context_ = nullptr;
  SerialVector state_{};
  ARKodeButcherTable table_ = nullptr;
  void* arkode_ = nullptr;
};

}  // namespace

TEST_CASE("reverse, SUNDIALS: adjoint of 100,000 steps of ARKODE") {
  constexpr std::uint64_t steps = 100'000;
  Brusselator solver(steps);
  const ReverseFunctions<SerialVector, Three> functions = solver.functions();
  const std::vector<double> whole = solver.results(sweep(functions, solver.reset(), steps));

  const ReverseOptions options{.steps = steps, .memory_budget = 128_KiB};
  ReverseDriver driver(functions, options);
  const std::vector<double> found = solver.results(*driver.run(solver.reset()));
  CHECK(found == whole);
  CHECK(driver.report().peak_bytes <= options.memory_budget);
  CHECK(driver.report().steps_advanced_again > 0);
  CHECK(driver.report().steps_advanced_again ==
        driver.forecast(solver.reset()).steps_advanced_again);

  // In a direction of all parameters and numbers of the first state.
  const Three start = solver.start;
  const double difference = central_difference(
      [&](double by) {
        solver.a = 1 + by;
        solver.b = 3.5 - 2 * by;
        solver.start = {start[0] + by, start[1] - by, start[2] + 0.5 * by};
        return solver.forward();
      },
      1e-7);
  const double derivative = found[1] - 2 * found[2] + found[3] - found[4] + 0.5 * found[5];
  CAPTURE(found, difference, derivative);
  CHECK(std::abs(difference) > 1e-3);
  CHECK(std::abs(derivative / difference - 1) < 1e-5);
}

TEST_CASE("reverse, SUNDIALS: a run that was interrupted continues to the same bits") {
  constexpr std::uint64_t steps = 5'000;
  const TemporaryDirectory directory;
  Brusselator solver(steps);
  const std::vector<double> whole =
      solver.results(sweep(solver.functions(), solver.reset(), steps));
  std::stop_source source;
  ReverseOptions options{.steps = steps,
                         .memory_budget = 192_KiB,
                         .check = true,
                         .resume = directory.path(),
                         .tag = "Brusselator",
                         .stop = source.get_token()};
  std::uint64_t reversed = 0;
  ReverseFunctions<SerialVector, Three> functions = solver.functions();
  functions.reverse = [&](SerialVector& y, Three& adjoint, std::uint64_t) {
    solver.reverse(y.numbers(), adjoint);
    if (++reversed == steps / 3) source.request_stop();
  };
  REQUIRE(!ReverseDriver(functions, options).run(solver.reset()));

  options.stop = {};
  Brusselator another(steps);
  ReverseDriver rest(another.functions(), options);
  const std::vector<double> found = another.results(*rest.run(another.reset()));
  CHECK(found == whole);
  CHECK(rest.report().resumed_at.has_value());
}

}  // namespace reverse_sundials_test
