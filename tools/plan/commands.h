#pragma once

#include "tools/plan/arguments.h"

namespace palimpsest::tool {

/// The commands of the program. Each prints to stdout and throws on failure.
void list_planners(const Arguments& arguments);
void plan(const Arguments& arguments);
void check(const Arguments& arguments);
void sweep(const Arguments& arguments);

}  // namespace palimpsest::tool
