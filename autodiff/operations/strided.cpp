#include "autodiff/operations/strided.h"

#include <algorithm>
#include <cstring>

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

template <class T>
void copy_row(const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t n) {
  if (from_step == 1 && to_step == 1 && n >= 32) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else if (from_step == 1 && to_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
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

/// Copies elements [begin, begin + n) of a box to a contiguous result.
template <class T>
void copy_run(const StridedBox& box, const T* from, T* to, std::int64_t begin, std::int64_t n) {
  StridedBox rows = box;
  const Axis row = take_axis(rows, box.sizes.rank() - 1);
  Walk walk(rows, begin / row.size);
  std::int64_t place = begin % row.size;
  while (n > 0) {
    const std::int64_t count = std::min(n, row.size - place);
    copy_row(from + walk.from + place * row.from, row.from, to, 1, count);
    to += count;
    n -= count;
    place = 0;
    walk.next();
  }
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

bool Gather::is_smooth() const {
  constexpr std::int64_t long_enough = 16;
  const int last = box_.sizes.rank() - 1;
  const std::int64_t inner = box_.from[at(last)];
  return (inner == 0 || inner == 1) && (last == 0 || box_.sizes[last] >= long_enough);
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
    copy_box(simple, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to));
  });
}

void fill_box(const Operand& y, std::int64_t offset, const Shape& sizes, double value) {
  const Tensor element = Tensor::full({}, value, y.dtype());
  const std::int64_t bytes = size_of(y.dtype());
  copy_strided({sizes, {}, strides_of(y.shape())}, element.raw(), y.data + offset * bytes, bytes);
}

}  // namespace palimpsest
