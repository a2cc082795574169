#include <algorithm>
#include <cmath>
#include <cstdio>

#include "autodiff/number_text.h"
#include "checkpoint/engine_planner.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"

namespace palimpsest {

namespace {

class Fraction final : public EnginePlanner {
 public:
  /// With `keep_all_peak`, the fraction is of that, and else of what keep-all of the graph takes.
  explicit Fraction(double fraction, std::optional<Bytes> keep_all_peak = {})
      : fraction_(fraction), keep_all_peak_(keep_all_peak), cheapest_(automatic({.moves = 0})) {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw ArgumentError("[fraction] " + number_text(fraction) +
                          " is not a fraction of keep-all's memory; give one in [0, 1]");
    }
  }

  std::string name() const override { return text("%g"); }
  std::string key() const override {
    return text("%.17g") + (keep_all_peak_ ? " of " + std::to_string(*keep_all_peak_) : "");
  }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    std::vector<Proposal> proposals = cheapest_->propose(graph, budget);
    for (Proposal& proposal : proposals) proposal.planner.clear();  // all are this planner's
    return proposals;
  }
  Bytes limit(Bytes keep_all_peak, Bytes budget) const override {
    if (!is_limited()) return budget;
    const auto whole = static_cast<double>(keep_all_peak_.value_or(keep_all_peak));
    return std::min(budget, static_cast<Bytes>(fraction_ * whole));
  }
  PlannerPtr with_keep_all(Bytes keep_all_peak) const override {
    if (!is_limited()) return nullptr;
    return std::make_shared<Fraction>(fraction_, keep_all_peak);
  }
  std::string how_to_allow(Bytes bytes, Bytes keep_all_peak) const override {
    constexpr double steps = 1e4;  // four digits
    keep_all_peak = keep_all_peak_.value_or(keep_all_peak);
    const double share = static_cast<double>(bytes) / static_cast<double>(keep_all_peak);
    double step = std::ceil(share * steps);
    if (Fraction(std::min(step / steps, 1.0)).limit(keep_all_peak, bytes) < bytes) ++step;
    char number[32];
    std::snprintf(number, sizeof number, "%.4f", std::min(step / steps, 1.0));
    return std::string("give a fraction of at least ") + number;
  }
  bool accepts_keep_all() const override { return true; }
  bool ignores_budget() const override { return engine_part(cheapest_).ignores_budget(); }
  std::optional<Lowest> lowest(const Graph& graph, Bytes budget) const override {
    std::optional<Lowest> lowest = engine_part(cheapest_).lowest(graph, budget);
    if (!lowest) return {};
    for (Proposal& proposal : lowest->proposals) proposal.planner.clear();
    return lowest;
  }
  PlannerPtr continuing(Schedule found, double seconds, std::uint64_t round) const override {
    return engine_part(cheapest_).continuing(std::move(found), seconds, round);
  }

 private:
  bool is_limited() const { return keep_all_peak_ != unlimited; }
  std::string text(const char* format) const {
    char number[32];
    std::snprintf(number, sizeof number, format, fraction_);
    return std::string("fraction ") + number;
  }

  double fraction_;
  std::optional<Bytes> keep_all_peak_;
  PlannerPtr cheapest_;
};

}  // namespace

PlannerPtr fraction(double fraction) { return std::make_shared<Fraction>(fraction); }

}  // namespace palimpsest
