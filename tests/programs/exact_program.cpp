#include "tests/programs/exact_program.h"

#include <algorithm>
#include <random>

namespace palimpsest {
namespace {

class ExactComposer {
 public:
  ExactComposer(Tape& tape, std::uint64_t seed)
      : tape_(tape), dtype_(seed % 2 == 0 ? DType::f32 : DType::f64) {
    std::seed_seq sequence{static_cast<std::uint32_t>(seed),
                           static_cast<std::uint32_t>(seed >> 32)};
    random_.seed(sequence);
  }

  std::vector<Var> record() {
    keep(parameter(), most_given);
    const int steps = 2 + below(6);
    for (int step = 0; step < steps; ++step) apply();
    Var loss = weighted(pool_.back().x);
    for (const Value& value : pool_) {
      if (below(3) == 0) loss = loss + weighted(value.x);
    }
    std::vector<Var> results{loss, pool_.back().x};
    std::ranges::copy(gradient(loss, parameters_), std::back_inserter(results));
    return results;
  }

 private:
  /// A value whose elements are between −most and most.
  struct Value {
    Var x;
    double most;
  };
  static constexpr double most_given = 3;
  static constexpr double most_kept = 7;

  template <class Number>
  Number below(Number n) {
    return static_cast<Number>(random_() % static_cast<std::uint64_t>(n));
  }
  std::int64_t any_size() {
    constexpr std::int64_t sizes[] = {1, 2, 3, 5, 7, 9, 11, 13, 25, 31, 33, 47};
    return sizes[below(std::size(sizes))];
  }
  Shape any_shape() {
    switch (below(4)) {
      case 0:
      case 1:
        return {any_size()};
      case 2:
        return {1 + below(std::int64_t{3}), 1 + below(std::int64_t{5}), any_size()};
      default:
        return {1 + below(std::int64_t{9}), any_size()};
    }
  }

  /// Whole numbers from `least` to `most`.
  Tensor whole(const Shape& shape, std::int64_t least, std::int64_t most, DType dtype) {
    const Tensor made = Tensor::zeros(shape, DType::f64);
    for (double& each : made.data<double>()) {
      each = static_cast<double>(least + below(most - least + 1));
    }
    return made.to(dtype);
  }
  Var parameter() {
    const auto most = static_cast<std::int64_t>(most_given);
    parameters_.push_back(tape_.parameter(whole(any_shape(), -most, most, dtype_)));
    return parameters_.back();
  }
  Var constant(const Shape& shape) { return tape_.constant(whole(shape, -3, 3, dtype_)); }
  Var positions(const Shape& shape, std::int64_t size) {
    return tape_.constant(whole(shape, 0, size - 1, below(2) == 0 ? DType::i32 : DType::i64));
  }
  Var weighted(const Var& x) { return sum(x * constant(x.shape())); }

  /// Keeps a value; first limits it, so that numbers stay small.
  void keep(const Var& x, double most) {
    if (most <= most_kept) {
      pool_.push_back({x, most});
    } else {
      pool_.push_back({clamp(x, -most_kept, most_kept), most_kept});
    }
  }
  Value any() { return pool_[below(3) == 0 ? below(pool_.size()) : pool_.size() - 1]; }

  /// Elements of x in another shape, some of them repeated.
  Var reshaped(const Var& x, const Shape& shape) {
    const std::int64_t n = shape.elements();
    const std::int64_t m = x.shape().elements();
    const std::int64_t times = (n + m - 1) / m;
    Var row = reshape(broadcast_to(reshape(x, {1, m}), {times, m}), {-1});
    if (times * m > n) {
      const std::int64_t first = below(times * m - n + 1);
      row = slice(row, 0, {.start = first, .stop = first + n});
    }
    return reshape(row, shape);
  }
  /// Another value that broadcasts to x's shape.
  Value beside(const Var& x) {
    const Value other = any();
    if (other.x.shape() == x.shape()) return other;
    std::vector<std::int64_t> sizes;
    for (int axis = 0; axis < x.rank(); ++axis) {
      sizes.push_back(below(4) == 0 ? 1 : x.shape()[axis]);
    }
    return {reshaped(other.x, Shape(sizes)), other.most};
  }
  Var mask(const Var& x) {
    switch (below(8)) {
      case 0:
        return tape_.constant(whole(x.shape(), 0, 1, DType::boolean));
      case 1:
        return x >= max(x, {below(x.rank())}, true) - 1.0;
      case 2:
        return logical_and(x >= beside(x).x, x < 3.0);
      default:
        return x >= beside(x).x;
    }
  }

  void apply() {
    const Value a = any();
    if (a.x.shape().elements() > 600) {
      return keep(slice(reshape(a.x, {-1}), 0, {.stop = 1 + below(std::int64_t{60})}), a.most);
    }
    switch (below(14)) {
      case 0:
        return keep(parameter(), most_given);
      case 1:
      case 2:
        return combine(a);
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
        return choose(a);
      case 8:
      case 9:
        return change(a);
      case 10:
        return move(a);
      case 11:
        return look_up(a);
      case 12:
        return reduce(a);
      default:
        return multiply_matrices(a);
    }
  }

  void combine(const Value& a) {
    const Value b = beside(a.x);
    switch (below(5)) {
      case 0:
        return keep(a.x + b.x, a.most + b.most);
      case 1:
        return keep(a.x - b.x, a.most + b.most);
      case 2:
        return keep(maximum(a.x, b.x), std::max(a.most, b.most));
      case 3:
        return keep(minimum(a.x, b.x), std::max(a.most, b.most));
      default:
        // Derivatives grow with each product; those of f32 have room for two.
        if (++products_ > 2) return keep(a.x + b.x, a.most + b.most);
        return keep(a.x * b.x, a.most * b.most);
    }
  }

  void choose(const Value& a) {
    const Value b = beside(a.x);
    const double most = std::max(a.most, b.most);
    switch (below(4)) {
      case 0:
        return keep(where(mask(a.x), a.x, 2.0), std::max(a.most, 2.0));
      case 1:
        return keep(where(mask(a.x), 0.0, a.x) + cast(mask(b.x), dtype_), most + 1);
      default:
        return keep(where(mask(a.x), a.x, b.x), most);
    }
  }

  void change(const Value& a) {
    switch (below(6)) {
      case 0:
        return keep(-a.x, a.most);
      case 1:
        return keep(abs(a.x), a.most);
      case 2:
        return keep(relu(a.x), a.most);
      case 3:
        return keep(clamp(a.x, -2, 3), 3);
      case 4:
        return keep(2.0 - a.x, a.most + 2);
      default:
        return keep(a.x * 2.0, 2 * a.most);
    }
  }

  void move(const Value& a) {
    const int axis = below(a.x.rank());
    const std::int64_t size = a.x.shape()[axis];
    switch (below(7)) {
      case 0:
        return keep(roll(a.x, 1 + below(std::int64_t{3}), axis), a.most);
      case 1:
        return keep(flip(a.x, {axis}), a.most);
      case 2:
        return keep(slice(a.x, axis, {.start = below(size), .step = 1 + below(std::int64_t{2})}),
                    a.most);
      case 3: {
        std::vector<Padding> widths(static_cast<std::size_t>(a.x.rank()));
        widths[static_cast<std::size_t>(axis)] = {below(std::int64_t{3}), 1};
        return keep(pad(a.x, widths, 1), std::max(a.most, 1.0));
      }
      case 4:
        return keep(concat({a.x, roll(a.x, 1, axis)}, axis), a.most);
      case 5:
        return keep(a.x.rank() < 2 ? reshape(a.x, {-1, 1}) : transpose(a.x), a.most);
      default:
        return keep(reshape(a.x, {-1}), a.most);
    }
  }

  void look_up(const Value& a) {
    const int axis = below(a.x.rank());
    const std::int64_t size = a.x.shape()[axis];
    const std::int64_t count = any_size();
    switch (below(3)) {
      case 0:
        return keep(index_select(a.x, axis, positions({count}, size)), a.most);
      case 1:
        return keep(gather(a.x, axis, positions(a.x.shape(), size)), a.most);
      default:
        return keep(index_add(a.x, axis, positions({size}, count), count),
                    a.most * static_cast<double>(size));
    }
  }

  void reduce(const Value& a) {
    const int axis = below(a.x.rank());
    const double most = a.most * static_cast<double>(a.x.shape()[axis]);
    if (below(3) == 0) return keep(cumsum(a.x, axis), most);
    return keep(sum(a.x, {axis}, a.x.rank() == 1 || below(2) == 0), most);
  }

  void multiply_matrices(const Value& a) {
    const std::int64_t rows = 1 + below(std::int64_t{7});
    const std::int64_t inner = 1 + below(std::int64_t{9});
    const std::int64_t columns = 1 + below(std::int64_t{11});
    const Value b = any();
    if (++products_ > 2) return keep(reshaped(a.x, {rows, columns}), a.most);
    keep(matmul(reshaped(a.x, {rows, inner}), reshaped(b.x, {inner, columns})),
         a.most * b.most * static_cast<double>(inner));
  }

  Tape& tape_;
  DType dtype_;
  std::mt19937_64 random_;
  std::vector<Var> parameters_;
  std::vector<Value> pool_;
  int products_ = 0;
};

}  // namespace

std::vector<Var> record_exact(Tape& tape, std::uint64_t seed) {
  return ExactComposer(tape, seed).record();
}

}  // namespace palimpsest
