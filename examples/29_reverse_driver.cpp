// Full-waveform inversion: finds the velocity of waves in a square from recordings at its rim. The
// solver is plain code on arrays, as it could have been written in Fortran, with an adjoint written
// by hand. `ReverseDriver` does the checkpointing, within a budget of bytes.
//
// The pressure p obeys ∂²p/∂t² = v²·Δp + source, with damping d near the rim that absorbs waves.
// With c = (v·τ/h)², a step is
//
//   p⁺ = (2·p − (1 − d)·p⁻ + c∘Δp + source)/(1 + d).
//
// At the end, the gradient of one recording is computed once more, by a process that is killed
// half-way and another one that continues. It has the same bits.
//
//   29_reverse_driver [--quick] [--output FOLDER]
#include <palimpsest.h>
#include <palimpsest/strategy/training/training.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "examples/support/fields.h"
#include "examples/support/objective.h"
#include "examples/support/panels.h"
#include "examples/support/program_main.h"

using namespace palimpsest;
using namespace examples;

namespace {

using Field = std::vector<double>;

constexpr double background = 0.16;  // c where nothing is known
constexpr double anomaly = 0.08;     // the largest difference from it

struct Settings {
  std::size_t cells = 80;  ///< along each side
  std::size_t steps = 320;
  std::size_t shots = 8;
  int iterations = 25;
  Bytes budget = 2_MiB;  ///< of a shot's states
};

/// The pressure at two times.
struct Wave {
  Field now, before;

  auto parts() { return std::tie(now, before); }
};

/// One source, and the receivers that record its wave at each step.
class Shot {
 public:
  Shot(const Settings& settings, std::size_t number) : n_(settings.cells), damping_(n_ * n_) {
    const std::size_t rim = n_ / 8;
    for (std::size_t i = 0; i < n_ * n_; ++i) {
      const std::size_t y = std::min(i / n_, n_ - 1 - i / n_);
      const std::size_t x = std::min(i % n_, n_ - 1 - i % n_);
      const double depth =
          1 - std::min(1.0, static_cast<double>(std::min(y, x)) / static_cast<double>(rim));
      damping_[i] = 0.3 * depth * depth;
    }
    const auto cell = [&](double part) { return on_rim(part, rim); };
    source_ = cell((static_cast<double>(number) + 0.5) / static_cast<double>(settings.shots));
    const std::size_t receivers = 2 * n_;
    for (std::size_t k = 0; k < receivers; ++k) {
      receivers_.push_back(cell(static_cast<double>(k) / static_cast<double>(receivers)));
    }
    recording_.resize((settings.steps + 1) * receivers);
  }

  Wave start() const { return {Field(n_ * n_), Field(n_ * n_)}; }

  void advance(const Field& c, Wave& wave, std::uint64_t step) const {
    Field& next = wave.before;
    for (std::size_t i = 0; i < n_ * n_; ++i) {
      next[i] =
          (2 * wave.now[i] - (1 - damping_[i]) * wave.before[i] + c[i] * laplacian(wave.now, i)) /
          (1 + damping_[i]);
    }
    next[source_] += wavelet(step);
    std::swap(wave.now, wave.before);
  }

  void record(const Wave& wave, std::uint64_t step) {
    for (std::size_t k = 0; k < receivers_.size(); ++k) {
      recording_[step * receivers_.size() + k] = wave.now[receivers_[k]];
    }
  }

  /// Adds half the squared misfit of a state to `loss`, and its derivative to `adjoint`.
  void compare(const Wave& wave, std::uint64_t step, double& loss, Wave& adjoint) const {
    for (std::size_t k = 0; k < receivers_.size(); ++k) {
      const double misfit = wave.now[receivers_[k]] - recording_[step * receivers_.size() + k];
      loss += 0.5 * misfit * misfit;
      adjoint.now[receivers_[k]] += misfit;
    }
  }

  /// The adjoint of `advance`. Adds to the gradient with respect to c.
  void reverse(const Field& c, const Wave& wave, Wave& adjoint, Field& gradient) const {
    Field scaled(n_ * n_);
    Field flux(n_ * n_);
    for (std::size_t i = 0; i < n_ * n_; ++i) {
      scaled[i] = adjoint.now[i] / (1 + damping_[i]);
      flux[i] = c[i] * scaled[i];
      gradient[i] += scaled[i] * laplacian(wave.now, i);
    }
    for (std::size_t i = 0; i < n_ * n_; ++i) {
      adjoint.now[i] = adjoint.before[i] + 2 * scaled[i] + laplacian(flux, i);
      adjoint.before[i] = -(1 - damping_[i]) * scaled[i];
    }
  }

 private:
  /// Cells along the rim, `part` of the way around.
  std::size_t on_rim(double part, std::size_t rim) const {
    const std::size_t side = n_ - 1 - 2 * rim;
    const auto along = static_cast<std::size_t>(4 * part * static_cast<double>(side));
    const std::size_t i = along % side;
    const std::size_t places[][2] = {{0, i}, {i, side}, {side, side - i}, {side - i, 0}};
    const auto [y, x] = places[std::min<std::size_t>(along / side, 3)];
    return (rim + y) * n_ + rim + x;
  }
  /// A Ricker wavelet.
  double wavelet(std::uint64_t step) const {
    const double t = (static_cast<double>(step) - 30) * std::numbers::pi / 24;
    return (1 - 2 * t * t) * std::exp(-t * t);
  }
  /// Symmetric, with edges that reflect.
  double laplacian(const Field& p, std::size_t i) const {
    const std::size_t y = i / n_;
    const std::size_t x = i % n_;
    double sum = 0;
    if (y > 0) sum += p[i - n_] - p[i];
    if (y + 1 < n_) sum += p[i + n_] - p[i];
    if (x > 0) sum += p[i - 1] - p[i];
    if (x + 1 < n_) sum += p[i + 1] - p[i];
    return sum;
  }

  std::size_t n_;
  std::size_t source_ = 0;
  Field damping_;
  std::vector<std::size_t> receivers_;
  std::vector<double> recording_;  // by step
};

/// Half the squared misfit, and its gradient with respect to c.
struct Misfit {
  double loss = 0;
  Field gradient;
};

/// The misfit of one shot; nothing if the run ended early.
std::optional<Misfit> misfit_of(const Shot& shot, const Field& c, const Settings& settings,
                                ReverseOptions options, ReverseReport& report) {
  Misfit misfit{.gradient = Field(c.size())};
  const ReverseFunctions<Wave> functions{
      .advance = [&](Wave& wave, std::uint64_t step) { shot.advance(c, wave, step); },
      .reverse =
          [&](Wave& wave, Wave& adjoint, std::uint64_t step) {
            shot.reverse(c, wave, adjoint, misfit.gradient);
            shot.compare(wave, step, misfit.loss, adjoint);
          },
      .seed =
          [&](Wave& wave) {
            Wave adjoint = shot.start();
            shot.compare(wave, settings.steps, misfit.loss, adjoint);
            return adjoint;
          },
      .accumulated = {named("misfit", misfit.loss), named("gradient", misfit.gradient)},
      .inputs = {named("velocity", c)}};
  options.steps = settings.steps;
  options.memory_budget = settings.budget;
  ReverseDriver driver(functions, options);
  Wave wave = shot.start();
  const bool finished = driver.run(wave).has_value();
  report = driver.report();
  if (!finished) return {};
  return misfit;
}

/// The gradient of a shot from a process that is killed half-way, and from this one, which
/// continues its work.
Misfit killed_and_resumed(const Shot& shot, const Field& c, const Settings& settings,
                          const std::string& folder, ReverseReport& report) {
  const std::string journal = folder + "/29_journal";
  std::filesystem::remove_all(journal);
  ReverseOptions options{.resume = journal,
                         .tag = "29_reverse_driver 1",
                         .record_every = std::chrono::milliseconds(1)};
  const pid_t child = fork();
  if (child == 0) {
    options.progress = [](const ReverseProgress& now) {
      if (now.part > 0.6) raise(SIGKILL);
    };
    ReverseReport unused;
    misfit_of(shot, c, settings, options, unused);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) std::puts("the first process was too quick to be killed");
  // A bar of the rest.
  options.progress = [](const ReverseProgress& now) {
    const auto filled = static_cast<int>(40 * now.part);
    std::printf("\r[%-40s] %3.0f %%", std::string(static_cast<std::size_t>(filled), '#').c_str(),
                100 * now.part);
    if (now.part == 1) std::puts("");
  };
  Misfit misfit = *misfit_of(shot, c, settings, options, report);
  std::filesystem::remove_all(journal);
  return misfit;
}

Tensor tensor_of(const Field& field, std::int64_t n) { return Tensor::from(field, {n, n}); }

bool run(const Arguments& arguments) {
  Settings settings;
  if (arguments.quick) {
    settings = {.cells = 40, .steps = 150, .shots = 4, .iterations = 8, .budget = 512_KiB};
  }
  const auto n = static_cast<std::int64_t>(settings.cells);
  const Tensor truth = field(n, [](double y, double x) {
    return background + anomaly * hump(y, x, 0.4, 0.38, 0.1) -
           0.6 * anomaly * hump(y, x, 0.6, 0.63, 0.09);
  });
  const Field true_c(truth.data<double>().begin(), truth.data<double>().end());
  const Field flat(true_c.size(), background);

  std::vector<Shot> shots;
  for (std::size_t k = 0; k < settings.shots; ++k) {
    Shot& shot = shots.emplace_back(settings, k);
    Wave wave = shot.start();
    shot.record(wave, 0);
    for (std::size_t step = 0; step < settings.steps; ++step) {
      shot.advance(true_c, wave, step);
      shot.record(wave, step + 1);
    }
  }

  // Before anything else, because a process with threads must not be copied.
  ReverseReport resumed;
  ReverseReport whole;
  const Misfit pieces = killed_and_resumed(shots[0], flat, settings, arguments.output, resumed);
  const Misfit once = *misfit_of(shots[0], flat, settings, {}, whole);
  std::printf("%llu states of %llu steps in %s, %.2f steps advanced per step\n",
              static_cast<unsigned long long>(whole.states_in_memory),
              static_cast<unsigned long long>(whole.steps), format_bytes(whole.peak_bytes).c_str(),
              static_cast<double>(whole.steps_advanced) / static_cast<double>(whole.steps));

  ReverseReport report;
  const double scale = 1 / once.loss;
  const Objective misfit = [&](std::span<const Tensor> at) {
    const Field c(at[0].data<double>().begin(), at[0].data<double>().end());
    double loss = 0;
    Field gradient(c.size());
    for (const Shot& shot : shots) {
      const Misfit one = *misfit_of(shot, c, settings, {}, report);
      loss += scale * one.loss;
      for (std::size_t i = 0; i < c.size(); ++i) gradient[i] += scale * one.gradient[i];
    }
    return ValueAndGradients{loss, {tensor_of(gradient, n)}};
  };
  const Tensor x = tensor_of(flat, n);
  const Claim right = check_gradient(misfit, x, 1e-4);

  const double first_error = distance(x, truth);
  Plot misfits{"misfit of the recordings", "iterations", {{"", {}}}};
  misfits.logarithmic = true;
  minimize_lbfgs({x}, misfit,
                 {.iterations = settings.iterations,
                  .first_step = 0.3 * first_error,
                  .watch = [&](const LbfgsIteration& now) {
                    std::printf("iteration %2d, misfit %.3e, error %.3f\n", now.iteration,
                                now.value, distance(x, truth) / first_error);
                    misfits.curves[0].points.emplace_back(now.iteration, now.value);
                  }});
  const double error = distance(x, truth) / first_error;
  const double low = background - anomaly;
  const double high = background + anomaly;
  write_file(arguments.output + "/29_reverse_driver.svg",
             draw(std::vector<Panel>{HeatMap{"true velocity", truth, low, high},
                                     HeatMap{"found from the rim", x, low, high}, misfits}));
  return all_hold({right,
                   {pieces.loss == once.loss && pieces.gradient == once.gradient,
                    "killed and resumed, the gradient has the same bits"},
                   {resumed.resumed_at.has_value(), "the second process continued the first one"},
                   {whole.peak_bytes <= settings.budget, "the driver's memory is in its budget"},
                   {error < (arguments.quick ? 0.85 : 0.5), "the velocity is found"}});
}

}  // namespace

int main(int argc, char** argv) { return program_main(argc, argv, run); }
