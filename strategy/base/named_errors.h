#pragma once

#include <string>

#include "checkpoint/plan.h"

namespace palimpsest {

/// Calls `f`. Prefixes the messages of the errors below with `place`, as in `[layers] layer 3`.
/// Other exceptions pass unchanged.
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
