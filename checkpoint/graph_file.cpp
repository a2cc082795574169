#include "checkpoint/planning_files.h"

#include <cmath>
#include <filesystem>

#include "autodiff/files.h"
#include "checkpoint/json_file.h"
#include "checkpoint/tape_graph.h"

namespace palimpsest {
namespace {

constexpr const char* graph_format = "palimpsest-graph";

/// Builds a graph from the nodes of a file.
class Reader {
 public:
  void set_form(const JsonValue& form) {
    static constexpr const char* keys[] = {"fused", "simplified"};
    form.require_members(keys);
    graph_.set_form({form.at("fused").boolean(), form.at("simplified").boolean()});
  }

  void set_parallel() { graph_.set_parallel(); }

  void add(const JsonValue& node) {
    static constexpr const char* keys[] = {"name",       "inputs",    "outputs",   "view_of",
                                           "takes_over", "workspace", "cost",      "source",
                                           "serial",     "opaque",    "tape_nodes"};
    node.require_members(keys);
    Graph::Traits traits;
    read_tape_nodes(node);
    traits.tape_nodes = tape_nodes_;
    traits.name = node.at("name").text();
    traits.source = node.has("source") && node.at("source").boolean();
    traits.serial = node.has("serial") && node.at("serial").boolean();
    traits.opaque = node.has("opaque") && node.at("opaque").boolean();
    read_inputs(node.at("inputs"));
    if (traits.source && !inputs_.empty())
      node.at("inputs").fail("a source has no inputs; give an empty list");
    read_outputs(node.at("outputs"));
    if (node.has("view_of")) read_positions(node.at("view_of"), &Graph::Output::view_of);
    if (node.has("takes_over")) {
      read_positions(node.at("takes_over"), &Graph::Output::takes_over);
    }
    if (node.has("workspace")) traits.workspace = size(node.at("workspace"));
    const JsonValue cost = node.at("cost");
    traits.cost = cost.amount();
    cost_ += traits.cost;
    if (std::isinf(cost_)) cost.fail("the sum of all costs is infinite; give smaller costs");
    try {
      graph_.add_node(inputs_, outputs_, std::move(traits));
    } catch (const ArgumentError& error) {
      node.fail(error.what());
    }
  }

  void add_target(const JsonValue& value) { graph_.add_target(existing(value)); }

  void set_backward_begins(const JsonValue& value) {
    if (value.is_null()) return;
    const std::int64_t node = value.natural();
    if (node > graph_.node_count()) {
      value.fail("there is no node " + std::to_string(node) + "; the graph has " +
                 std::to_string(graph_.node_count()) + " nodes");
    }
    graph_.set_backward_begins(static_cast<NodeId>(node));
  }

  Graph take() { return std::move(graph_); }

 private:
  /// Nodes list their tape nodes if and only if the graph has a form.
  void read_tape_nodes(const JsonValue& node) {
    tape_nodes_.clear();
    if (!graph_.form()) {
      if (node.has("tape_nodes"))
        node.at("tape_nodes").fail("the graph has no \"form\"; give it one, or leave this out");
      return;
    }
    const JsonValue list = node.at("tape_nodes");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::int64_t id = list[i].natural();
      if (id >= none)
        list[i].fail(std::to_string(id) + " is too large for a node id; give less than " +
                     std::to_string(none));
      tape_nodes_.push_back(static_cast<NodeId>(id));
    }
  }

  void read_inputs(const JsonValue& list) {
    inputs_.clear();
    for (std::size_t i = 0; i < list.size(); ++i) inputs_.push_back(existing(list[i]));
  }

  void read_outputs(const JsonValue& list) {
    outputs_.clear();
    for (std::size_t i = 0; i < list.size(); ++i) outputs_.push_back({size(list[i])});
  }

  void read_positions(const JsonValue& list, int Graph::Output::* member) {
    if (list.size() != outputs_.size()) {
      list.fail(std::to_string(list.size()) + " entries for " + std::to_string(outputs_.size()) +
                " outputs; give one entry per output");
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::int64_t position = list[i].integer();
      if (position < -1 || position >= static_cast<std::int64_t>(inputs_.size())) {
        list[i].fail("the node has no input " + std::to_string(position) + "; it has " +
                     std::to_string(inputs_.size()) + ", and -1 means none");
      }
      outputs_[i].*member = static_cast<int>(position);
    }
  }

  /// The id of a value that earlier nodes make.
  ValueId existing(const JsonValue& value) const {
    const std::int64_t id = value.natural();
    if (id >= graph_.value_count()) {
      value.fail("value " + std::to_string(id) +
                 " does not exist yet; the number of earlier values is " +
                 std::to_string(graph_.value_count()));
    }
    return static_cast<ValueId>(id);
  }

  /// A number of bytes. The limit keeps any sum of them from overflowing.
  Bytes size(const JsonValue& value) {
    constexpr Bytes most = Bytes{1} << 61;
    const Bytes bytes = value.natural();
    if (bytes > most - bytes_) value.fail("the sum of all sizes exceeds 2 EiB; give smaller sizes");
    bytes_ += bytes;
    return bytes;
  }

  Graph graph_;
  Bytes bytes_ = 0;
  double cost_ = 0;
  std::vector<ValueId> inputs_;
  std::vector<Graph::Output> outputs_;
  std::vector<NodeId> tape_nodes_;
};

/// The file's line for a node.
Json to_json(const Graph& graph, NodeId node) {
  Json outputs = Json::array();
  Json view_of = Json::array();
  Json takes_over = Json::array();
  bool views = false;
  bool takes = false;
  for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
    const ValueId value = graph.first_output(node) + i;
    outputs.push_back(graph.bytes(value) + graph.source_bytes(value));
    view_of.push_back(graph.view_of(value));
    views = views || graph.view_of(value) >= 0;
    takes_over.push_back(graph.takes_over(value));
    takes = takes || graph.takes_over(value) >= 0;
  }
  Json json{
      {"name", graph.name(node)}, {"inputs", graph.inputs(node)}, {"outputs", std::move(outputs)}};
  if (views) json["view_of"] = std::move(view_of);
  if (takes) json["takes_over"] = std::move(takes_over);
  if (graph.workspace(node) > 0) json["workspace"] = graph.workspace(node);
  json["cost"] = graph.cost(node);
  if (graph.is_source(node)) json["source"] = true;
  if (graph.is_serial(node)) json["serial"] = true;
  if (graph.is_opaque(node)) json["opaque"] = true;
  if (graph.form()) json["tape_nodes"] = graph.tape_nodes(node);
  return json;
}

std::string form_member(const Graph& graph) {
  if (!graph.form()) return "";
  const Json form{{"fused", graph.form()->fuse}, {"simplified", graph.form()->simplify}};
  return ",\"form\":" + form.dump();
}

}  // namespace

Graph read_graph(const std::string& path) {
  const JsonFile file(path, "read_graph", graph_format,
                      {"name", "form", "parallel", "backward_begins", "nodes", "targets"});
  const JsonValue root = file.root();
  root.at("name").text();
  Reader reader;
  if (root.has("form")) reader.set_form(root.at("form"));
  if (root.has("parallel") && root.at("parallel").boolean()) reader.set_parallel();
  const JsonValue nodes = root.at("nodes");
  for (std::size_t i = 0; i < nodes.size(); ++i) reader.add(nodes[i]);
  reader.set_backward_begins(root.at("backward_begins"));
  const JsonValue targets = root.at("targets");
  for (std::size_t i = 0; i < targets.size(); ++i) reader.add_target(targets[i]);
  return reader.take();
}

void write_graph(const Graph& graph, const std::string& path) {
  NodeId node = 0;
  try {
    const Json name = std::filesystem::path(path).stem().string();
    const std::optional<NodeId> begins = graph.backward_begins();
    std::string text =
        "{\"format\":\"" + std::string(graph_format) + "\",\"version\":1,\"name\":" + name.dump() +
        form_member(graph) + (graph.is_parallel() ? ",\"parallel\":true" : "") +
        ",\"backward_begins\":" + (begins ? std::to_string(*begins) : "null") + ",\"nodes\":[";
    for (; node < graph.node_count(); ++node) {
      text += (node > 0 ? ",\n" : "\n") + to_json(graph, node).dump();
    }
    text += "\n],\"targets\":" + Json(graph.targets()).dump() + "}\n";
    write_file(path, text, "write_graph");
  } catch (const Json::type_error&) {
    throw ArgumentError("[write_graph] the name of " +
                        (node < graph.node_count() ? "node " + std::to_string(node) : "the file") +
                        " is not UTF-8; rename it");
  }
}

void write_graph(const Tape& tape, std::span<const ValueId> targets, const std::string& path,
                 std::optional<NodeId> backward_begins) {
  write_graph(graph_of(tape, targets, 1, backward_begins), path);
}

}  // namespace palimpsest
