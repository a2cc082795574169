#pragma once

#include <memory>
#include <mutex>

#include "strategy/compile/buffer_programs.h"
#include "strategy/loops/step_recorder.h"

namespace palimpsest {

/// The programs of a step, by number of threads and budget. For any number of threads.
class StepPrograms {
 public:
  /// `mutex` is that of the tape, which compiling changes for a while.
  StepPrograms(std::shared_ptr<Tape> tape, std::shared_ptr<std::mutex> mutex,
               BufferInterface interface);

  /// The cost of running a step once, planned within `budget`.
  Cost cost(Bytes budget = unlimited) const;
  /// Throws `BudgetError` when no plan fits.
  BufferProgramPtr get(int threads, Bytes budget = unlimited) const;
  /// A program whose runs throw `AnomalyError` at the first node that makes a NaN or an infinity.
  BufferProgramPtr looking_for_anomalies(int threads) const;
  /// The smallest budget found for which a plan fits.
  Bytes smallest(int threads) const;

  const Tape& tape() const { return *tape_; }
  /// To be locked while the tape is read.
  const std::shared_ptr<std::mutex>& mutex() const { return mutex_; }
  const BufferInterface& interface() const { return interface_; }

 private:
  /// The mutex must be locked.
  OrRefusal<BufferProgramPtr> find_or_compile(int threads, Bytes budget) const;

  /// The program that `get` returned last. Each run of a loop asks for it several times.
  struct Last {
    int threads;
    Bytes budget;
    BufferProgramPtr program;
  };
  std::shared_ptr<Tape> tape_;
  std::shared_ptr<std::mutex> mutex_;
  BufferInterface interface_;
  Cost cost_;
  mutable BufferPrograms programs_;
  mutable Last last_{};
};

/// The program of a recorded step: its next state and, if requested, its outputs.
BufferInterface program_of(const RecordedStep& step, bool with_outputs);
/// The program of its outputs alone.
BufferInterface program_of_outputs(const RecordedStep& step);

}  // namespace palimpsest
