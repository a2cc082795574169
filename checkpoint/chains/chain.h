#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/bytes.h"

namespace palimpsest {

/// One stage of a chain. It reads only the output of the previous stage. All peaks are bytes live
/// while it runs, without its input and what is held for other stages.
struct ChainStage {
  /// A way of running the stage so that its backward pass can follow.
  struct Record {
    double forward = 0;      ///< seconds
    double backward = 0;     ///< seconds of its backward pass
    Bytes saved = 0;         ///< bytes held between the two, including the output
    Bytes forward_peak = 0;  ///< including the saved bytes and any workspace; at least `saved`
    /// The saved bytes, the gradients of the output and of the input, and any workspace. At least
    /// `saved` plus `gradient`, and at least the previous stage's `gradient`.
    Bytes backward_peak = 0;
  };

  double forward = 0;      ///< seconds of a pass that saves nothing but the output
  Bytes output = 0;        ///< bytes of what the next stage reads
  Bytes forward_peak = 0;  ///< peak of such a pass: the output and any workspace
  /// Bytes of the output's gradient, and of anything else that the backward pass of later stages
  /// leaves.
  Bytes gradient = 0;
  std::vector<Record> records;  ///< one or more
};

/// An operation on a stage.
struct ChainOperation {
  enum class Kind : std::uint8_t {
    pass,      ///< forward, saving the output only; drops the input if it is held on its own
    pass_on,   ///< forward, saving the output only; keeps the input
    record,    ///< forward by one of the stage's records; keeps the input
    backward,  ///< backward: drops the saved bytes, the output's gradient and the input
  };
  Kind kind;
  std::uint32_t stage;
  std::uint32_t record = 0;  ///< index of the stage's record

  bool operator==(const ChainOperation&) const = default;
};

struct ChainUse {
  double cost = 0;  ///< seconds of all operations
  Bytes peak = 0;   ///< most bytes live; the input of the first stage does not count
};

/// Throws `ArgumentError` for a chain without stages, a stage without records, and for sizes and
/// times that contradict `ChainStage`.
void check_chain(std::span<const ChainStage> stages);

/// Runs `operations` on a chain and measures them. The gradient of the last stage's output is live
/// from the start. Throws `ScheduleError` naming the first operation that reads what is not live,
/// or makes what is live already. Also throws it when a stage is not reversed, or something is left
/// over.
ChainUse run_chain(std::span<const ChainStage> stages, std::span<const ChainOperation> operations);

}  // namespace palimpsest
