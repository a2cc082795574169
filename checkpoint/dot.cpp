#include "checkpoint/dot.h"

#include <ostream>

#include "autodiff/tape.h"

namespace palimpsest {
namespace {

/// `text` as part of a label. A backslash begins an escape, so one of the text is written twice.
std::string label_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else if (c != '\0') {  // which would end the text for programs in C
      result += c;
    }
  }
  return result;
}

}  // namespace

std::ostream& write_dot(std::ostream& stream, const Tape& tape, const Schedule& schedule) {
  std::vector<std::uint32_t> runs(tape.node_count());
  for (const Step& step : schedule.steps) {
    if (step.kind != Step::Kind::compute) continue;
    if (step.id >= tape.node_count()) {
      throw ArgumentError("[write_dot] the schedule runs node " + std::to_string(step.id) +
                          " of a tape with " + std::to_string(tape.node_count()) +
                          " nodes"
                          "; to draw backward, call write_dot(stream, loss)");
    }
    ++runs[step.id];
  }
  return write_dot(stream, tape, runs);
}

std::ostream& write_dot(std::ostream& stream, const Tape& tape,
                        std::span<const std::uint32_t> runs) {
  if (runs.size() != tape.node_count()) {
    throw ArgumentError("[write_dot] there are run counts for " + std::to_string(runs.size()) +
                        " nodes, but the tape has " + std::to_string(tape.node_count()) +
                        "; give one count per node");
  }
  const auto label_of = [&](NodeId node) {
    std::string text = label_text(tape.describe(node));
    for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
      text += "\\n" + to_string(tape.type(tape.first_output(node) + i));
    }
    if (runs[node] > 1) text += "\\ncomputed " + std::to_string(runs[node]) + " times";
    return text;
  };
  const auto colour_of = [&](NodeId node) {
    if (tape.is_parameter(node)) return "lightblue";
    if (tape.is_leaf(node)) return "lightgrey";
    if (runs[node] == 0) return "white";
    return runs[node] == 1 ? "palegreen" : "orange";
  };
  stream << "digraph G {\nnode [shape=box, style=filled, fontname=Helvetica];\n";
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    stream << node << " [label=\"" << label_of(node) << "\", fillcolor=" << colour_of(node)
           << "];\n";
  }
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const char* const style = tape.operation(node).view ? " [style=dashed]" : "";
    for (const ValueId input : tape.inputs(node)) {
      stream << tape.producer(input) << "->" << node << style << ";\n";
    }
  }
  stream << "}\n";
  return stream;
}

}  // namespace palimpsest
