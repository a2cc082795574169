#pragma once

/// Every public header that needs the standard library only. The build installs the headers named
/// here, and those of `optional_headers` in meson.build, which need Eigen or Boost.
#include "autodiff/bytes.h"
#include "autodiff/dtype.h"
#include "autodiff/error.h"
#include "autodiff/evaluator.h"
#include "autodiff/gradient.h"
#include "autodiff/operation.h"
#include "autodiff/parallel.h"
#include "autodiff/shape.h"
#include "autodiff/tape.h"
#include "autodiff/tensor.h"
#include "autodiff/var.h"
#include "checkpoint/graph.h"
#include "checkpoint/layout.h"
#include "checkpoint/plan.h"
#include "checkpoint/planner.h"
#include "checkpoint/planners.h"
#include "checkpoint/schedule.h"
