#pragma once

#if __cplusplus < 202002L && !defined(_MSVC_LANG)
#error "Palimpsest needs C++20: compile with -std=c++20"
#else

/// The public headers that need nothing but the standard library. Schedules, averages, the L-BFGS
/// method and files that a training run continues from are in strategy/training/training.h.
/// Headers that these include are installed too, and so are `optional_headers` in
/// packaging/meson.build, which need Eigen or Boost.
#include "autodiff/custom.h"
#include "autodiff/gradcheck.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/sequence.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sparse.h"
#include "autodiff/operations/tensor_operators.h"
#include "autodiff/operations/unary.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/dot.h"
#include "checkpoint/layer_sizes.h"
#include "checkpoint/planners.h"
#include "checkpoint/planning_files.h"
#include "checkpoint/rematerialize.h"
#include "checkpoint/reverse/reverse.h"
#include "checkpoint/stores/disk_seconds.h"
#include "checkpoint/tape_graph.h"
#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/base/profile.h"
#include "strategy/base/report.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/evaluators/measured_machine.h"
#include "strategy/execution/choice/recommend.h"
#include "strategy/execution/execution.h"
#include "strategy/execution/layer_checkpointing/layer_checkpointer.h"
#include "strategy/execution/precision/precise.h"
#include "strategy/export/export_c.h"
#include "strategy/loops/scan.h"
#include "strategy/loops/while_loop.h"
#include "strategy/program.h"
#include "strategy/training/accumulator.h"
#include "strategy/training/loss_scaler.h"
#include "strategy/training/optimizer.h"
#include "strategy/training/safetensors.h"

#endif
