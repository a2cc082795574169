#include "autodiff/operations/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "autodiff/execute.h"
#include "autodiff/gradient.h"
#include "autodiff/kernels/shares.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "autodiff/parallel.h"
#include "autodiff/tape.h"

namespace palimpsest {
namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();

struct CtcAttributes {
  std::int64_t blank;
  Where where;

  bool operator==(const CtcAttributes& other) const {
    return blank == other.blank && same_line(where, other.where);
  }
};

double log_sum(double a, double b) {
  const double most = std::max(a, b);
  return most == impossible ? most : most + std::log1p(std::exp(std::min(a, b) - most));
}

/// One sequence of a batch: its log-probabilities and labels. States 0 to 2·labels alternate
/// between blanks and labels.
template <class T>
class CtcSequence {
 public:
  /// `first_input` is the position of the log-probabilities among the inputs; targets and lengths
  /// follow. Checks them.
  CtcSequence(const KernelCall& call, std::size_t first_input, std::int64_t n)
      : attributes_(call.attributes.as<CtcAttributes>()) {
    const Operand& log_probabilities = call.input(first_input);
    const Operand& targets = call.input(first_input + 1);
    const std::int64_t batch = log_probabilities.shape()[1];
    classes_ = log_probabilities.shape()[2];
    stride_ = batch * classes_;
    x_ = log_probabilities.as<T>() + n * classes_;
    labels_ = targets.as<std::int64_t>() + n * targets.shape()[1];
    steps = call.input(first_input + 2).as<std::int64_t>()[n];
    const std::int64_t length = call.input(first_input + 3).as<std::int64_t>()[n];
    check("input length", steps, log_probabilities.shape()[0] + 1, n);
    check("target length", length, targets.shape()[1] + 1, n);
    for (std::int64_t i = 0; i < length; ++i) check("label", labels_[i], classes_, n);
    states = 2 * length + 1;
  }

  std::int64_t steps, states;

  std::int64_t label(std::int64_t state) const {
    return state % 2 == 0 ? attributes_.blank : labels_[state / 2];
  }
  double at(std::int64_t step, std::int64_t state) const {
    return static_cast<double>(x_[step * stride_ + label(state)]);
  }
  /// Whether a path may go from state − 2 to `state`: between different labels, not to the blank.
  bool skips_to(std::int64_t state) const {
    return state >= 2 && state % 2 != 0 && label(state) != label(state - 2) &&
           label(state) != attributes_.blank;
  }
  /// The log-probability of all paths that start at step 0 and are in each state at step 0.
  void start(double* alpha) const {
    std::fill_n(alpha, states, impossible);
    for (std::int64_t state = 0; state < std::min<std::int64_t>(states, 2); ++state) {
      alpha[state] = at(0, state);
    }
  }
  /// The same at `step` from those at the step before.
  void advance(std::int64_t step, const double* before, double* alpha) const {
    for (std::int64_t state = 0; state < states; ++state) {
      double sum = before[state];
      if (state > 0) sum = log_sum(sum, before[state - 1]);
      if (skips_to(state)) sum = log_sum(sum, before[state - 2]);
      alpha[state] = sum + at(step, state);
    }
  }
  /// The log-probability of the target from the last `alpha`.
  double total(const double* alpha) const {
    const double last = alpha[states - 1];
    return states > 1 ? log_sum(last, alpha[states - 2]) : last;
  }

 private:
  void check(const char* what, std::int64_t number, std::int64_t end, std::int64_t n) const {
    if (number >= 0 && number < end) return;
    throw ArgumentError("ctc_loss",
                        std::string("the ") + what + " " + std::to_string(number) +
                            " of sequence " + std::to_string(n) + " is outside [0, " +
                            std::to_string(end) + "); correct it",
                        attributes_.where);
  }

  const CtcAttributes& attributes_;
  const T* x_;
  const std::int64_t* labels_;
  std::int64_t classes_, stride_;
};

/// Steps times states of one sequence.
double work_of(const Shape& log_probabilities, const Shape& targets) {
  return static_cast<double>(log_probabilities[0]) * static_cast<double>(2 * targets[1] + 1);
}

/// Chunks of the batch, each with memory for `vectors` numbers for every state of a sequence.
/// `flops` are those of one state and step.
Shares ctc_shares(const Shape& log_probabilities, const Shape& targets, double flops,
                  std::int64_t vectors, int threads) {
  const std::int64_t states = 2 * targets[1] + 1;
  return Shares(log_probabilities[1], grain_for(flops * work_of(log_probabilities, targets)),
                aligned(vectors * states * size_of(DType::f64)), threads);
}

Shares forward_shares(const Shape& log_probabilities, const Shape& targets, int threads) {
  return ctc_shares(log_probabilities, targets, 60, 2, threads);
}

/// The states of all steps, and those of two steps of the backward recursion.
Shares adjoint_shares(const Shape& log_probabilities, const Shape& targets, int threads) {
  return ctc_shares(log_probabilities, targets, 130, log_probabilities[0] + 2, threads);
}

Bytes ctc_workspace(const NodeView& node, int threads) {
  return forward_shares(node.input(0).shape, node.input(1).shape, threads).bytes();
}

Bytes ctc_adjoint_workspace(const NodeView& node, int threads) {
  return adjoint_shares(node.input(1).shape, node.input(2).shape, threads).bytes();
}

template <class T>
void compute_ctc(const KernelCall& call) {
  const std::int64_t states = 2 * call.input(1).shape()[1] + 1;
  const Shares shares = forward_shares(call.input(0).shape(), call.input(1).shape(), call.threads);
  shares.run(call.workspace, [&](std::int64_t begin, std::int64_t end, std::byte* share) {
    auto* alpha = reinterpret_cast<double*>(share);
    double* before = alpha + states;
    for (std::int64_t n = begin; n < end; ++n) {
      const CtcSequence<T> sequence(call, 0, n);
      double loss = sequence.states == 1 ? 0 : -impossible;  // without steps
      if (sequence.steps > 0) {
        sequence.start(alpha);
        for (std::int64_t step = 1; step < sequence.steps; ++step) {
          std::swap(alpha, before);
          sequence.advance(step, before, alpha);
        }
        loss = -sequence.total(alpha);
      }
      call.output().as<T>()[n] = static_cast<T>(loss);
    }
  });
}

/// dx[step, n, label] −= d·P(the path is in a state with this label at this step).
template <class T>
void add_ctc_adjoint(const CtcSequence<T>& sequence, double d, double* workspace,
                     std::int64_t most_states, T* dx, std::int64_t stride) {
  if (sequence.steps == 0) return;
  const auto alpha = [&](std::int64_t step) { return workspace + (step + 2) * most_states; };
  sequence.start(alpha(0));
  for (std::int64_t step = 1; step < sequence.steps; ++step) {
    sequence.advance(step, alpha(step - 1), alpha(step));
  }
  const double total = sequence.total(alpha(sequence.steps - 1));
  if (total == impossible) return;
  const std::int64_t states = sequence.states;
  double* beta = workspace;
  double* after = workspace + most_states;
  std::fill_n(beta, states, impossible);
  for (std::int64_t state = std::max<std::int64_t>(states - 2, 0); state < states; ++state) {
    beta[state] = 0;
  }
  for (std::int64_t step = sequence.steps - 1; step >= 0; --step) {
    for (std::int64_t state = 0; state < states; ++state) {
      const double share = std::exp(alpha(step)[state] + beta[state] - total);
      T& target = dx[step * stride + sequence.label(state)];
      target = static_cast<T>(static_cast<double>(target) - d * share);
    }
    if (step == 0) break;
    std::swap(beta, after);
    for (std::int64_t state = 0; state < states; ++state) {
      double sum = after[state] + sequence.at(step, state);
      if (state + 1 < states) {
        sum = log_sum(sum, after[state + 1] + sequence.at(step, state + 1));
      }
      if (state + 2 < states && sequence.skips_to(state + 2)) {
        sum = log_sum(sum, after[state + 2] + sequence.at(step, state + 2));
      }
      beta[state] = sum;
    }
  }
}

template <class T>
void compute_ctc_adjoint(const KernelCall& call) {
  const Operand& dx = call.output();
  const std::int64_t states = 2 * call.input(2).shape()[1] + 1;
  const std::int64_t batch = dx.shape()[1];
  const std::int64_t classes = dx.shape()[2];
  std::fill_n(dx.as<T>(), dx.elements(), T(0));
  const Shares shares = adjoint_shares(dx.shape(), call.input(2).shape(), call.threads);
  shares.run(call.workspace, [&](std::int64_t begin, std::int64_t end, std::byte* share) {
    for (std::int64_t n = begin; n < end; ++n) {
      const CtcSequence<T> sequence(call, 1, n);
      add_ctc_adjoint(sequence, static_cast<double>(call.input(0).as<T>()[n]),
                      reinterpret_cast<double*>(share), states, dx.as<T>() + n * classes,
                      batch * classes);
    }
  });
}

/// The same loss, recorded step by step, for derivatives of the adjoint.
class RecordedCtc {
 public:
  RecordedCtc(const Var& log_probabilities, const Var& targets, const Var& input_lengths,
              const Var& target_lengths, std::int64_t blank)
      : input_lengths_(input_lengths), target_lengths_(target_lengths) {
    Tape& tape = log_probabilities.tape();
    const std::int64_t steps = log_probabilities.shape()[0];
    const std::int64_t batch = log_probabilities.shape()[1];
    const std::int64_t length = targets.shape()[1];
    states_ = 2 * length + 1;
    const Var positions = tape.constant(Tensor::arange(length));
    const Var counted = less(positions, unsqueeze(target_lengths, 1));
    const Var labels = where(counted, targets, static_cast<double>(blank));
    const Var blanks = full_like(labels, static_cast<double>(blank));
    const Var pairs = reshape(stack({blanks, labels}, 2), Shape{batch, 2 * length});
    const Var last = full(tape, {batch, 1}, static_cast<double>(blank), DType::i64);
    const Var classes = concat({pairs, last}, 1);
    skips_ = logical_and(not_equal(classes, shifted(classes, 2, -1)),
                         not_equal(classes, static_cast<double>(blank)));
    const Shape everywhere{steps, batch, states_};
    emissions_ = gather(log_probabilities, 2, broadcast_to(classes, everywhere));
    const Var states = tape.constant(Tensor::arange(states_));
    alpha_ = where(less(states, 2), select(emissions_, 0, 0), impossible);
  }

  Var losses() {
    const std::int64_t steps = emissions_.shape()[0];
    for (std::int64_t step = 1; step < steps; ++step) {
      const Var skipped = where(skips_, shifted(alpha_, 2, impossible), impossible);
      const Var moved = logaddexp(logaddexp(alpha_, shifted(alpha_, 1, impossible)), skipped);
      const Var next = add(moved, select(emissions_, 0, step));
      const Var runs = unsqueeze(greater(input_lengths_, static_cast<double>(step)), 1);
      alpha_ = where(runs, next, alpha_);
    }
    const Var last = unsqueeze(target_lengths_ * 2, 1);
    const Var end = gather(alpha_, 1, last);
    const Var other = gather(alpha_, 1, maximum(last - 1, 0));
    const Var total = squeeze(logaddexp(end, where(greater(last, 0), other, impossible)), {1});
    // Where there is no path or no step, the loss is a constant.
    const Var exists = logical_and(greater(total, impossible), greater(input_lengths_, 0));
    return negate(where(exists, total, impossible));
  }

 private:
  /// x moved to higher states.
  Var shifted(const Var& x, std::int64_t by, double filling) const {
    const std::int64_t kept = std::max<std::int64_t>(states_ - by, 0);
    const Var part = slice(x, 1, {.stop = kept});
    return pad(part, {{0, 0}, {states_ - kept, 0}}, filling);
  }

  Var input_lengths_, target_lengths_, skips_, emissions_, alpha_;
  std::int64_t states_;
};

void pull_back_ctc(const Pullback& p);
void pull_back_ctc_adjoint(const Pullback& p);

}  // namespace

const Operation ctc_operation{
    .name = "ctc_loss",
    .formula = "y = -log Σ over alignments of Π p(label); x̄ = -ȳ·(posterior of each class)",
    .summary = "connectionist temporal classification; keeps only the log-probabilities",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_ctc<T>(call); });
        },
    .vjp = pull_back_ctc,
    .cost =
        [](const NodeView& node) {
          const Shape& shape = node.input(0).shape;
          const double work = work_of(shape, node.input(1).shape) * static_cast<double>(shape[1]);
          return Cost{60 * work, bytes_moved(node)};
        },
    .workspace = ctc_workspace,
};

const Operation ctc_adjoint_operation{
    .name = "ctc_loss_adjoint",
    .formula = "dx = -d·(posterior of each class)",
    .summary = "adjoint of ctc_loss",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_ctc_adjoint<T>(call); });
        },
    .vjp = pull_back_ctc_adjoint,
    .cost =
        [](const NodeView& node) {
          const Shape& shape = node.input(1).shape;
          const double work = work_of(shape, node.input(2).shape) * static_cast<double>(shape[1]);
          return Cost{130 * work, bytes_moved(node)};
        },
    .workspace = ctc_adjoint_workspace,
};

namespace {

Var record_ctc_adjoint(const Var& d, const Var& x, const Var& targets, const Var& input_lengths,
                       const Var& target_lengths, const CtcAttributes& attributes) {
  const Var inputs[] = {d, x, targets, input_lengths, target_lengths};
  const ValueType type = x.type();
  return d.tape().record(ctc_adjoint_operation, inputs, {&type, 1}, attributes, attributes.where);
}

void pull_back_ctc(const Pullback& p) {
  const CtcAttributes attributes = p.attributes().as<CtcAttributes>();
  p.set(0, record_ctc_adjoint(p.adjoint(), p.input(0), p.input(1), p.input(2), p.input(3),
                              attributes));
}

void pull_back_ctc_adjoint(const Pullback& p) {
  const CtcAttributes attributes = p.attributes().as<CtcAttributes>();
  const Var d = p.input(0);
  const Var x = p.input(1);
  const Var targets = p.input(2);
  const Var input_lengths = p.input(3);
  const Var target_lengths = p.input(4);
  const Var adjoint = p.adjoint();
  if (p.wants(0)) {
    const Var slope =
        record_ctc_adjoint(full_like(d, 1), x, targets, input_lengths, target_lengths, attributes);
    p.set(0, sum(multiply(adjoint, slope), {0, 2}));
  }
  if (!p.wants(1)) return;
  // Recorded for a separate variable, so that the backward walk ends there.
  const DType wide = compute_dtype(x.dtype());
  const Var variable = identity(cast(x, wide));
  const Var losses =
      RecordedCtc(variable, targets, input_lengths, target_lengths, attributes.blank).losses();
  const Var seed = cast(d, wide);
  const Var dx = vjp({&losses, 1}, {&variable, 1}, {&seed, 1})[0];
  const Var direction = cast(adjoint, wide);
  p.set(1, cast(vjp({&dx, 1}, {&variable, 1}, {&direction, 1})[0], x.dtype()));
}

Var checked_integers(const Var& x, const char* role, const Shape& shape, const Where& where) {
  if (!is_integer(x.dtype())) {
    throw DTypeError(
        "ctc_loss", std::string(role) + " are " + to_string(x.type()) + "; give i64 or i32", where);
  }
  if (x.shape() != shape) {
    throw ShapeError("ctc_loss",
                     std::string(role) + " have shape " + to_string(x.shape()) + "; give shape " +
                         to_string(shape),
                     where);
  }
  return cast(x, DType::i64, where);
}

}  // namespace

Var ctc_loss(const Var& log_probabilities, const Var& targets, const Var& input_lengths,
             const Var& target_lengths, const CtcOptions& options, Where where) {
  const Var all[] = {log_probabilities, targets, input_lengths, target_lengths};
  common_tape(all, "ctc_loss", where);
  require_floating(log_probabilities, "ctc_loss", where);
  const Shape shape = log_probabilities.shape();
  if (shape.rank() != 3 || shape[0] == 0 || targets.rank() != 2) {
    throw ShapeError("ctc_loss",
                     "log-probabilities have shape " + to_string(shape) + " and targets " +
                         to_string(targets.shape()) +
                         "; give (steps, batch, classes), with a step or more, and (batch, labels)",
                     where);
  }
  if (options.blank < 0 || options.blank >= shape[2]) {
    throw ArgumentError("ctc_loss",
                        "the blank is class " + std::to_string(options.blank) + " of " +
                            std::to_string(shape[2]) + "; give a class",
                        where);
  }
  const Shape batch{shape[1]};
  const Var labels =
      checked_integers(targets, "targets", Shape{shape[1], targets.shape()[1]}, where);
  const Var steps = checked_integers(input_lengths, "input lengths", batch, where);
  const Var lengths = checked_integers(target_lengths, "target lengths", batch, where);
  const Var inputs[] = {log_probabilities, labels, steps, lengths};
  const ValueType type{batch, log_probabilities.dtype()};
  Var losses = log_probabilities.tape().record(ctc_operation, inputs, {&type, 1},
                                               CtcAttributes{options.blank, where}, where);
  if (options.zero_infinity) {
    losses = palimpsest::where(isinf(losses, where), 0, losses, where);
  }
  if (options.reduction == Reduction::mean) {
    const Var divisor = cast(maximum(lengths, 1, where), type.dtype, where);
    losses = divide(losses, divisor, where);
  }
  return reduce_loss(losses, options.reduction, where);
}

}  // namespace palimpsest
