#include <algorithm>

#include "checkpoint/planners.h"

namespace palimpsest {

namespace {

class Fraction final : public Planner {
 public:
  explicit Fraction(double fraction) : fraction_(fraction), cheapest_(automatic()) {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw ArgumentError("[fraction] " + std::to_string(fraction) +
                          " is no fraction of keep-all's memory; give one in [0, 1]");
    }
  }

  std::string name() const override { return "fraction " + std::to_string(fraction_).substr(0, 5); }
  std::vector<Schedule> propose(const Graph& graph, Bytes budget) const override {
    return cheapest_->propose(graph, budget);
  }
  Bytes limit(Bytes keep_all_peak, Bytes budget) const override {
    return std::min(budget, static_cast<Bytes>(fraction_ * static_cast<double>(keep_all_peak)));
  }
  bool accepts_keep_all() const override { return true; }

 private:
  double fraction_;
  PlannerPtr cheapest_;
};

}  // namespace

PlannerPtr fraction(double fraction) { return std::make_shared<Fraction>(fraction); }

}  // namespace palimpsest
