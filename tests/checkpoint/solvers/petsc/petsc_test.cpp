#include <petscts.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "autodiff/bytes.h"
#include "checkpoint/reverse/reverse.h"
#include "tests/catch.h"
#include "tests/checkpoint/solvers/sweep.h"

namespace reverse_petsc_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

void must(PetscErrorCode code) {
  if (code != 0) throw std::runtime_error("PETSc failed with " + std::to_string(code));
}

/// PETSc starts once in a process.
class Petsc {
 public:
  Petsc() { must(PetscInitializeNoArguments()); }
  ~Petsc() { PetscFinalize(); }
};

/// A sequential vector of PETSc, whose numbers lie in one block of memory. Asking for them tells
/// PETSc that they change.
struct SequentialVector {
  Vec vector;

  std::span<double> numbers() const {
    PetscInt size = 0;
    PetscScalar* values = nullptr;
    must(VecGetLocalSize(vector, &size));
    must(VecGetArray(vector, &values));
    const std::span<double> found(values, static_cast<std::size_t>(size));
    must(VecRestoreArray(vector, &values));
    return found;
  }
  auto parts() const { return std::tuple(numbers()); }
};

/// The van der Pol oscillator x' = y, y' = μ·(1 − x²)·y − x, by TS' Runge-Kutta method of order
/// four. TS itself makes the adjoint of a segment of steps, whose states it keeps in memory
/// (TSTrajectory). The loss is the first number of the last state.
class VanDerPol {
 public:
  static constexpr double h = 0.01;
  static constexpr double mu = 0.8;
  using Two = std::array<double, 2>;

  VanDerPol() {
    must(VecCreateSeq(PETSC_COMM_SELF, 2, &state_.vector));
    must(VecCreateSeq(PETSC_COMM_SELF, 2, &adjoint_.vector));
    must(MatCreateSeqDense(PETSC_COMM_SELF, 2, 2, nullptr, &jacobian_));
    stepper_ = make_stepper();
    taped_ = make_stepper();
    must(TSSetSaveTrajectory(taped_));
    TSTrajectory trajectory = nullptr;
    must(TSGetTrajectory(taped_, &trajectory));
    must(TSTrajectorySetType(trajectory, taped_, TSTRAJECTORYMEMORY));
    must(TSSetCostGradients(taped_, 1, &adjoint_.vector, nullptr));
  }
  ~VanDerPol() {
    TSDestroy(&stepper_);
    TSDestroy(&taped_);
    MatDestroy(&jacobian_);
    VecDestroy(&adjoint_.vector);
    VecDestroy(&state_.vector);
  }
  VanDerPol(const VanDerPol&) = delete;
  VanDerPol& operator=(const VanDerPol&) = delete;

  SequentialVector& reset(const Two& start = {1, 0.5}) {
    std::copy(start.begin(), start.end(), state_.numbers().begin());
    return state_;
  }

  void advance(SequentialVector& y, std::uint64_t step) {
    prepare(stepper_, step);
    must(TSSetSolution(stepper_, y.vector));
    must(TSStep(stepper_));
  }

  void reverse_segment(SequentialVector& y, Two& adjoint, std::uint64_t first, std::uint64_t last) {
    must(TSResetTrajectory(taped_));
    prepare(taped_, first);
    must(TSSetMaxSteps(taped_, static_cast<PetscInt>(last - first)));
    must(TSSolve(taped_, y.vector));
    std::copy(adjoint.begin(), adjoint.end(), adjoint_.numbers().begin());
    must(TSAdjointSolve(taped_));
    const std::span<const double> found = adjoint_.numbers();
    std::copy(found.begin(), found.end(), adjoint.begin());
  }

  ReverseFunctions<SequentialVector, Two> functions() {
    return {
        .advance = [this](SequentialVector& y, std::uint64_t n) { advance(y, n); },
        .reverse_segment = [this](SequentialVector& y, Two& adjoint, std::uint64_t first,
                                  std::uint64_t last) { reverse_segment(y, adjoint, first, last); },
        .seed = [](SequentialVector&) { return Two{1, 0}; }};
  }

 private:
  static void prepare(TS ts, std::uint64_t step) {
    must(TSSetTime(ts, static_cast<double>(step) * h));
    must(TSSetStepNumber(ts, 0));
    must(TSSetTimeStep(ts, h));
  }
  TS make_stepper() {
    TS ts = nullptr;
    must(TSCreate(PETSC_COMM_SELF, &ts));
    must(TSSetProblemType(ts, TS_NONLINEAR));
    must(TSSetType(ts, TSRK));
    must(TSRKSetType(ts, TSRK4));
    must(TSSetRHSFunction(ts, nullptr, right_hand_side, nullptr));
    must(TSSetRHSJacobian(ts, jacobian_, jacobian_, right_hand_jacobian, nullptr));
    must(TSSetMaxTime(ts, 1e9));
    must(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
    TSAdapt adapt = nullptr;
    must(TSGetAdapt(ts, &adapt));
    must(TSAdaptSetType(adapt, TSADAPTNONE));
    return ts;
  }
  static PetscErrorCode right_hand_side(TS, PetscReal, Vec state, Vec slope, void*) {
    const PetscScalar* y = nullptr;
    PetscScalar* f = nullptr;
    PetscCall(VecGetArrayRead(state, &y));
    PetscCall(VecGetArrayWrite(slope, &f));
    f[0] = y[1];
    f[1] = mu * (1 - y[0] * y[0]) * y[1] - y[0];
    PetscCall(VecRestoreArrayWrite(slope, &f));
    PetscCall(VecRestoreArrayRead(state, &y));
    return static_cast<PetscErrorCode>(0);
  }
  static PetscErrorCode right_hand_jacobian(TS, PetscReal, Vec state, Mat jacobian, Mat, void*) {
    const PetscScalar* y = nullptr;
    PetscScalar* entries = nullptr;
    PetscCall(VecGetArrayRead(state, &y));
    PetscCall(MatDenseGetArray(jacobian, &entries));  // by columns
    entries[0] = 0;
    entries[1] = -2 * mu * y[0] * y[1] - 1;
    entries[2] = 1;
    entries[3] = mu * (1 - y[0] * y[0]);
    PetscCall(MatDenseRestoreArray(jacobian, &entries));
    PetscCall(VecRestoreArrayRead(state, &y));
    PetscCall(MatAssemblyBegin(jacobian, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(jacobian, MAT_FINAL_ASSEMBLY));
    return static_cast<PetscErrorCode>(0);
  }

  SequentialVector state_{};
  SequentialVector adjoint_{};
  Mat jacobian_ = nullptr;
  TS stepper_ = nullptr;
  TS taped_ = nullptr;
};

void check_steps(std::uint64_t steps) {
  static const Petsc petsc;
  VanDerPol solver;
  // TS keeps five vectors of each step, each in a PETSc object.
  const ReverseOptions options{
      .steps = steps, .memory_budget = 96_KiB, .tape_bytes_per_step = 5 * 2_KiB};
  ReverseDriver driver(solver.functions(), options);
  const VanDerPol::Two adjoint = *driver.run(solver.reset());
  CHECK(driver.report().peak_bytes <= options.memory_budget);
  CHECK(driver.report().steps_advanced_again > 0);
  // The position along the orbit matters for long.
  const double difference = central_difference(
      [&](double by) {
        SequentialVector& y = solver.reset({1 + by, 0.5 - 2 * by});
        for (std::uint64_t n = 0; n < steps; ++n) solver.advance(y, n);
        return y.numbers()[0];
      },
      1e-6);
  const double derivative = adjoint[0] - 2 * adjoint[1];
  CAPTURE(derivative, difference);
  CHECK(std::abs(difference) > 1e-3);
  CHECK(std::abs(derivative / difference - 1) < 1e-6);
}

}  // namespace

TEST_CASE("reverse, PETSc: adjoint of 2,000 steps by TS and TSAdjoint") { check_steps(2'000); }

TEST_CASE("reverse, PETSc: adjoint of 100,000 steps by TS and TSAdjoint", "[.long]") {
  check_steps(100'000);
}

}  // namespace reverse_petsc_test
