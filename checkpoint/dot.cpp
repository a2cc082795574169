#include "checkpoint/dot.h"

#include <boost/graph/graphviz.hpp>

#include "autodiff/graph_view.h"
#include "autodiff/var.h"

namespace palimpsest {

std::ostream& write_dot(std::ostream& stream, const Tape& tape, const Schedule& schedule) {
  std::vector<std::uint32_t> runs(tape.node_count());
  for (const Step& step : schedule.steps) {
    if (step.kind == Step::Kind::compute) ++runs[step.id];
  }
  const auto label_of = [&](NodeId node) {
    std::string text = tape.describe(node);
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
  boost::write_graphviz(
      stream, TapeView(tape),
      [&](std::ostream& out, NodeId node) {
        out << "[label=" << boost::escape_dot_string(label_of(node))
            << ", fillcolor=" << colour_of(node) << "]";
      },
      [&](std::ostream& out, const TapeView::Edge& edge) {
        const bool view = tape.operation(edge.target).view;
        out << (view ? "[style=dashed]" : "");
      },
      [](std::ostream& out) { out << "node [shape=box, style=filled, fontname=Helvetica];\n"; });
  return stream;
}

}  // namespace palimpsest
