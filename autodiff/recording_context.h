#pragma once

#include <cstdint>
#include <memory>

#include "autodiff/error.h"

namespace palimpsest {

/// The scopes, source line and random streams of the nodes that a tape records next. Guards change
/// it while they exist, such as `Tape::Scope`, `Tape::NoGradient`, and those in
/// autodiff/recording_guards.h.
struct RecordingContext {
  /// Scopes, as texts of the tape's nodes.
  struct Scopes {
    std::uint32_t path = 0;   ///< all, joined by '/'
    std::uint32_t stage = 0;  ///< without those of modules and of differentiated nodes
    bool is_inherited = false;
  };
  Scopes scopes = {};
  const Where* blame = nullptr;  ///< recorded instead of the caller's line while not null
  bool is_blocked = false;       ///< no derivative flows through the nodes
  bool is_program = false;       ///< the nodes are run later, with other values of leaves
  bool is_temporary = false;     ///< the nodes are removed again; the evaluator is not notified

  std::uint64_t seed = 0;
  std::uint32_t generation = 0;  ///< calls of `Tape::clear`
  /// Random streams used in this generation. A tape that translates another one counts that one's.
  std::shared_ptr<std::uint32_t> own_streams = std::make_shared<std::uint32_t>(0);
  std::shared_ptr<std::uint32_t> shared_streams = nullptr;
  std::uint32_t part = 0;

  const std::shared_ptr<std::uint32_t>& streams() const {
    return shared_streams != nullptr ? shared_streams : own_streams;
  }
  void reset_streams() noexcept {
    shared_streams = nullptr;
    *own_streams = 0;
  }
};

}  // namespace palimpsest
