#include "tests/autodiff/lattice/lattice_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "tests/autodiff/lattice/lattice_rows.h"

namespace palimpsest::lattice {
namespace {

using Numbers = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The ends of ranges of all functions, and those that parameters of this row set.
Numbers ends_of(const OperationRow& row) {
  Numbers found{0, 1, -1};
  const std::string name = row.operation + ": " + row.label;
  for (const LatticeRow& each : lattice_rows()) {
    if (name.find(each.rows) == name.npos) continue;
    found.insert(found.end(), each.points.begin(), each.points.end());
  }
  return found;
}

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The next number of the dtype above or below.
double neighbour(double x, bool above, DType dtype) {
  const double to = above ? infinity : -infinity;
  if (dtype == DType::f64) return std::nextafter(x, to);
  return std::nextafter(static_cast<float>(x), static_cast<float>(to));
}

/// A point for element `place` of input `input`. `column` is its place along the last axis, and
/// `row` that along the axis before.
struct Place {
  std::uint64_t inputs, input, place, row, column, round;
  DType dtype;

  std::uint64_t drawn(std::uint64_t from) const {
    return mixed((from << 32) + (round << 16) + input * 7919 + 1);
  }
  double of(const Numbers& points) const { return points[drawn(place + 1) % points.size()]; }
};

using Pattern = double (*)(const Place& at, const Numbers& ends);

const Numbers whole{-2, -1, 0, 1, 2, 3};
const Numbers halves{-2.5, -1.5, -0.5, 0, 0.5, 1, 1.5, 2.5};

const std::pair<const char*, Pattern> patterns[] = {
    {"whole numbers", [](const Place& at, const Numbers&) { return at.of(whole); }},
    {"halves", [](const Place& at, const Numbers&) { return at.of(halves); }},
    {"zeros", [](const Place& at, const Numbers&) { return at.of({0.0, -0.0}); }},
    {"equal", [](const Place&, const Numbers&) { return 1.0; }},
    {"equal rows",
     [](const Place& at, const Numbers&) { return whole[at.drawn(at.column + 1) % whole.size()]; }},
    {"ends", [](const Place& at, const Numbers& ends) { return at.of(ends); }},
    {"neighbours",
     [](const Place& at, const Numbers& ends) {
       const std::uint64_t one = at.drawn(at.place + 77);
       const double point = one % 3 == 0   ? at.of(whole)
                            : one % 3 == 1 ? at.of(halves)
                                           : at.of(ends);
       return neighbour(point, one % 2 == 0, at.dtype);
     }},
    {"neighbours of equal",
     [](const Place& at, const Numbers&) {
       const std::uint64_t one = at.drawn(at.place + 78) % 3;
       return one == 2 ? 1.0 : neighbour(1, one == 0, at.dtype);
     }},
    {"positive", [](const Place& at, const Numbers&) { return at.of({0.5, 1, 1.5, 2}); }},
    {"identity", [](const Place& at, const Numbers&) { return at.row == at.column ? 1.0 : 0.0; }},
    {"infinities",
     [](const Place& at, const Numbers&) {
       return at.of({infinity, -infinity, -1, 0, -0.0, 1, 0.5, 2});
     }},
    {"largest",  // one input at each place
     [](const Place& at, const Numbers&) {
       const Numbers ordinary{1, -1, 0.5};
       const std::uint64_t one = mixed(at.place + (at.round << 16));
       if (one % at.inputs != at.input) return at.of(ordinary);
       const double most = at.dtype == DType::f64 ? std::numeric_limits<double>::max()
                                                  : std::numeric_limits<float>::max();
       return one % 64 < 32 ? most : -most;
     }},
    {"least", [](const Place&, const Numbers&) { return -infinity; }},
};

Tensor filled(const Tensor& like, std::uint64_t inputs, std::uint64_t input, Pattern pattern,
              const Numbers& ends, DType dtype, int round) {
  const Shape shape = like.shape();
  const auto columns = static_cast<std::uint64_t>(shape.rank() > 0 ? shape[-1] : 1);
  const auto rows = static_cast<std::uint64_t>(shape.rank() > 1 ? shape[-2] : 1);
  Numbers numbers;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(like.elements()); ++i) {
    const Place at{
        inputs, input, i, i / columns % rows, i % columns, static_cast<std::uint64_t>(round),
        dtype};
    numbers.push_back(pattern(at, ends));
  }
  return Tensor::from(numbers, shape).to(dtype);
}

}  // namespace

std::vector<Points> points_of(const OperationRow& row, DType dtype, int round) {
  const Numbers own = ends_of(row);
  std::vector<Points> all;
  for (const auto& [name, pattern] : patterns) {
    Points points{name, {}, name == std::string_view("largest"), round};
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
      const Tensor& input = row.inputs[i];
      points.inputs.push_back(is_floating(input.dtype())
                                  ? filled(input, row.inputs.size(), i, pattern, own, dtype, round)
                                  : input);
    }
    all.push_back(std::move(points));
  }
  return all;
}

}  // namespace palimpsest::lattice
