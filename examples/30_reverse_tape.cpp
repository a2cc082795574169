// `ReverseDriver` with a tape. The driver keeps states of a long run. `reverse_segment` records
// some steps from such a state on a tape, and pulls the adjoint back through them. Programs with
// another tape, such as CoDiPack, do the same. The driver shares its budget between states and
// tape, so that few steps are advanced again. The gradient is that of one `scan` over all steps.
//
// The steps are those of the Allen-Cahn equation ∂u/∂t = D·Δu + r·(u − u³) on a ring. Its humps
// become plateaus, whose edges then move slowly.
//
//   30_reverse_tape [--quick]
#include <palimpsest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <tuple>

#include "examples/support/program_main.h"

using namespace palimpsest;
using namespace examples;

namespace {

constexpr std::int64_t cells = 64;
constexpr Bytes budget = 1_MiB;
/// For a tape that runs only once, and has too little work for a second thread. Fusing and
/// simplifying it would take longer than they save.
const RunOptions run_once = {.threads = 1, .fuse = false, .simplify = false};

/// One step, of tensors as well as of values of a tape. Both have the same bits.
template <class T>
T step(const T& u, const T& diffusion, const T& reaction) {
  const T left = roll(u, 1, 0);
  const T right = roll(u, -1, 0);
  return u + diffusion * (left - 2.0 * u + right) + reaction * (u - u * u * u);
}

/// A state or an adjoint. The driver copies its numbers and puts them back.
struct Ring {
  Tensor u;

  auto parts() const { return std::tuple(u.data<double>()); }
};

Tensor start() {
  Tensor u = Tensor::zeros({cells}, DType::f64);
  const std::span<double> values = u.data<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) / cells;
    values[i] = 0.3 * std::sin(19 * x * (1 - x)) + 0.1 * std::cos(25 * x);
  }
  return u;
}

/// Half the sum of the squares of the last state, and its gradient.
struct Result {
  double loss = 0;
  Tensor start;
  double diffusion = 0;
  double reaction = 0;
};

constexpr double diffusion = 0.02;
constexpr double reaction = 0.002;

Result by_scan(std::int64_t steps) {
  Tape tape;
  const Var u = tape.parameter(start());
  const Var d = tape.parameter(Tensor::scalar(diffusion, DType::f64));
  const Var r = tape.parameter(Tensor::scalar(reaction, DType::f64));
  const Var end = scan(u, steps, [&](const Var& x, const StepNumber&) { return step(x, d, r); });
  const Gradients gradients =
      backward(0.5 * sum(end * end), {.memory_budget = budget, .threads = 1});
  return {gradients.loss().item(), gradients[u], gradients[d].item(), gradients[r].item()};
}

class Segments {
 public:
  /// Makes the adjoint of the state after `steps` steps one of `state`, and adds to the gradient.
  void pull_back(const Ring& state, Ring& adjoint, std::uint64_t steps) {
    Tape tape;
    const Var u = tape.parameter(state.u);
    const Var d = tape.parameter(d_);
    const Var r = tape.parameter(r_);
    Var end = u;
    for (std::uint64_t n = 0; n < steps; ++n) end = step(end, d, r);
    const Gradients gradients = backward(sum(end * tape.constant(adjoint.u)), run_once);
    adjoint.u = gradients[u];
    result_.diffusion += gradients[d].item();
    result_.reaction += gradients[r].item();
    const Report& report = gradients.report();
    most_bytes_ = std::max(most_bytes_, report.measured_peak + report.tape_metadata);
  }

  ReverseFunctions<Ring> functions() {
    return {
        .advance = [this](Ring& ring, std::uint64_t) { ring.u = step(ring.u, d_, r_); },
        .reverse_segment = [this](Ring& ring, Ring& adjoint, std::uint64_t first,
                                  std::uint64_t last) { pull_back(ring, adjoint, last - first); },
        .seed =
            [this](Ring& ring) {
              for (const double value : ring.u.data<double>()) result_.loss += 0.5 * value * value;
              return Ring{1.0 * ring.u};
            },
        .accumulated = {named("loss", result_.loss), named("diffusion", result_.diffusion),
                        named("reaction", result_.reaction)}};
  }

  Result& result() { return result_; }
  /// The most that a tape with its values and adjoints has taken.
  Bytes most_bytes() const { return most_bytes_; }

 private:
  Tensor d_ = Tensor::scalar(diffusion, DType::f64);
  Tensor r_ = Tensor::scalar(reaction, DType::f64);
  Result result_;
  Bytes most_bytes_ = 0;
};

/// Measured with one step; each of several steps takes less.
Bytes tape_bytes_per_step() {
  Segments segments;
  Ring adjoint{start()};
  segments.pull_back({start()}, adjoint, 1);
  return segments.most_bytes();
}

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

bool run(const Arguments& arguments) {
  const std::uint64_t steps = arguments.quick ? 2'000 : 100'000;
  const Result scanned = by_scan(static_cast<std::int64_t>(steps));

  Segments segments;
  const ReverseOptions options{
      .steps = steps, .memory_budget = budget, .tape_bytes_per_step = tape_bytes_per_step()};
  ReverseDriver driver(segments.functions(), options);
  Ring ring{start()};
  const ReverseForecast forecast = driver.forecast(ring);
  Result& found = segments.result();
  found.start = driver.run(ring)->u;
  const ReverseReport& report = driver.report();
  std::printf("%llu steps in segments of %llu, with %llu states and %s; %s of tape per step\n",
              static_cast<unsigned long long>(report.steps),
              static_cast<unsigned long long>(forecast.segment_steps),
              static_cast<unsigned long long>(report.states_in_memory),
              format_bytes(report.peak_bytes).c_str(),
              format_bytes(options.tape_bytes_per_step).c_str());
  std::printf("loss %.12f, derivative for diffusion %.12e, for reaction %.12e\n", found.loss,
              found.diffusion, found.reaction);
  std::printf("by scan %.9f, derivative for diffusion %.12e, for reaction %.12e\n", scanned.loss,
              scanned.diffusion, scanned.reaction);

  const std::span<const double> a = found.start.data<double>();
  const std::span<const double> b = scanned.start.data<double>();
  const auto tape = static_cast<Bytes>(forecast.segment_steps) * options.tape_bytes_per_step;
  return all_hold(
      {{is_near(found.loss, scanned.loss), "the loss is that of scan"},
       {std::ranges::equal(a, b), "the gradient of the first state has the bits of scan's"},
       {is_near(found.diffusion, scanned.diffusion) && is_near(found.reaction, scanned.reaction),
        "the gradient of the parameters is that of scan"},
       {segments.most_bytes() <= tape, "tapes take no more than the driver was told"},
       {report.peak_bytes <= budget, "states and tapes are in the budget"}});
}

}  // namespace

int main(int argc, char** argv) { return program_main(argc, argv, run); }
