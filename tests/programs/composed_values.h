#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "palimpsest.h"
#include "tests/programs/composed_program.h"

namespace palimpsest {

/// The values of a random program that is being recorded, and the draws that decide about it.
class ComposedValues {
 protected:
  ComposedValues(Tape& tape, std::uint64_t seed, std::span<const Var> parameters)
      : tape_(tape), seed_(seed), given_(parameters) {}

  void draw_from(std::uint32_t number) {
    // Generators with neighbouring seeds start with similar numbers; seed_seq mixes the seeds.
    std::seed_seq sequence{static_cast<std::uint32_t>(seed_),
                           static_cast<std::uint32_t>(seed_ >> 32), number};
    random_.seed(sequence);
  }
  template <class Number>
  Number below(Number n) {
    return static_cast<Number>(random_() % static_cast<std::uint64_t>(n));
  }
  int axis_of(const Var& x) { return below(x.rank()); }

  DType any_dtype() {
    constexpr DType dtypes[] = {DType::f64, DType::f64, DType::f64,  DType::f32,
                                DType::f32, DType::f32, DType::bf16, DType::f16};
    return dtypes[below(std::size(dtypes))];
  }

  Var parameter(const Tensor& tensor) {
    const std::size_t number = made_.parameters.size();
    // A copy, because optimizers change parameters, and rows may share their inputs.
    made_.parameters.push_back(given_.empty() ? tape_.parameter(tensor.clone()) : given_[number]);
    return made_.parameters.back();
  }

  void keep(const std::string& line, const Var& value) {
    made_.lines.push_back(line + " -> " + to_string(value.type()));
    pool_.push_back(value);
  }

  /// A random value: mostly a recent one, sometimes an old one.
  Var any() {
    const std::size_t recent = std::min<std::size_t>(pool_.size(), 3);
    return below(3) == 0 ? pool_[below(pool_.size())] : pool_[pool_.size() - 1 - below(recent)];
  }
  /// Numbers between −1 and 1, so that values do not grow without limit.
  Var bounded(DType dtype) {
    const Var value = any();
    return tanh(value.dtype() == dtype ? value : cast(value, dtype));
  }
  Var bounded() {
    const Var value = any();
    return tanh(is_floating(value.dtype()) ? value : cast(value, DType::f32));
  }

  /// Elements of x in another shape, some of them repeated.
  Var reshaped(const Var& x, const Shape& shape) {
    const std::int64_t n = shape.elements();
    const std::int64_t m = x.shape().elements();
    if (m == 0) return full(tape_, shape, 0.5, x.dtype());
    Var row = reshape(x, {-1});
    if (m < n) {
      const std::int64_t times = (n + m - 1) / m;
      row = reshape(broadcast_to(reshape(row, {1, m}), {times, m}), {-1});
    }
    if (const std::int64_t left = row.shape()[0] - n; left > 0) {
      const std::int64_t first = below(left + 1);
      row = slice(row, 0, {.start = first, .stop = first + n});
    }
    return reshape(row, shape);
  }
  Var like(const Var& x, const Var& other) {
    return x.shape() == other.shape() ? x : reshaped(x, other.shape());
  }

  Tape& tape_;
  std::uint64_t seed_;
  std::span<const Var> given_;
  std::mt19937_64 random_;
  std::vector<Var> pool_;
  ComposedProgram made_;
};

}  // namespace palimpsest
