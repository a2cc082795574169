#pragma once

#include <cstdint>

namespace palimpsest {

class Tape;

/// Decides when values of a tape are computed. The tape calls it; `strategy/` implements it.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// A node was appended; an eager evaluator computes it now. When this throws, the node is taken
  /// off the tape again.
  virtual void on_record(Tape& tape, std::uint32_t node) = 0;
  /// Makes `value` present on the tape.
  virtual void compute(Tape& tape, std::uint32_t value) = 0;
  /// The tape is about to forget its nodes and values, this evaluator, or both as it is destroyed.
  virtual void on_clear(Tape& tape) noexcept = 0;
};

}  // namespace palimpsest
