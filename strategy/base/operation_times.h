#pragma once

#include <iosfwd>

#include "strategy/base/report.h"

namespace palimpsest {

/// Writes a row of a table: milliseconds, rates, the fraction of the machine's peak if a machine is
/// given, operation, dtype unless it is f32, and calls.
void write_row(std::ostream& stream, const Report::OperationTime& time,
               const Machine* machine = nullptr);

}  // namespace palimpsest
