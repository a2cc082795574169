#include <algorithm>

#include "checkpoint/rematerialize.h"

namespace palimpsest {

namespace {

std::string to_string(const Segment& segment) {
  return "[" + std::to_string(segment.first) + ", " + std::to_string(segment.last) + "]";
}

class Selected final : public Planner {
 public:
  explicit Selected(std::vector<Segment> segments) : segments_(std::move(segments)) {
    std::sort(segments_.begin(), segments_.end(), [](const Segment& a, const Segment& b) {
      return a.first != b.first ? a.first < b.first : a.last < b.last;
    });
  }

  std::string name() const override { return "selected segments"; }
  std::string key() const override {
    std::string key = name();
    for (const Segment& segment : segments_) key += " " + to_string(segment);
    return key;
  }
  bool names_nodes() const override { return true; }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    check(graph);
    return {recompute_segments(graph, segments_)};
  }

 private:
  void check(const Graph& graph) const {
    const NodeId end = graph.backward_begins().value_or(graph.node_count());
    const Segment* previous = nullptr;
    for (const Segment& segment : segments_) {
      const auto refuse = [&](const std::string& problem) {
        throw ArgumentError("[selected] segment " + to_string(segment) + " " + problem);
      };
      if (segment.first > segment.last) refuse("ends before it begins; give [first, last]");
      if (segment.last >= end) {
        refuse("reaches beyond the forward part, which has " +
               (end == 0 ? "no nodes" : "nodes 0 to " + std::to_string(end - 1)));
      }
      if (previous != nullptr && segment.first <= previous->last) {
        const bool repeats = segment.first == previous->first && segment.last == previous->last;
        refuse(repeats ? "is given twice; give it once"
                       : "overlaps " + to_string(*previous) + "; join them or cut one short");
      }
      previous = &segment;
    }
  }

  std::vector<Segment> segments_;
};

}  // namespace

PlannerPtr selected(std::vector<Segment> segments) {
  return std::make_shared<Selected>(std::move(segments));
}

}  // namespace palimpsest
