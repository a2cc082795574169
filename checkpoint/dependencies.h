#pragma once

#include <span>
#include <vector>

#include "checkpoint/layout.h"

namespace palimpsest {

/// What executing a schedule takes in addition to its layout: for each step the interval it opens
/// or closes, and which steps must have finished before it may start.
///
/// Edges are of two kinds. Data: a step that reads a storage follows the one that wrote it. Memory:
/// a step that opens an interval follows whatever last occupied any of its addresses, or read what
/// it takes over, and a drop follows every reader. Hence any order that respects the edges, on any
/// number of threads, computes the same bits and never occupies more than the layout.
class Dependencies {
 public:
  /// `layout` is one of `schedule`.
  Dependencies(const Graph& graph, const Schedule& schedule, const Layout& layout);

  std::uint32_t step_count() const { return static_cast<std::uint32_t>(steps_.size()); }
  /// Steps that wait for `step`.
  std::span<const std::uint32_t> successors(std::uint32_t step) const;
  /// How many steps `step` waits for.
  std::uint32_t predecessor_count(std::uint32_t step) const { return steps_[step].predecessors; }
  /// Intervals of the layout that a compute step opens for its outputs; workspace is not among
  /// them.
  std::span<const std::uint32_t> opened(std::uint32_t step) const;
  /// The interval of a compute step's workspace, or `none`.
  std::uint32_t workspace(std::uint32_t step) const { return steps_[step].workspace; }
  /// The interval a drop closes, or `none` while another value still holds the storage, or where
  /// another interval has taken it over.
  std::uint32_t closed(std::uint32_t step) const { return steps_[step].closed; }

 private:
  class Builder;
  struct StepInfo {
    std::uint32_t predecessors = 0;
    std::uint32_t first_successor = 0;
    std::uint32_t first_opened = 0;
    std::uint32_t workspace = none;
    std::uint32_t closed = none;
  };
  std::vector<StepInfo> steps_;
  std::vector<std::uint32_t> successors_;
  std::vector<std::uint32_t> opened_;
};

}  // namespace palimpsest
