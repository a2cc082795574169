#include "strategy/explain/node_labels.h"

#include <unordered_map>

#include "strategy/compile/fusion/work.h"

namespace palimpsest {
namespace {

/// The file without its folders, and the line.
std::string short_line(const Where& where) {
  const std::string_view file = where.file_name();
  const std::size_t slash = file.rfind('/');
  std::string text(slash == std::string_view::npos ? file : file.substr(slash + 1));
  return text.append(":").append(std::to_string(where.line()));
}

}  // namespace

class NodeLabels::Builder {
 public:
  explicit Builder(std::uint32_t nodes) { labels_.nodes_.reserve(nodes); }

  void add(std::string operation, std::string_view scope, std::string_view own_name,
           std::string line) {
    std::string name(scope);
    if (!scope.empty() && !own_name.empty()) name += '/';
    name.append(own_name);
    const std::uint32_t first = index(std::move(operation));
    const std::uint32_t second = index(std::move(name));
    const std::uint32_t third = index(std::move(line));
    labels_.nodes_.push_back({first, second, third, index(std::string(scope))});
  }

  NodeLabels take() { return std::move(labels_); }

 private:
  std::uint32_t index(std::string text) {
    const auto next = static_cast<std::uint32_t>(labels_.texts_.size());
    const auto [entry, is_new] = indices_.try_emplace(std::move(text), next);
    if (is_new) labels_.texts_.push_back(entry->first);
    return entry->second;
  }

  NodeLabels labels_;
  std::unordered_map<std::string, std::uint32_t> indices_;
};

NodeLabels NodeLabels::of(const Tape& tape, const Lowered& lowered) {
  const std::uint32_t units = lowered.graph().node_count();
  Builder builder(units);
  for (NodeId unit = 0; unit < units; ++unit) {
    const NodeId node = lowered.node(unit);
    builder.add(operation_of(tape, lowered, unit), tape.scope_of(node), tape.name(node),
                short_line(tape.where(node)));
  }
  return builder.take();
}

NodeLabels NodeLabels::of(const Graph& graph) {
  Builder builder(graph.node_count());
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    builder.add(graph.describe(node), {}, {}, {});
  }
  return builder.take();
}

std::uint64_t NodeLabels::hash_of(const Tape& tape) {
  // Each step waits for one product of the previous one only, because a run of an evaluator takes
  // the hash of all nodes.
  constexpr std::uint64_t of_node = 0x9e3779b97f4a7c15u;
  constexpr std::uint64_t of_name = 0xc2b2ae3d27d4eb4fu;
  constexpr std::uint64_t of_line =
      0x165667b19e3779f9u;  // names of files may lie a few bytes apart
  std::uint64_t hash = tape.node_count();
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const Where& where = tape.where(node);
    const std::uint64_t line =
        reinterpret_cast<std::uintptr_t>(where.file_name()) ^ where.line() * of_line;
    hash = hash * of_node + (line ^ tape.name_hash(node) * of_name);
  }
  return hash;
}

std::string NodeLabels::describe(NodeId node) const {
  std::string text(operation(node));
  if (!name(node).empty()) text.append(" ").append(name(node));
  if (!line(node).empty()) text.append(" (").append(line(node)).append(")");
  return text;
}

Bytes NodeLabels::metadata_bytes() const {
  Bytes bytes = static_cast<Bytes>(nodes_.size() * sizeof nodes_[0]);
  for (const std::string& text : texts_) bytes += static_cast<Bytes>(sizeof text + text.size());
  return bytes;
}

}  // namespace palimpsest
