#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/export.h"
#include "checkpoint/chains/disk_costs.h"
#include "checkpoint/reverse/reverse_group.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How the driver keeps states.
enum class ReverseCodec : std::uint8_t {
  none,  ///< the bytes as they are
  zstd,  ///< lossless
  half,  ///< f64 as f32 and f32 as bf16
  zfp,   ///< numbers with an error of at most `ReverseOptions::tolerance`, by libzfp
};

/// How far a `ReverseDriver` is.
struct ReverseProgress {
  std::uint64_t steps = 0;           ///< of the chain; 0 while the length is unknown
  std::uint64_t steps_advanced = 0;  ///< so far, in this process
  std::uint64_t steps_reversed = 0;  ///< of the chain, also by earlier processes
  /// Part of the run that is done, from 0 to 1, also by earlier processes: of all calls of
  /// `advance` and `reverse`. Where states are kept by bytes, it is that of the steps that were
  /// made and reversed once. It is 0 while the length is unknown.
  double part = 0;
};

struct ReverseOptions {
  /// Number of steps; unknown if not given. `ReverseFunctions::done` then ends the chain.
  std::optional<std::uint64_t> steps = {};
  /// Bytes that the driver may take in addition to the caller's state, adjoint and accumulated
  /// objects: kept states, buffers, compression, tables, and the tape of `reverse_segment`.
  Bytes memory_budget = 1_GiB;
  /// Bytes of the tape that `reverse_segment` makes for each step. Required with it.
  Bytes tape_bytes_per_step = 0;
  /// The most bytes that a state can have, if some have more than the first one.
  Bytes largest_state = 0;
  /// States have different sizes. Then states are kept as long as their bytes fit, instead of a
  /// fixed number of them. More steps may be advanced again than with `largest_state` if sizes
  /// differ little. With a codec, set `largest_state` too.
  bool sizes_change = false;

  /// A directory for states that do not fit into memory. Empty: none. With `resume` it must be the
  /// same directory. Each state there takes less than 1 KiB of memory, which counts towards the
  /// budget. If the length is unknown, or sizes change, only the first 64 KiB of these do.
  std::string spill = {};
  /// Cost of writing and reading a state, in steps. If not given, the driver measures it once,
  /// unless all states are known to fit in memory.
  std::optional<DiskCosts> disk_costs = {};

  ReverseCodec codec = ReverseCodec::none;
  /// The largest error of each number, with `ReverseCodec::zfp`.
  double tolerance = 0;
  /// The shape of the arrays that a state consists of, slowest dimension first, with
  /// `ReverseCodec::zfp`. At most four dimensions. It compresses better the more it knows. Empty:
  /// the numbers are one row.
  std::vector<std::size_t> codec_shape = {};
  /// Number of segments that are reversed again from exact states, to estimate the error that a
  /// lossy codec causes in the result.
  int sampled_segments = 6;

  /// Compares each state that is made again with a hash. Throws `ArgumentError` naming the step
  /// that gave another state than before.
  bool check = false;

  /// A directory for a journal. If it contains one, the run continues from there. Empty: none.
  std::string resume = {};
  /// Names the program, its version and its step function. Required with `resume`. A journal with
  /// another tag is rejected.
  std::string tag = {};
  /// Time between two records of the journal. A longer time is taken where records cost more than a
  /// hundredth of it. Zero makes a record after each step.
  std::chrono::duration<double> record_every = std::chrono::seconds(30);
  /// Ends the run after this time, with a record from which the next run continues. Needs `resume`.
  std::optional<std::chrono::duration<double>> stop_after = {};
  /// Ends the run when a stop is requested: as `stop_after` does with `resume`, otherwise by
  /// `StoppedError`.
  std::stop_token stop = {};

  /// Called from time to time, at most 20 times a second, and at the end.
  std::function<void(const ReverseProgress&)> progress = {};

  /// The processes that run the same chain together, each with its part of the state:
  /// `reverse_ranks(world)` with MPI. Null: this process alone.
  std::shared_ptr<ReverseGroup> group = {};
};

/// The forecast of a run. Steps and traffic are exact if the length is known and states are kept in
/// slots of one size: without `sizes_change`, and without zstd or zfp in memory.
struct ReverseForecast {
  std::uint64_t steps = 0;                 ///< of the chain
  std::uint64_t steps_advanced_again = 0;  ///< calls of `advance` in addition to one per step
  std::uint64_t segment_steps = 1;         ///< steps that are reversed at once
  std::uint64_t states_in_memory = 0;      ///< at a time, at most
  Bytes bytes = 0;                         ///< of memory, at most
  std::uint64_t disk_writes = 0;           ///< of states
  std::uint64_t disk_reads = 0;
  Bytes bytes_written = 0;  ///< of states, before compression and without the journal
  Bytes bytes_read = 0;
  double step_seconds = 0;  ///< of one call of `advance`, measured; 0 if it was not needed
  double seconds = 0;       ///< of all calls of `advance` and of the disk, without `reverse`
};

/// Estimated error of one object in the result of a lossy run.
struct ObjectError {
  std::string name;  ///< `adjoint`, or the name of an accumulated object
  double norm = 0;   ///< 2-norm of the result
  double error = 0;  ///< estimated 2-norm of its error
  double relative() const { return norm > 0 ? error / norm : 0; }
};

/// What a run has taken. A run that continues another one counts only its own work, except for
/// `steps`.
struct ReverseReport {
  std::uint64_t steps = 0;                 ///< of the chain
  std::uint64_t steps_advanced = 0;        ///< calls of `advance`, with those for `errors`
                                           ///< and to measure the costs of the disk
  std::uint64_t steps_advanced_again = 0;  ///< for steps that were run before, without those
  std::uint64_t steps_reversed = 0;
  std::uint64_t states_in_memory = 0;  ///< at a time, at most
  Bytes budget = 0;
  Bytes peak_bytes = 0;  ///< of memory that counts towards the budget
  std::uint64_t disk_writes = 0;
  std::uint64_t disk_reads = 0;
  Bytes bytes_written = 0;  ///< to the file of states, including those of the journal
  Bytes bytes_read = 0;
  std::uint64_t records = 0;                ///< of the journal
  std::optional<std::uint64_t> resumed_at;  ///< step that was current when this run continued
  std::uint64_t states_repaired = 0;        ///< damaged states that were made from earlier ones
  bool finished = false;
  double seconds = 0;
  /// With a lossy codec: one for each object whose numbers are f64 or f32.
  std::vector<ObjectError> errors = {};
};

}  // namespace palimpsest
