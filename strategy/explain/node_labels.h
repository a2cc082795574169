#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/graph.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Lowered;

/// What users know of the nodes of a graph: operation, scope and name, and source line. Equal texts
/// are stored once. Does not refer to the tape.
class NodeLabels {
 public:
  /// Labels of the units of a lowered tape.
  static NodeLabels of(const Tape& tape, const Lowered& lowered);
  /// Labels of a graph that was read from a file. A name is an operation, and the scopes before it.
  static NodeLabels of(const Graph& graph);

  /// A hash of all names and source lines of a tape. Equal for tapes that have the same labels.
  static std::uint64_t hash_of(const Tape& tape);

  /// The operation, as in `exp`; those of a fused group are joined, as in `exp+multiply`.
  std::string_view operation(NodeId node) const { return texts_[nodes_[node][0]]; }
  /// Scope and name, as in `layer3/weight`; empty without either.
  std::string_view name(NodeId node) const { return texts_[nodes_[node][1]]; }
  /// As in `model.cpp:14`; empty where it is not known.
  std::string_view line(NodeId node) const { return texts_[nodes_[node][2]]; }
  /// As in `layer3/attention`; empty outside all scopes.
  std::string_view scope(NodeId node) const { return texts_[nodes_[node][3]]; }

  /// `operation name (line)` of a node, as far as known.
  std::string describe(NodeId node) const;

  /// The different texts. `indices` says which of them are a node's operation, name, line and
  /// scope.
  const std::vector<std::string>& texts() const { return texts_; }
  const std::array<std::uint32_t, 4>& indices(NodeId node) const { return nodes_[node]; }

  Bytes metadata_bytes() const;

 private:
  class Builder;

  std::vector<std::string> texts_;
  std::vector<std::array<std::uint32_t, 4>> nodes_;
};

}  // namespace palimpsest
