#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/bytes.h"
#include "checkpoint/reverse/reverse.h"
#include "tests/catch.h"
#include "tests/checkpoint/solvers/sweep.h"
#include "tests/temporary_directory.h"

namespace reverse_array_code_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

// Subroutines on arrays, as they are written in Fortran, for acoustic waves on a line of n cells
// with fixed ends. p is the pressure, q the one before, c = (v·τ/h)² the squared velocity of the
// medium, and d the damping near the ends.

void wave_step(int n, const double* c, const double* d, double source, double* p, double* q) {
  for (int i = 1; i < n - 1; ++i) {
    q[i] =
        ((2 * p[i] - (1 - d[i]) * q[i]) + c[i] * ((p[i - 1] - 2 * p[i]) + p[i + 1])) / (1 + d[i]);
  }
  q[n / 4] += source;
  for (int i = 0; i < n; ++i) {
    const double next = q[i];
    q[i] = p[i];
    p[i] = next;
  }
}

void wave_step_adjoint(int n, const double* c, const double* d, const double* p, double* p_adjoint,
                       double* q_adjoint, double* c_adjoint, double* work) {
  work[0] = work[n - 1] = 0;
  for (int i = 1; i < n - 1; ++i) {
    const double scaled = p_adjoint[i] / (1 + d[i]);
    c_adjoint[i] += scaled * ((p[i - 1] - 2 * p[i]) + p[i + 1]);
    work[i] = c[i] * scaled;
    p_adjoint[i] = q_adjoint[i] + 2 * scaled;
    q_adjoint[i] = -(1 - d[i]) * scaled;
  }
  for (int i = 1; i < n - 1; ++i) p_adjoint[i] += work[i - 1] - 2 * work[i] + work[i + 1];
}

/// The program that owns the arrays. Its state is two blocks of memory that never move. It measures
/// the pressure in one cell, and the loss is half the squared difference from recorded data.
class Program {
 public:
  using Blocks = std::vector<std::span<double>>;
  using Arrays = std::vector<std::vector<double>>;

  static constexpr int n = 24;
  static constexpr int receiver = 2 * n / 3;

  explicit Program(std::uint64_t steps)
      : c(n, 0.3), c_adjoint(n), damping_(n), p_(n), q_(n), work_(n), recorded_(steps + 1) {
    for (int i = 0; i < n; ++i) {
      const double depth = std::max(0, std::max(4 - i, i - (n - 5))) / 4.0;
      damping_[static_cast<std::size_t>(i)] = 0.2 * depth * depth;
    }
    for (std::uint64_t step = 0; step <= steps; ++step) {
      recorded_[step] = 0.4 * std::sin(0.21 * static_cast<double>(step));
    }
  }

  std::vector<double> c;
  std::vector<double> c_adjoint;
  double loss = 0;

  Blocks& reset() {
    for (std::size_t i = 0; i < n; ++i) {
      p_[i] = q_[i] = std::sin(0.4 * static_cast<double>(i)) * (i > 0 && i + 1 < n);
      c_adjoint[i] = 0;
    }
    loss = 0;
    blocks_ = {p_, q_};
    return blocks_;
  }

  ReverseFunctions<Blocks, Arrays> functions() {
    return {.advance =
                [this](Blocks& state, std::uint64_t step) {
                  wave_step(n, c.data(), damping_.data(), source(step), state[0].data(),
                            state[1].data());
                },
            .reverse =
                [this](Blocks& state, Arrays& adjoint, std::uint64_t step) {
                  const double* const p = state[0].data();
                  wave_step_adjoint(n, c.data(), damping_.data(), p, adjoint[0].data(),
                                    adjoint[1].data(), c_adjoint.data(), work_.data());
                  compare(p, step, adjoint[0]);
                },
            .seed =
                [this](Blocks& state) {
                  Arrays adjoint(2, std::vector<double>(n));
                  compare(state[0].data(), recorded_.size() - 1, adjoint[0]);
                  return adjoint;
                },
            .accumulated = {named("loss", loss), named("c_adjoint", c_adjoint)},
            .inputs = {named("c", c)}};
  }

  /// The loss alone, forward.
  double forward() {
    Blocks& state = reset();
    std::vector<double> unused(n);
    for (std::uint64_t step = 0; step + 1 < recorded_.size(); ++step) {
      compare(p_.data(), step, unused);
      wave_step(n, c.data(), damping_.data(), source(step), state[0].data(), state[1].data());
    }
    compare(p_.data(), recorded_.size() - 1, unused);
    return loss;
  }

 private:
  static double source(std::uint64_t step) {
    return 0.1 * std::cos(0.2 * static_cast<double>(step));
  }
  void compare(const double* p, std::uint64_t step, std::vector<double>& adjoint) {
    const double misfit = p[receiver] - recorded_[step];
    loss += 0.5 * misfit * misfit;
    adjoint[receiver] += misfit;
  }

  std::vector<double> damping_, p_, q_, work_, recorded_;
  Blocks blocks_;
};

}  // namespace

TEST_CASE("reverse, array code: adjoint of 100,000 steps of the wave equation") {
  constexpr std::uint64_t steps = 100'000;
  Program program(steps);
  const auto functions = program.functions();
  const Program::Arrays whole = sweep(functions, program.reset(), steps);
  const std::vector<double> gradient = program.c_adjoint;
  const double loss = program.loss;

  const TemporaryDirectory directory;
  for (const bool on_disk : {false, true}) {
    ReverseOptions options{.steps = steps, .memory_budget = 256_KiB};
    if (on_disk) {
      options.spill = directory.path();
      options.disk_costs = DiskCosts{20, 20};
      options.memory_budget = 5_MiB;
    }
    ReverseDriver driver(functions, options);
    const Program::Arrays found = *driver.run(program.reset());
    CHECK(found == whole);
    CHECK(program.c_adjoint == gradient);
    CHECK(program.loss == loss);
    CHECK(driver.report().peak_bytes <= options.memory_budget);
    CHECK(driver.report().steps_advanced_again > 0);
    CHECK((driver.report().disk_writes > 0) == on_disk);
  }

  double derivative = 0;
  const std::vector<double> middle = program.c;
  const auto direction = [](std::size_t i) { return std::cos(static_cast<double>(i * i)); };
  for (std::size_t i = 0; i < gradient.size(); ++i) derivative += direction(i) * gradient[i];
  const double difference = central_difference(
      [&](double by) {
        for (std::size_t i = 0; i < middle.size(); ++i) {
          program.c[i] = middle[i] + by * direction(i);
        }
        return program.forward();
      },
      1e-6);
  CAPTURE(derivative, difference);
  CHECK(std::abs(difference) > 1);
  CHECK(std::abs(derivative / difference - 1) < 1e-7);
}

}  // namespace reverse_array_code_test
