#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/bytes.h"

namespace palimpsest {

/// One stage of a chain: it reads what the stage before it made and nothing else. All peaks are
/// bytes live while it runs, without its input and what is held for other stages.
struct ChainStage {
  /// A way of running the stage so that its backward can follow.
  struct Record {
    double forward = 0;      ///< seconds
    double backward = 0;     ///< seconds of its backward
    Bytes saved = 0;         ///< bytes held from the one to the other, the output included
    Bytes forward_peak = 0;  ///< the saved bytes and any workspace; no less than `saved`
    /// The saved bytes, the gradient of the output, that of the input and any workspace; no less
    /// than `saved` and `gradient`, or what the stage before has as `gradient`.
    Bytes backward_peak = 0;
  };

  double forward = 0;      ///< seconds of a pass that saves nothing but the output
  Bytes output = 0;        ///< bytes of what the next stage reads
  Bytes forward_peak = 0;  ///< of such a pass: the output and any workspace
  /// Bytes of the output's gradient, and of whatever else the backward of later stages leaves.
  Bytes gradient = 0;
  std::vector<Record> records;  ///< one or more
};

/// Something done to a stage.
struct ChainOperation {
  enum class Kind : std::uint8_t {
    pass,      ///< forward, saving the output only; the input is dropped if it is held on its own
    pass_on,   ///< the same, keeping the input
    record,    ///< forward by one of the stage's records, keeping the input
    backward,  ///< backward: drops what was saved, the output's gradient and the input
  };
  Kind kind;
  std::uint32_t stage;
  std::uint32_t record = 0;  ///< which of the stage's records

  bool operator==(const ChainOperation&) const = default;
};

struct ChainUse {
  double cost = 0;  ///< seconds of all operations
  Bytes peak = 0;   ///< most bytes live; the input of the first stage does not count
};

/// Throws `ArgumentError` for a chain without stages, a stage without records, and for sizes and
/// times that contradict what `ChainStage` says.
void check_chain(std::span<const ChainStage> stages);

/// Carries out `operations` on a chain and measures them. The gradient of the last stage's output
/// is live from the start. Throws `ScheduleError` naming the first operation that reads what is not
/// live, or makes what is, and when not every stage is reversed, or something is left over.
ChainUse run_chain(std::span<const ChainStage> stages, std::span<const ChainOperation> operations);

}  // namespace palimpsest
