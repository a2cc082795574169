#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "autodiff/export.h"
#include "checkpoint/plan.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Plans one program within one budget after another.
class BudgetPlans {
 public:
  struct Found {
    Plan plan;
    std::string peak_node;  ///< during which most bytes are live, as `NodeLabels::describe` says
  };

  virtual ~BudgetPlans() = default;
  /// A lower bound of the peak of every schedule.
  virtual Bytes bound() = 0;
  /// The cheapest plan within a budget, in any form. Empty if none fits.
  virtual std::optional<Found> within(Bytes budget) = 0;
  /// The smallest budget found, and the plan within it.
  virtual std::pair<Bytes, Found> smallest() = 0;
};

/// Makes such plans whenever another budget is asked for. Immutable, and valid after the tape is
/// destroyed.
class PlansOfProgram {
 public:
  virtual ~PlansOfProgram() = default;
  virtual std::unique_ptr<BudgetPlans> begin() const = 0;
  virtual Bytes metadata_bytes() const = 0;
};

}  // namespace palimpsest
