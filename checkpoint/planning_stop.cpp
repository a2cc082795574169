#include "checkpoint/planning_stop.h"

#include "autodiff/run_control.h"

namespace palimpsest {
namespace {

thread_local const std::stop_token* planning_token = nullptr;

}  // namespace

PlanningStop::PlanningStop(const std::stop_token& token) : outer_(planning_token) {
  if (token.stop_possible()) planning_token = &token;
}

PlanningStop::~PlanningStop() { planning_token = outer_; }

void PlanningStop::check() {
  if (planning_token != nullptr && planning_token->stop_requested()) RunControl::throw_stopped();
}

}  // namespace palimpsest
