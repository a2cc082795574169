#include <Eigen/Core>
#include <algorithm>
#include <utility>

#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

namespace simd = Eigen::internal;

template <class T>
using PlanePacket = typename simd::packet_traits<T>::type;
template <class T>
constexpr int plane_lanes = simd::packet_traits<T>::size;

// A tile of C is held in registers: six rows, and as many vectors as leave room for B and A.
constexpr int plane_rows = 6;
constexpr int plane_vectors = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 4 : 2;

/// Calls f(0) … f(count − 1) with compile-time constants, so that arrays they index become
/// registers.
template <int count, class F>
void unroll(F f) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (f(std::integral_constant<int, i>()), ...);
  }(std::make_integer_sequence<int, count>());
}

/// Computes a tile of rows × vectors of the product and writes it to `c`.
template <class T, int rows, int vectors>
void tile(const OffsetProduct<T>& p, std::int64_t first_row, std::int64_t first_column, T* c,
          std::int64_t c_row, bool accumulate) {
  PlanePacket<T> sum[rows][vectors];
  const T* a[rows];
  unroll<rows>([&](auto i) {
    a[i] = p.a + p.a_row[first_row + i];
    const T start = p.start != nullptr ? p.start[first_row + i] : T(0);
    unroll<vectors>([&](auto v) {
      sum[i][v] = accumulate ? simd::ploadu<PlanePacket<T>>(c + i * c_row + v * plane_lanes<T>)
                             : simd::pset1<PlanePacket<T>>(start);
    });
  });
  for (std::int64_t l = 0; l < p.k; ++l) {
    const std::int64_t depth = p.a_depth[l];
    const T* b = p.b + p.b_depth[l] + first_column;
    PlanePacket<T> row[vectors];
    unroll<vectors>([&](auto v) { row[v] = simd::ploadu<PlanePacket<T>>(b + v * plane_lanes<T>); });
    unroll<rows>([&](auto i) {
      const PlanePacket<T> factor = simd::pset1<PlanePacket<T>>(a[i][depth]);
      unroll<vectors>([&](auto v) { sum[i][v] = simd::pmadd(factor, row[v], sum[i][v]); });
    });
  }
  unroll<rows>([&](auto i) {
    unroll<vectors>([&](auto v) { simd::pstoreu(c + i * c_row + v * plane_lanes<T>, sum[i][v]); });
  });
}

/// The last `width` < plane_lanes columns. They are computed as the end of a whole vector, or as
/// its beginning if there are no more columns. The vector is computed outside of C: written there,
/// its other columns would be added twice.
template <class T, int rows>
void narrow_tile(OffsetProduct<T> p, std::int64_t first_row, std::int64_t width) {
  const std::int64_t first = std::max<std::int64_t>(p.n - plane_lanes<T>, 0);
  if (p.accumulate) p.start = nullptr;
  T beside[rows * plane_lanes<T>];
  tile<T, rows, 1>(p, first_row, first, beside, plane_lanes<T>, false);
  for (int i = 0; i < rows; ++i) {
    T* c = p.c + (first_row + i) * p.c_row;
    const T* made = beside + i * plane_lanes<T> - first;
    for (std::int64_t j = p.n - width; j < p.n; ++j) c[j] = p.accumulate ? c[j] + made[j] : made[j];
  }
}

template <class T, int rows>
void row_of_tiles(const OffsetProduct<T>& p, std::int64_t first_row) {
  std::int64_t j = 0;
  const auto advance = [&](auto vectors) {
    constexpr std::int64_t width = vectors * plane_lanes<T>;
    for (; p.n - j >= width; j += width) {
      tile<T, rows, vectors>(p, first_row, j, p.c + first_row * p.c_row + j, p.c_row, p.accumulate);
    }
  };
  unroll<plane_vectors>([&](auto i) { advance(std::integral_constant<int, plane_vectors - i>()); });
  if (j < p.n) narrow_tile<T, rows>(p, first_row, p.n - j);
}

/// Rows are distributed evenly: a tile of few rows would spend its time loading B.
template <class T>
void product(const OffsetProduct<T>& p) {
  for (std::int64_t i = 0; i < p.m;) {
    const std::int64_t tiles = (p.m - i + plane_rows - 1) / plane_rows;
    const std::int64_t count = (p.m - i + tiles - 1) / tiles;
    unroll<plane_rows>([&](auto less) {
      constexpr int rows = less + 1;
      if (count == rows) row_of_tiles<T, rows>(p, i);
    });
    i += count;
  }
}

template <class T, int rows>
void dot_tile(const RowDots<T>& p, std::int64_t first) {
  PlanePacket<T> sum[rows];
  const T* a[rows];
  unroll<rows>([&](auto i) {
    a[i] = p.a + p.a_row[first + i];
    sum[i] = simd::pset1<PlanePacket<T>>(T(0));
  });
  std::int64_t j = 0;
  for (; j + plane_lanes<T> <= p.n; j += plane_lanes<T>) {
    const PlanePacket<T> b = simd::ploadu<PlanePacket<T>>(p.b + j);
    unroll<rows>(
        [&](auto i) { sum[i] = simd::pmadd(simd::ploadu<PlanePacket<T>>(a[i] + j), b, sum[i]); });
  }
  unroll<rows>([&](auto i) {
    T total = simd::predux(sum[i]);
    for (std::int64_t rest = j; rest < p.n; ++rest) total += a[i][rest] * p.b[rest];
    p.c[first + i] = p.accumulate ? p.c[first + i] + total : total;
  });
}

template <class T>
void dots(const RowDots<T>& p) {
  std::int64_t i = 0;
  for (; p.m - i >= 4; i += 4) dot_tile<T, 4>(p, i);
  for (; i < p.m; ++i) dot_tile<T, 1>(p, i);
}

/// Writes at least n zeros, in whole vectors.
template <class T>
void clear(std::int64_t n, T* to) {
  const PlanePacket<T> zeros = simd::pset1<PlanePacket<T>>(T(0));
  for (std::int64_t i = 0; i < n; i += plane_lanes<T>) simd::pstoreu(to + i, zeros);
}

/// Copies n elements `step` apart. With `overrun`, reads and writes whole vectors.
template <class T>
void copy(const T* from, std::int64_t step, std::int64_t n, bool overrun, T* to) {
  if (step == 1 && overrun) {
    for (std::int64_t i = 0; i < n; i += plane_lanes<T>) {
      simd::pstoreu(to + i, simd::ploadu<PlanePacket<T>>(from + i));
    }
  } else if (step == 1) {
    std::copy(from, from + n, to);
  } else if (step == 2) {  // a constant, from which the compiler makes shuffles
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[step * i];
  }
}

/// True if the rows of the grid are shifted rows of the source, as for all taps of a convolution
/// that keeps the size. Source and target then have the same layout.
template <class T>
bool is_shift(const GridRead<T>& r) {
  return r.axes[1].step == 1 && r.axes[2].step == 1 && r.axes[2].positions == r.axes[2].source;
}

/// Reads a shifted grid. It copies whole planes of rows, then clears the columns that the shift has
/// carried over from the next row.
template <class T>
void read_shifted(const GridRead<T>& r) {
  const GridAxis outer = r.axes[0];
  const GridAxis middle = r.axes[1];
  const std::int64_t width = r.axes[2].source;
  const std::int64_t across = r.axes[2].base;
  const std::int64_t plane = middle.positions * width;
  const std::int64_t source_plane = middle.source * width;
  const std::int64_t shift = middle.base * width + across;
  const T* const end_of_source = r.source + outer.source * source_plane;
  const std::int64_t top = std::clamp<std::int64_t>(-middle.base, 0, middle.positions) * width;
  const std::int64_t bottom =
      std::clamp<std::int64_t>(middle.source - middle.base, 0, middle.positions) * width;
  const std::int64_t first_column = across < 0 ? 0 : std::max<std::int64_t>(width - across, 0);
  const std::int64_t last_column = across < 0 ? std::min(-across, width) : width;
  const std::int64_t last = r.last;
  T* target = r.target;
  const T* const source = r.source;
  for (std::int64_t at = r.first; at < last;) {
    const std::int64_t outer_position = at / plane;
    const std::int64_t begin = at - outer_position * plane;
    const std::int64_t end = std::min(plane, begin + last - at);
    const std::int64_t i = outer_position * outer.step + outer.base;
    T* const row = target - begin;  // address of the plane's position 0
    target += end - begin;
    at += end - begin;
    if (i < 0 || i >= outer.source) {
      clear(end - begin, row + begin);
      continue;
    }
    const std::int64_t inside = std::clamp(top, begin, end);
    const std::int64_t outside = std::clamp(bottom, inside, end);
    const std::int64_t from = std::clamp(-shift, inside, outside);
    const std::int64_t to = std::clamp(source_plane - shift, from, outside);
    clear(from - begin, row + begin);
    const T* const read = source + i * source_plane + shift + from;
    copy(read, 1, to - from, end_of_source - read >= to - from + plane_lanes<T>, row + from);
    clear(end - to, row + to);
    for (std::int64_t j = inside / width * width; j < outside; j += width) {
      for (std::int64_t c = j + first_column; c < j + last_column; ++c) {
        if (c >= inside && c < outside) row[c] = T(0);
      }
    }
  }
}

template <class T>
void read(const GridRead<T>& r) {
  if (is_shift(r)) return read_shifted(r);
  // Copies, because the compiler must assume that vector stores alias `r`.
  const GridAxis outer = r.axes[0];
  const GridAxis middle = r.axes[1];
  const GridAxis inner = r.axes[2];
  const T* const source = r.source;
  // The first position that reads at or after `index`.
  const auto reaching = [&](std::int64_t index) {
    const std::int64_t ahead = index - inner.base;
    return ahead <= 0 ? 0 : std::min((ahead + inner.step - 1) / inner.step, inner.positions);
  };
  const std::int64_t low = reaching(0);
  const std::int64_t high = std::max(low, reaching(inner.source));
  const T* const end_of_source = source + outer.source * middle.source * inner.source;
  const std::int64_t row = r.first / inner.positions;
  std::int64_t begin = r.first % inner.positions;
  std::int64_t outer_position = row / middle.positions;
  std::int64_t middle_position = row % middle.positions;
  T* target = r.target;
  T* const end_of_target = target + (r.last - r.first);
  while (target < end_of_target) {
    const std::int64_t end = std::min(inner.positions, begin + (end_of_target - target));
    const std::int64_t i = outer_position * outer.step + outer.base;
    const std::int64_t j = middle_position * middle.step + middle.base;
    T* const next = target + (end - begin);
    if (i < 0 || i >= outer.source || j < 0 || j >= middle.source) {
      clear(next - target, target);
    } else {
      const std::int64_t first = std::clamp(low, begin, end);
      const std::int64_t last = std::clamp(high, first, end);
      T* const inside = target + (first - begin);
      clear(inside - target, target);
      const T* from = source + (i * middle.source + j) * inner.source + inner.base;
      from += first * inner.step;
      const bool overrun = end_of_source - from >= last - first + plane_lanes<T>;
      copy(from, inner.step, last - first, overrun, inside);
      clear(end - last, inside + (last - first));
    }
    target = next;
    begin = 0;
    if (++middle_position == middle.positions) {
      middle_position = 0;
      ++outer_position;
    }
  }
}

template <class T>
void transpose(const T* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns, T* to,
               std::int64_t to_row) {
  constexpr std::int64_t side = plane_lanes<T>;
  const std::int64_t whole_rows = rows / side * side;
  const std::int64_t whole_columns = columns / side * side;
  for (std::int64_t j = 0; j < whole_columns; j += side) {
    for (std::int64_t i = 0; i < whole_rows; i += side) {
      simd::PacketBlock<PlanePacket<T>, plane_lanes<T>> block;
      unroll<plane_lanes<T>>([&](auto r) {
        block.packet[r] = simd::ploadu<PlanePacket<T>>(from + (i + r) * from_row + j);
      });
      simd::ptranspose(block);
      unroll<plane_lanes<T>>(
          [&](auto r) { simd::pstoreu(to + (j + r) * to_row + i, block.packet[r]); });
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t done = i < whole_rows ? whole_columns : 0;
    for (std::int64_t j = done; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
  }
}

template <class T>
constexpr ConvolutionKernels<T> convolution_table{product<T>, dots<T>, read<T>, transpose<T>};

}  // namespace

void add_convolution(Kernels& kernels) {
  kernels.convolution_f32 = convolution_table<float>;
  kernels.convolution_f64 = convolution_table<double>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
