#pragma once

#include <span>
#include <vector>

#include "checkpoint/layout.h"

namespace palimpsest {

/// The executor's information in addition to a layout: the interval that each step opens or closes,
/// and the steps that must have finished before it may start.
///
/// Edges are of two kinds. Data: a step that reads a storage follows the step that wrote it.
/// Memory: a step that opens an interval follows the steps that last occupied any of its addresses,
/// and the readers of a storage that it takes over. A drop follows every reader. Hence any order
/// that respects the edges, on any number of threads, computes the same bits and never occupies
/// more than the layout.
class Dependencies {
 public:
  /// `layout` must be a layout of `schedule`.
  Dependencies(const Graph& graph, const Schedule& schedule, const Layout& layout);

  std::uint32_t step_count() const { return static_cast<std::uint32_t>(steps_.size()); }
  /// Steps that wait for `step`.
  std::span<const std::uint32_t> successors(std::uint32_t step) const;
  /// Number of steps that `step` waits for.
  std::uint32_t predecessor_count(std::uint32_t step) const { return steps_[step].predecessors; }
  /// Intervals of the layout that a compute step opens for its outputs, without its workspace.
  std::span<const std::uint32_t> opened(std::uint32_t step) const;
  /// The interval of a compute step's workspace, or `none`.
  std::uint32_t workspace(std::uint32_t step) const { return steps_[step].workspace; }
  /// The interval a drop closes. `none` while another value still holds the storage, or where
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
