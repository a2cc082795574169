// The adjoint of the Lorenz system by hand, compiled for this processor.
#include <array>

#include "benchmarks/native/reversed.h"
#include "benchmarks/native/time_loops.h"

namespace palimpsest::benchmarks::lorenz {
namespace {

using Point = std::array<double, 3>;

struct Rates {
  double sigma, rho, beta;
};

constexpr double h = step_length;

Point slope(const Rates& rates, const Point& p) {
  const auto [x, y, z] = p;
  return {rates.sigma * (y - x), x * (rates.rho - z) - y, x * y - rates.beta * z};
}

Point moved(const Point& p, double length, const Point& k) {
  return {p[0] + length * k[0], p[1] + length * k[1], p[2] + length * k[2]};
}

void advance(const Rates& rates, const Point& p, Point& next) {
  const Point k1 = slope(rates, p);
  const Point k2 = slope(rates, moved(p, h / 2, k1));
  const Point k3 = slope(rates, moved(p, h / 2, k2));
  const Point k4 = slope(rates, moved(p, h, k3));
  for (std::size_t i = 0; i < 3; ++i)
    next[i] = p[i] + h / 6 * (k1[i] + 2 * (k2[i] + k3[i]) + k4[i]);
}

/// The adjoint of p from the adjoint b of the slope there; adds to those of the rates.
Point adjoint_slope(const Rates& rates, const Point& p, const Point& b, Rates& made) {
  const auto [x, y, z] = p;
  made.sigma += (y - x) * b[0];
  made.rho += x * b[1];
  made.beta -= z * b[2];
  return {(rates.rho - z) * b[1] + y * b[2] - rates.sigma * b[0],
          rates.sigma * b[0] - b[1] + x * b[2], -x * b[1] - rates.beta * b[2]};
}

/// Turns the adjoint `a` of the next state into that of p.
void reverse(const Rates& rates, const Point& p, Point& a, Rates& made) {
  const Point p2 = moved(p, h / 2, slope(rates, p));
  const Point p3 = moved(p, h / 2, slope(rates, p2));
  const Point p4 = moved(p, h, slope(rates, p3));
  const auto share = [&](double weight, double length, const Point& q) {
    return Point{weight * a[0] + length * q[0], weight * a[1] + length * q[1],
                 weight * a[2] + length * q[2]};
  };
  const Point q4 = adjoint_slope(rates, p4, share(h / 6, 0, {}), made);
  const Point q3 = adjoint_slope(rates, p3, share(h / 3, h, q4), made);
  const Point q2 = adjoint_slope(rates, p2, share(h / 3, h / 2, q3), made);
  const Point q1 = adjoint_slope(rates, p, share(h / 6, h / 2, q2), made);
  for (std::size_t i = 0; i < 3; ++i) a[i] += q1[i] + q2[i] + q3[i] + q4[i];
}

}  // namespace

std::vector<Tensor> gradient_by_hand(std::uint32_t steps, std::uint32_t states) {
  const Rates rates{sigma, rho, beta};
  const Point first{start[0], start[1], start[2]};
  Point adjoint{};
  Rates made{};
  by_hand::reverse_steps<Point>(
      steps, states, first,
      [&](std::uint32_t, const Point& p, Point& next) { advance(rates, p, next); },
      [&](std::uint32_t step, const Point& p) {
        if (step + 1 == steps) {
          Point end;
          advance(rates, p, end);
          for (std::size_t i = 0; i < 3; ++i) adjoint[i] = 2 * end[i];
        }
        reverse(rates, p, adjoint, made);
      });
  std::vector<Tensor> gradients;
  for (const double each : {adjoint[0], adjoint[1], adjoint[2], made.sigma, made.rho, made.beta}) {
    gradients.push_back(Tensor::scalar(each, DType::f64));
  }
  return gradients;
}

}  // namespace palimpsest::benchmarks::lorenz
