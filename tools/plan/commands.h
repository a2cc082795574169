#pragma once

#include "tools/plan/arguments.h"

namespace palimpsest::tool {

/// What the program does; each prints to stdout and throws when it cannot.
void list_planners(const Arguments& arguments);
void plan(const Arguments& arguments);
void check(const Arguments& arguments);
void sweep(const Arguments& arguments);

}  // namespace palimpsest::tool
