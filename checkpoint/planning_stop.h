#pragma once

#include <stop_token>

namespace palimpsest {

/// Lets planning on this thread end with `StoppedError` once a stop is requested, while this object
/// exists. A planner cannot be given a token, since users write planners too. Scopes may nest; a
/// token that no stop can be requested for leaves the outer one in place. Planning runs on one
/// thread, without parallel work, so nothing else takes part in the scope.
class PlanningStop {
 public:
  /// `token` must outlive this object.
  explicit PlanningStop(const std::stop_token& token);
  ~PlanningStop();
  PlanningStop(const PlanningStop&) = delete;
  PlanningStop& operator=(const PlanningStop&) = delete;

  /// Throws `StoppedError` if planning on this thread is to end. Planners call it at least every
  /// few milliseconds. They have changed nothing that outlives them when it throws.
  static void check();

 private:
  const std::stop_token* outer_;
};

}  // namespace palimpsest
