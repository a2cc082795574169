#include <limits>
#include <utility>

#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

/// A vector of one number per window of a group; the compiler maps it to the available registers.
template <class T, int width>
struct Lanes {
  using Vector [[gnu::vector_size(width * sizeof(T))]] = T;
};
template <class T, int width>
using Vector = typename Lanes<T, width>::Vector;

/// values[l] = from[l·stride]; reads nothing after the last element. `known` is the stride if that
/// is a compile-time constant, else 0.
template <int known, class T, int width>
[[gnu::always_inline]] inline void load(const T* from, std::int64_t stride,
                                        Vector<T, width>& values) {
  if constexpr (known == 1) {
    __builtin_memcpy(&values, from, sizeof values);
  } else if constexpr (known == 2) {
    Vector<T, width> low, high;
    __builtin_memcpy(&low, from, sizeof low);
    __builtin_memcpy(&high, from + width - 1, sizeof high);
    [&]<int... l>(std::integer_sequence<int, l...>) {
      values = __builtin_shufflevector(low, high, (l < (width + 1) / 2 ? 2 * l : 2 * l + 1)...);
    }(std::make_integer_sequence<int, width>());
  } else {
    T each[width];
    for (int l = 0; l < width; ++l) each[l] = from[l * stride];
    __builtin_memcpy(&values, each, sizeof each);
  }
}

/// Computes windows [k, k + width). Distances within a window must fit an `Offset`.
template <class Offset, int known, class T, int width>
[[gnu::always_inline]] inline void maxima_of(const WindowRun<T>& run, std::int64_t k, T* largest,
                                             std::int64_t* places) {
  Vector<T, width> best, value;
  Vector<Offset, width> from_start{};
  const T* const first = run.x + run.first + k * run.stride;
  load<known, T, width>(first, run.stride, best);
  for (std::int64_t a = 0; a < run.taps[0]; ++a) {
    for (std::int64_t b = 0; b < run.taps[1]; ++b) {
      std::int64_t offset = a * run.step[0] + b * run.step[1];
      for (std::int64_t c = 0; c < run.taps[2]; ++c, offset += run.step[2]) {
        load<known, T, width>(first + offset, run.stride, value);
        // A NaN is taken and kept.
        const auto taken = ~(value <= best) & (best == best);
        const Vector<Offset, width> here = Vector<Offset, width>{} + static_cast<Offset>(offset);
        best = taken ? value : best;
        from_start = __builtin_convertvector(taken, Vector<Offset, width>) ? here : from_start;
      }
    }
  }
  __builtin_memcpy(largest + k, &best, sizeof best);
  if (places == nullptr) return;
  using Places = Vector<std::int64_t, width>;
  Places place{};
  for (int l = 1; l < width; ++l) place[l] = place[l - 1] + run.stride;
  place += __builtin_convertvector(from_start, Places) + (run.first + k * run.stride);
  __builtin_memcpy(places + k, &place, sizeof place);
}

/// The last group overlaps the one before if windows are left over.
template <class Offset, int known, int width, class T>
void in_vectors(const WindowRun<T>& run, T* largest, std::int64_t* places) {
  for (std::int64_t k = 0; k < run.windows; k += width) {
    const std::int64_t begin = k + width <= run.windows ? k : run.windows - width;
    maxima_of<Offset, known, T, width>(run, begin, largest, places);
  }
}

template <class Offset, int known, class T>
void with_stride(const WindowRun<T>& run, T* largest, std::int64_t* places) {
  if (run.windows >= 8) {
    in_vectors<Offset, known, 8>(run, largest, places);
  } else if (run.windows >= 4) {
    in_vectors<Offset, known, 4>(run, largest, places);
  } else {
    in_vectors<Offset, known, 1>(run, largest, places);
  }
}

template <class Offset, class T>
void with_offsets(const WindowRun<T>& run, T* largest, std::int64_t* places) {
  switch (run.stride) {
    case 1:
      return with_stride<Offset, 1>(run, largest, places);
    case 2:
      return with_stride<Offset, 2>(run, largest, places);
    default:
      return with_stride<Offset, 0>(run, largest, places);
  }
}

template <class T>
void maxima(const WindowRun<T>& run, T* largest, std::int64_t* places) {
  // Offsets of the elements' width can be processed in vectors along with them.
  if (sizeof(T) == 4 && run.size <= std::numeric_limits<std::int32_t>::max()) {
    with_offsets<std::int32_t>(run, largest, places);
  } else {
    with_offsets<std::int64_t>(run, largest, places);
  }
}

}  // namespace

void add_pool(Kernels& kernels) {
  kernels.pool_f32 = {maxima<float>};
  kernels.pool_f64 = {maxima<double>};
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
