#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "autodiff/dtype.h"
#include "autodiff/parallel.h"
#include "autodiff/tensor.h"

namespace palimpsest {

/// Calls f(p, g, state, n) on chunks of a parameter, its gradient and its state in parallel, with
/// pointers of their dtype. `states` is the number of kinds of state, each of the parameter's
/// shape. No element depends on how the chunks are distributed.
template <std::size_t states, class F>
void update_elements(const Tensor& parameter, const Tensor& gradient, std::span<const Tensor> state,
                     F f) {
  visit_floating(parameter.dtype(), [&]<class T>(T) {
    parallel_chunks(parameter.elements(), grain_for(8), [&](std::int64_t begin, std::int64_t end) {
      std::array<T*, states> rows{};
      std::size_t i = 0;
      for (T*& row : rows) row = state[i++].template data<T>().data() + begin;
      const T* const g = gradient.template data<T>().data() + begin;
      f(parameter.template data<T>().data() + begin, g, rows, end - begin);
    });
  });
}

}  // namespace palimpsest
