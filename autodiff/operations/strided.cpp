#include "autodiff/operations/strided.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

/// The box without axes of size 1 and with adjacent axes merged where both tensors allow it. At
/// least one axis remains.
StridedBox simplified(const StridedBox& box) {
  StridedBox result;
  for (int axis = 0; axis < box.sizes.rank(); ++axis) {
    const std::int64_t size = box.sizes[axis];
    if (size == 1) continue;
    const int last = result.sizes.rank() - 1;
    if (last >= 0 && result.from[at(last)] == box.from[at(axis)] * size &&
        result.to[at(last)] == box.to[at(axis)] * size) {
      result.sizes[last] *= size;
      result.from[at(last)] = box.from[at(axis)];
      result.to[at(last)] = box.to[at(axis)];
    } else {
      result.from[at(last + 1)] = box.from[at(axis)];
      result.to[at(last + 1)] = box.to[at(axis)];
      result.sizes.push_back(size);
    }
  }
  if (result.sizes.rank() == 0) result.sizes.push_back(1);
  return result;
}

/// Walks the positions of a box in order, starting at number `index`.
class Walk {
 public:
  Walk(const StridedBox& box, std::int64_t index) : box_(box) {
    for (int axis = box.sizes.rank() - 1; axis >= 0; --axis) {
      place_[at(axis)] = index % box.sizes[axis];
      index /= box.sizes[axis];
      from += place_[at(axis)] * box.from[at(axis)];
      to += place_[at(axis)] * box.to[at(axis)];
    }
  }
  void next() {
    for (int axis = box_.sizes.rank() - 1; axis >= 0; --axis) {
      from += box_.from[at(axis)];
      to += box_.to[at(axis)];
      if (++place_[at(axis)] < box_.sizes[axis]) return;
      from -= place_[at(axis)] * box_.from[at(axis)];
      to -= place_[at(axis)] * box_.to[at(axis)];
      place_[at(axis)] = 0;
    }
  }
  std::int64_t from = 0;
  std::int64_t to = 0;

 private:
  const StridedBox& box_;
  Strides place_{};
};

/// An axis of a box: its size and strides. `take_axis` removes it from the box.
struct Axis {
  std::int64_t size;
  std::int64_t from;
  std::int64_t to;
};
Axis take_axis(StridedBox& box, int axis) {
  const Axis taken{box.sizes[axis], box.from[at(axis)], box.to[at(axis)]};
  box.sizes.erase(axis);
  std::copy(box.from.begin() + axis + 1, box.from.end(), box.from.begin() + axis);
  std::copy(box.to.begin() + axis + 1, box.to.end(), box.to.begin() + axis);
  return taken;
}

/// Copies up to 128 bytes: the first and the last ones, which may overlap. A call of memcpy, which
/// compilers also make of a loop, takes longer than this.
void copy_few(const void* from, void* to, std::size_t bytes) {
  const auto in_two = [&]<std::size_t size>(std::integral_constant<std::size_t, size>) {
    std::array<std::byte, size> first;
    std::array<std::byte, size> last;
    std::memcpy(first.data(), from, size);
    std::memcpy(last.data(), static_cast<const std::byte*>(from) + bytes - size, size);
    std::memcpy(to, first.data(), size);
    std::memcpy(static_cast<std::byte*>(to) + bytes - size, last.data(), size);
  };
  if (bytes >= 64) return in_two(std::integral_constant<std::size_t, 64>());
  if (bytes >= 32) return in_two(std::integral_constant<std::size_t, 32>());
  if (bytes >= 16) return in_two(std::integral_constant<std::size_t, 16>());
  if (bytes >= 8) return in_two(std::integral_constant<std::size_t, 8>());
  if (bytes >= 4) return in_two(std::integral_constant<std::size_t, 4>());
  if (bytes >= 2) return in_two(std::integral_constant<std::size_t, 2>());
  if (bytes == 1) in_two(std::integral_constant<std::size_t, 1>());
}

template <class T>
void copy_row(const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t n) {
  if (from_step == 1 && to_step == 1) {
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    if (bytes > 128) {
      std::memcpy(to, from, bytes);
    } else {
      copy_few(from, to, bytes);
    }
  } else if (from_step == 0 && to_step == 1) {
    std::fill_n(to, n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

template <class T>
void copy_rows(StridedBox rows, const Axis& row, const T* from, T* to) {
  const std::int64_t count = rows.sizes.elements();
  if (count == 1) {
    parallel_chunks(row.size, grain_for(1), [&](std::int64_t begin, std::int64_t end) {
      copy_row(from + begin * row.from, row.from, to + begin * row.to, row.to, end - begin);
    });
    return;
  }
  const double cost = static_cast<double>(row.size) + 8;
  parallel_chunks(count, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    Walk walk(rows, begin);
    for (std::int64_t i = begin; i < end; ++i, walk.next()) {
      copy_row(from + walk.from, row.from, to + walk.to, row.to, row.size);
    }
  });
}

/// Copies a plane with one axis contiguous in `from` and the other in `to`. Copies square tiles
/// through a small array that stays in the cache, so that both tensors are accessed by cache lines.
template <class T>
void transpose_strip(const T* from, const Axis& across, T* to, const Axis& along) {
  constexpr std::int64_t side = 32;
  alignas(64) T square[side * side];
  for (std::int64_t j = 0; j < along.size; j += side) {
    const std::int64_t width = std::min(side, along.size - j);
    for (std::int64_t l = 0; l < width; ++l) {
      const T* line = from + (j + l) * along.from;
      for (std::int64_t i = 0; i < across.size; ++i) square[i * side + l] = line[i];
    }
    for (std::int64_t i = 0; i < across.size; ++i) {
      std::copy_n(square + i * side, width, to + i * across.to + j);
    }
  }
}

template <class T>
void transpose_planes(const StridedBox& planes, const Axis& across, const Axis& along,
                      const T* from, T* to) {
  constexpr std::int64_t side = 32;
  const std::int64_t strips = (across.size + side - 1) / side;
  const auto cost = static_cast<double>(along.size * std::min(across.size, side)) + 16;
  parallel_chunks(planes.sizes.elements() * strips, grain_for(cost),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const Walk plane(planes, i / strips);
                      const std::int64_t first = i % strips * side;
                      const Axis part{std::min(side, across.size - first), 1, across.to};
                      transpose_strip(from + plane.from + first, part,
                                      to + plane.to + first * across.to, along);
                    }
                  });
}

/// Copies `count` rows of `row.size` elements, `step` apart in `from`, to a contiguous result. Rows
/// are often short, so it has loops of its own for repeated elements and repeated rows.
template <class T>
void copy_line(const T* from, std::int64_t step, const Axis& row, T* to, std::int64_t count) {
  const std::int64_t size = row.size;
  const auto repeat_row = [&]<std::size_t bytes>(std::integral_constant<std::size_t, bytes>) {
    std::array<std::byte, bytes> word;
    std::memcpy(word.data(), from, bytes);
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * size, word.data(), bytes);
  };
  const auto row_bytes = size * std::int64_t{sizeof(T)};
  if (step == 0 && row.from == 1 && count < 16) {
    if (row_bytes == 8) return repeat_row(std::integral_constant<std::size_t, 8>());
    if (row_bytes == 16) return repeat_row(std::integral_constant<std::size_t, 16>());
  }
  if (step == 0 && count > 1) {
    copy_row(from, row.from, to, 1, size);
    const std::int64_t total = count * size;
    for (std::int64_t done = size; done < total; done *= 2) {
      copy_row(to, 1, to + done, 1, std::min(done, total - done));
    }
    return;
  }
  constexpr std::int64_t short_row = 16;
  if (row.from == 0 && size < short_row) {
    const auto repeat = [&](std::int64_t times) {
      for (std::int64_t i = 0; i < count; ++i, to += times) {
        const T element = from[i * step];
        for (std::int64_t k = 0; k < times; ++k) to[k] = element;
      }
    };
    if (size == 2) return repeat(2);
    if (size == 3) return repeat(3);
    if (size == 4) return repeat(4);
    return repeat(size);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    copy_row(from + i * step, row.from, to + i * size, 1, size);
  }
}

/// Copies elements [begin, begin + n) of a box of several axes to a contiguous result.
template <class T>
void copy_run(const StridedBox& box, const T* from, T* to, std::int64_t begin, std::int64_t n) {
  StridedBox lines = box;
  const Axis row = take_axis(lines, lines.sizes.rank() - 1);
  const Axis line = take_axis(lines, lines.sizes.rank() - 1);
  std::int64_t place = begin % row.size;               // in the row
  std::int64_t number = begin / row.size % line.size;  // of the row in its line
  Walk walk(lines, begin / row.size / line.size);
  while (n > 0) {
    const T* const first = from + walk.from + number * line.from;
    std::int64_t done;
    if (place > 0 || n < row.size) {
      done = std::min(n, row.size - place);
      copy_row(first + place * row.from, row.from, to, 1, done);
      place = 0;
      ++number;
    } else {
      const std::int64_t count = std::min(n / row.size, line.size - number);
      copy_line(first, line.from, row, to, count);
      done = count * row.size;
      number += count;
    }
    to += done;
    n -= done;
    if (number == line.size) {
      number = 0;
      walk.next();
    }
  }
}

template <class T>
void copy_box(StridedBox box, const T* from, T* to) {
  const int end = box.sizes.rank() - 1;
  const std::int64_t length = box.sizes[end];
  if (box.to[at(end)] == 1 && box.from[at(end)] != 1 && box.from[at(end)] != 0) {
    for (int axis = 0; axis < end; ++axis) {
      if (box.from[at(axis)] != 1) continue;
      // With few long rows, as in pixel_shuffle, square tiles do not pay.
      const bool few = length < 8 && box.sizes[axis] > length;
      const Axis across = take_axis(box, axis);
      if (few) return copy_rows(box, across, from, to);
      const Axis last = take_axis(box, end - 1);
      return transpose_planes(box, across, last, from, to);
    }
  }
  const Axis last = take_axis(box, end);
  copy_rows(box, last, from, to);
}

/// True when `copy_run` copies the box: its result is contiguous, and rows need no transposition.
bool is_run(const StridedBox& box) {
  const int rank = box.sizes.rank();
  if (rank < 2 || box.to != strides_of(box.sizes)) return false;
  const std::int64_t step = box.from[at(rank - 1)];
  return step == 0 || step == 1;
}

/// Calls `f` with a word of the element's size.
template <class F>
void visit_word(std::int64_t element_bytes, F f) {
  switch (element_bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

}  // namespace

Gather::Gather(const Shape& sizes, const Access& access)
    : box_(simplified({sizes, access.strides, strides_of(sizes)})), offset_(access.offset) {}

bool Gather::has_rows(std::int64_t shortest) const {
  const int last = box_.sizes.rank() - 1;
  const std::int64_t inner = box_.from[at(last)];
  return (inner == 0 || inner == 1) && (last == 0 || box_.sizes[last] >= shortest);
}

void Gather::copy(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t n,
                  std::int64_t element_bytes) const {
  visit_word(element_bytes, [&]<class T>(T) {
    const T* const first = reinterpret_cast<const T*>(from) + offset_;
    T* const out = reinterpret_cast<T*>(to);
    if (box_.sizes.rank() == 1) {
      copy_row(first + begin * step(), step(), out, 1, n);
    } else {
      copy_run(box_, first, out, begin, n);
    }
  });
}

void copy_strided(const StridedBox& box, const std::byte* from, std::byte* to,
                  std::int64_t element_bytes) {
  if (box.sizes.elements() == 0) return;
  const StridedBox simple = simplified(box);
  visit_word(element_bytes, [&]<class T>(T) {
    const T* const first = reinterpret_cast<const T*>(from);
    T* const out = reinterpret_cast<T*>(to);
    if (!is_run(simple)) return copy_box(simple, first, out);
    parallel_chunks(simple.sizes.elements(), grain_for(1), [&](auto begin, auto end) {
      copy_run(simple, first, out + begin, begin, end - begin);
    });
  });
}

void fill_box(const Operand& y, std::int64_t offset, const Shape& sizes, double value) {
  const Tensor element = Tensor::full({}, value, y.dtype());
  const std::int64_t bytes = size_of(y.dtype());
  copy_strided({sizes, {}, strides_of(y.shape())}, element.raw(), y.data + offset * bytes, bytes);
}

}  // namespace palimpsest
