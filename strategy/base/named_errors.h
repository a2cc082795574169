#pragma once

#include <string>

#include "checkpoint/plan.h"

namespace palimpsest {

/// Calls `f`. Of what it throws, errors of use and budgets that are too small say `place` first, as
/// in `[layers] layer 3`.
template <class F>
auto naming_errors(const std::string& place, F f) {
  const auto text = [&](const std::exception& error) { return place + ": " + error.what(); };
  try {
    return f();
  } catch (const ShapeError& error) {
    throw ShapeError(text(error));
  } catch (const DTypeError& error) {
    throw DTypeError(text(error));
  } catch (const ArgumentError& error) {
    throw ArgumentError(text(error));
  } catch (const TapeError& error) {
    throw TapeError(text(error));
  } catch (const AnomalyError& error) {
    throw AnomalyError(text(error));
  } catch (const BudgetError& error) {
    throw BudgetError(text(error), error.budget(), error.smallest_feasible(), error.own_limit());
  }
}

}  // namespace palimpsest
