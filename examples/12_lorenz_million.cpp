// A million steps of the Lorenz system. Shows what a step of three numbers costs in a
// differentiable loop, and how useful the gradient of a time average over these steps is.
//
// Neighbouring orbits diverge as exp(0.9·t). The derivative of the position at time t grows at the
// same rate, and so does the gradient of an average up to t. This gradient is correct to the last
// digit, but useless after about ten units of time, and it overflows after 800. The average itself
// hardly changes: its sensitivity to rho is 1. The mean of the gradients of many short windows,
// each starting where the orbit is by then, comes close to it (Lea, Allen and Haine, 2000). Windows
// must be as long as the orbit takes to respond, but short enough that its derivative stays small.
// The picture shows both.
//
//   12_lorenz_million [--quick] [--output FOLDER]
#include <palimpsest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "examples/support/panels.h"
#include "examples/support/program_main.h"

using namespace palimpsest;
using namespace examples;

namespace {

constexpr double step_length = 0.01;
/// Three numbers are too little work for a second thread.
const RunOptions one_thread = {.memory_budget = 4_MiB, .threads = 1};

/// x, y and z, as numbers or as values of a tape.
template <class T>
using Point = std::array<T, 3>;

template <class T>
Point<T> moved(const Point<T>& p, double h, const Point<T>& slope) {
  return {p[0] + h * slope[0], p[1] + h * slope[1], p[2] + h * slope[2]};
}

template <class T>
struct Lorenz {
  T sigma, rho, beta;

  Point<T> slope(const Point<T>& p) const {
    const auto& [x, y, z] = p;
    return {sigma * (y - x), x * (rho - z) - y, x * y - beta * z};
  }
  /// One step of the classical Runge-Kutta method.
  Point<T> step(const Point<T>& p) const {
    const Point<T> a = slope(p);
    const Point<T> b = slope(moved(p, step_length / 2, a));
    const Point<T> c = slope(moved(p, step_length / 2, b));
    const Point<T> d = slope(moved(p, step_length, c));
    Point<T> mean;
    for (std::size_t i = 0; i < 3; ++i) mean[i] = (a[i] + 2.0 * (b[i] + c[i]) + d[i]) / 6.0;
    return moved(p, step_length, mean);
  }
};

constexpr Lorenz<double> usual = {10, 28, 8. / 3};
constexpr Point<double> start = {1, 2, 20};

/// The time average of z, in plain C++.
double average(const Lorenz<double>& lorenz, std::int64_t steps) {
  Point<double> p = start;
  double total = 0;
  for (std::int64_t n = 0; n < steps; ++n) {
    p = lorenz.step(p);
    total += p[2];
  }
  return total / static_cast<double>(steps);
}

/// The time average as a loop of windows, each a loop of `window` steps. No derivative flows from a
/// window to the one before it.
Var average(const Lorenz<Var>& lorenz, std::int64_t windows, std::int64_t window) {
  Tape& tape = lorenz.rho.tape();
  std::vector<Var> state;
  for (const double value : {start[0], start[1], start[2], 0.0}) {
    state.push_back(tape.constant(Tensor::scalar(value, DType::f64)));
  }
  const auto step = [&](std::span<const Var> s, const StepNumber&) {
    const auto [x, y, z] = lorenz.step({s[0], s[1], s[2]});
    return std::vector<Var>{x, y, z, s[3] + z};
  };
  const auto run_window = [&](std::span<const Var> s, const StepNumber&) {
    std::vector<Var> cut(s.begin(), s.end());
    for (std::size_t i = 0; i < 3; ++i) cut[i] = stop_gradient(cut[i]);
    // A nested loop has a budget of its own.
    return scan(cut, window, step, {.memory_budget = 2_MiB});
  };
  return scan(state, windows, run_window)[3] / static_cast<double>(windows * window);
}

/// Processor time of `work`, in µs.
template <class F>
double microseconds(F work) {
  const std::clock_t begin = std::clock();
  work();
  return 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// Records the usual coefficients as parameters of `tape`.
Lorenz<Var> record_usual(Tape& tape) {
  const auto record = [&](double x) { return tape.parameter(Tensor::scalar(x, DType::f64)); };
  return {record(usual.sigma), record(usual.rho), record(usual.beta)};
}

/// The derivative of the average of z with respect to rho.
double derivative(std::int64_t windows, std::int64_t window) {
  Tape tape;
  const Lorenz<Var> lorenz = record_usual(tape);
  return backward(average(lorenz, windows, window), one_thread)[lorenz.rho].item();
}

/// The derivative of the average with respect to rho, by the central difference over ±h.
double difference(double h, std::int64_t steps) {
  Lorenz<double> more = usual, less = usual;
  more.rho += h;
  less.rho -= h;
  return (average(more, steps) - average(less, steps)) / (2 * h);
}

/// Prints the time per step; returns the derivative of the average over all steps.
double run_whole(std::int64_t steps) {
  Tape tape;
  const Var mean = average(record_usual(tape), 1, steps);
  double plain = 0, whole = 0;
  const double each = 1 / static_cast<double>(steps);
  const double time_plain = each * microseconds([&] { plain = average(usual, steps); });
  const double time = each * microseconds([&] { evaluate({&mean, 1}, one_thread); });
  const double time_gradient = each * microseconds([&] { whole = derivative(1, steps); });
  std::printf("%lld steps: average of z %.4f, in plain C++ %.4f; derivative %g\n",
              static_cast<long long>(steps), mean.item(), plain, whole);
  std::printf("a step takes %.2f us, with the gradient %.2f us, in plain C++ %.3f us\n", time,
              time_gradient, time_plain);
  return whole;
}

Plot plot_orbit() {
  Plot plot{.title = "the orbit, x and z", .x_label = "x", .curves = {{"", {}}}};
  Point<double> p = start;
  for (int n = 0; n < 4000; ++n) {
    p = usual.step(p);
    plot.curves[0].points.emplace_back(p[0], p[2]);
  }
  return plot;
}

Plot plot_growth(std::int64_t longest) {
  Plot plot{.title = "gradient of one average up to t",
            .x_label = "t",
            .curves = {{"computed", {}}, {"exp(0.9 t) / t", {}}},
            .logarithmic = true};
  for (std::int64_t window = 50; window <= longest; window += 50) {
    const double t = step_length * static_cast<double>(window);
    plot.curves[0].points.emplace_back(t, std::abs(derivative(1, window)));
    plot.curves[1].points.emplace_back(t, std::exp(0.9 * t) / t);
  }
  return plot;
}

/// For several window lengths, the mean gradient of windows that add up to `steps` steps.
Plot plot_windows(std::int64_t steps, double truth) {
  Plot plot{.title = "mean gradient of windows",
            .x_label = "length of a window",
            .curves = {{"windows", {}}, {"long averages", {}}}};
  for (const std::int64_t window : {25, 50, 75, 100, 150, 200, 300}) {
    const double t = step_length * static_cast<double>(window);
    const double found = derivative(steps / window, window);
    std::printf("windows of %.2f: derivative %.3f\n", t, found);
    plot.curves[0].points.emplace_back(t, found);
    plot.curves[1].points.emplace_back(t, truth);
  }
  return plot;
}

bool run(const Arguments& arguments) {
  const std::int64_t steps = arguments.quick ? 20'000 : 1'000'000;
  const double of_window = derivative(1, 200);
  const double by_difference = difference(1e-5, 200);
  std::printf("up to t = 2: derivative %.8f, by differences %.8f\n", of_window, by_difference);
  const double of_whole = run_whole(steps);
  const double truth = difference(2, 1'000'000);
  std::printf("long averages, by differences: %.3f\n", truth);
  const Plot windows = plot_windows(steps, truth);
  const double of_windows = windows.curves[0].points[1].second;
  const Plot growth = plot_growth(arguments.quick ? 500 : 4000);
  write_file(arguments.output + "/12_lorenz_million.svg",
             draw(std::vector<Panel>{plot_orbit(), growth, windows}));
  return all_hold(
      {{std::abs(of_window / by_difference - 1) < 1e-6,
        "over a short time the derivative is that of differences"},
       {!(std::abs(of_whole) < 1e6), "over a long one it is of no use"},
       {std::abs(of_windows - truth) < 0.3, "that of short windows is near long averages'"}});
}

}  // namespace

int main(int argc, char** argv) { return program_main(argc, argv, run); }
