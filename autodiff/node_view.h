#pragma once

#include "autodiff/export.h"
#include "autodiff/wengert_list.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// One node of a program, as passed to the cost, workspace and message functions of its operation.
class NodeView {
 public:
  NodeView(const WengertList& nodes, NodeId node) : nodes_(&nodes), node_(node) {}

  NodeId id() const { return node_; }
  const Operation& operation() const { return nodes_->operation(node_); }
  const Attributes& attributes() const { return nodes_->attributes(node_); }
  const Where& where() const { return nodes_->where(node_); }
  std::size_t input_count() const { return nodes_->inputs(node_).size(); }
  std::size_t output_count() const { return nodes_->output_count(node_); }
  ValueType input(std::size_t i) const { return nodes_->type(nodes_->inputs(node_)[i]); }
  ValueType output(std::size_t i = 0) const {
    return nodes_->type(nodes_->first_output(node_) + static_cast<ValueId>(i));
  }

 private:
  const WengertList* nodes_;
  NodeId node_;
};

/// Bytes of all inputs and outputs.
double bytes_moved(const NodeView& node);

/// Cost estimate of the node, by its operation's cost function.
Cost cost_of(const NodeView& node);

/// Bytes of scratch for running the node with up to `threads` threads, including widened copies.
Bytes workspace_of(const NodeView& node, int threads);

}  // namespace palimpsest
