// The time loops as a user of the library writes them.
#include <array>
#include <cmath>

#include "benchmarks/native/time_loops.h"

namespace palimpsest::benchmarks {
namespace {

Var east(const Var& x) { return roll(x, -1, 1); }
Var west(const Var& x) { return roll(x, 1, 1); }
Var north(const Var& x) { return roll(x, -1, 0); }
Var south(const Var& x) { return roll(x, 1, 0); }

/// A field of n × n cells whose values are f(i, j).
template <class F>
Tensor field(std::int64_t n, F f) {
  Tensor made = Tensor::zeros({n, n}, DType::f64);
  const std::span<double> data = made.data<double>();
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) data[static_cast<std::size_t>(i * n + j)] = f(i, j);
  }
  return made;
}

}  // namespace

namespace lorenz {
namespace {

using Point = std::array<Var, 3>;

Point moved(const Point& p, double h, const Point& slope) {
  return {p[0] + h * slope[0], p[1] + h * slope[1], p[2] + h * slope[2]};
}

}  // namespace

Var record(Tape& tape, std::int64_t steps, std::vector<Var>& parameters) {
  for (const double number : {start[0], start[1], start[2], sigma, rho, beta}) {
    parameters.push_back(tape.parameter(Tensor::scalar(number, DType::f64)));
  }
  const Var &s = parameters[3], &r = parameters[4], &b = parameters[5];
  const auto slope = [&](const Point& p) {
    const auto& [x, y, z] = p;
    return Point{s * (y - x), x * (r - z) - y, x * y - b * z};
  };
  const auto step = [&](std::span<const Var> state, const StepNumber&) {
    const Point p{state[0], state[1], state[2]};
    const Point k1 = slope(p);
    const Point k2 = slope(moved(p, step_length / 2, k1));
    const Point k3 = slope(moved(p, step_length / 2, k2));
    const Point k4 = slope(moved(p, step_length, k3));
    std::vector<Var> next;
    for (std::size_t i = 0; i < 3; ++i) {
      next.push_back(p[i] + step_length / 6 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]));
    }
    return next;
  };
  const std::vector<Var> end = scan({parameters[0], parameters[1], parameters[2]}, steps, step);
  return end[0] * end[0] + end[1] * end[1] + end[2] * end[2];
}

}  // namespace lorenz

namespace shallow_water {

Tensor start_heights() {
  const Tensor heights = field(cells, [](std::int64_t i, std::int64_t j) {
    const auto x = static_cast<double>(i - cells / 2);
    const auto y = static_cast<double>(j - cells / 3);
    return 0.1 * std::exp(-0.02 * (x * x + y * y));
  });
  return heights.to(DType::f32);
}

Var record(Tape& tape, std::int64_t steps, std::vector<Var>& parameters) {
  const Tensor still = Tensor::zeros({cells, cells}, DType::f32);
  for (const Tensor& each : {start_heights(), still, still}) {
    parameters.push_back(tape.parameter(each));
  }
  const auto step = [](std::span<const Var> water, const StepNumber&) {
    const Var &h = water[0], &u = water[1], &v = water[2];
    const Var flow_east = u * (1.0 + 0.5 * (h + east(h)));
    const Var flow_north = v * (1.0 + 0.5 * (h + north(h)));
    const Var height =
        h - step_length * (flow_east - west(flow_east) + flow_north - south(flow_north));
    const Var v_there = 0.25 * (v + east(v) + south(v + east(v)));
    const Var u_next =
        u + step_length * (rotation * v_there + height - east(height) - friction * u);
    const Var u_there = 0.25 * (u_next + west(u_next) + north(u_next + west(u_next)));
    const Var v_next =
        v + step_length * (height - north(height) - rotation * u_there - friction * v);
    return std::vector<Var>{height, u_next, v_next};
  };
  const Var end = scan(parameters, steps, step)[0];
  return sum(end * end);
}

}  // namespace shallow_water

namespace gray_scott {
namespace {

bool is_seed(std::int64_t i, std::int64_t j) {
  return std::abs(i - cells / 2) < 10 && std::abs(j - cells / 2) < 16;
}

Var laplacian(const Var& x) { return east(x) + west(x) + north(x) + south(x) - 4.0 * x; }

}  // namespace

Tensor start_u() {
  return field(cells, [](std::int64_t i, std::int64_t j) { return is_seed(i, j) ? 0.5 : 1.0; });
}

Tensor start_v() {
  return field(cells, [](std::int64_t i, std::int64_t j) { return is_seed(i, j) ? 0.25 : 0.0; });
}

Var record(Tape& tape, std::int64_t steps, std::vector<Var>& parameters) {
  const Tensor feeds = Tensor::scalar(feed, DType::f64);
  const Tensor kills = Tensor::scalar(kill, DType::f64);
  for (const Tensor& each : {start_u(), start_v(), feeds, kills}) {
    parameters.push_back(tape.parameter(each));
  }
  const Var &feed_rate = parameters[2], &kill_rate = parameters[3];
  const auto step = [&](std::span<const Var> state, const StepNumber&) {
    const Var &u = state[0], &v = state[1];
    const Var reaction = u * v * v;
    return std::vector<Var>{
        u + diffusion_u * laplacian(u) - reaction + feed_rate * (1.0 - u),
        v + diffusion_v * laplacian(v) + reaction - (feed_rate + kill_rate) * v};
  };
  const Var end = scan({parameters[0], parameters[1]}, steps, step)[1];
  return sum(end * end);
}

}  // namespace gray_scott

namespace lstm {

Tensor sequence(std::int64_t steps) { return Tensor::normal({steps, 1, width}, 1); }
Tensor input_weight() { return Tensor::uniform({width, 4 * width}, 2, -0.2, 0.2); }
Tensor hidden_weight() { return Tensor::uniform({width, 4 * width}, 3, -0.2, 0.2); }
Tensor bias() { return Tensor::uniform({4 * width}, 4, -0.2, 0.2); }

Var record(Tape& tape, std::int64_t steps, std::vector<Var>& parameters) {
  for (const Tensor& each : {input_weight(), hidden_weight(), bias()}) {
    parameters.push_back(tape.parameter(each));
  }
  const CellParameters cell{parameters[0], parameters[1], parameters[2]};
  const Var still = tape.constant(Tensor::zeros({1, width}, DType::f32));
  const Var none = tape.constant(Tensor::scalar(0, DType::f32));
  const auto step = [&](std::span<const Var> state, std::span<const Var> inputs,
                        const StepNumber&) {
    const LstmState next = lstm_cell(inputs[0], {state[0], state[1]}, cell);
    return LoopStep{{next.h, next.c, state[2] + sum(next.h * next.h)}};
  };
  return scan({still, still, none}, steps, {tape.constant(sequence(steps))}, step).state[2];
}

}  // namespace lstm

}  // namespace palimpsest::benchmarks
