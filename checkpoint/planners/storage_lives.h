#pragma once

#include <vector>

#include "checkpoint/planners/stages.h"

namespace palimpsest {

/// Where a storage is made and read.
struct StorageLife {
  Bytes bytes = 0;
  std::uint32_t made = none;    ///< by which stage; none when no stage makes it
  std::uint32_t reach = 0;      ///< the last stage whose forward or backward part makes or reads it
  std::uint32_t lowest = none;  ///< the lowest stage whose backward part makes or reads it
  bool backward = false;        ///< made by the backward part
  bool target = false;          ///< live to the end
  bool held = false;            ///< made by the forward part, and never recomputed
  bool dropped = false;         ///< before the backward part, to be recomputed there
  // For walks over the nodes of a stage: the walk that met it, and the last node that reads it.
  std::uint32_t seen = 0;
  std::uint32_t last_use = 0;

  /// True when a later stage reads it.
  bool crosses(std::uint32_t stage) const { return reach > stage; }
  /// True when it stays from the forward part of the stage that makes it to its backward part.
  bool is_saved(std::uint32_t stage) const {
    return !dropped && (crosses(stage) || lowest != none);
  }
};

/// The lives of all storages, and what is live between stages.
class StorageLives {
 public:
  explicit StorageLives(const Stages& stages);

  StorageLife& operator[](ValueId value) { return lives_[stages_.graph().storage(value)]; }

  /// Bytes that the stages up to `stage` make for later ones.
  Bytes output(std::uint32_t stage) const { return output_[stage]; }
  /// Bytes of them that cross all of `stage`.
  Bytes through(std::uint32_t stage) const { return through_[stage]; }
  /// Bytes that the backward part of later stages leaves for `stage` and those before it, including
  /// held storages.
  Bytes gradient(std::uint32_t stage) const { return gradient_[stage]; }

  /// Calls `f` for the storages of a node's outputs.
  template <class F>
  void for_made(NodeId node, F f) {
    const Graph& graph = stages_.graph();
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      f((*this)[graph.first_output(node) + i]);
    }
  }
  /// Calls `f` for the storages that a node creates, without those of views.
  template <class F>
  void for_own(NodeId node, F f) {
    const Graph& graph = stages_.graph();
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      const ValueId value = graph.first_output(node) + i;
      if (graph.storage(value) == value) f(lives_[value]);
    }
  }
  /// Calls `f` for the storages of a node's inputs and outputs.
  template <class F>
  void for_all(NodeId node, F f) {
    for (const ValueId input : stages_.graph().inputs(node)) f((*this)[input]);
    for_made(node, f);
  }

 private:
  void find();
  void count_between_stages(const StorageLife& life);

  const Stages& stages_;
  std::uint32_t count_;
  std::vector<StorageLife> lives_;  // by root value
  std::vector<Bytes> output_;
  std::vector<Bytes> through_;
  std::vector<Bytes> gradient_;
};

}  // namespace palimpsest
