#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "autodiff/operation.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/lines.h"
#include "autodiff/parallel.h"
#include "autodiff/tape.h"

/// Shared by the operations that read and write at positions given by a tensor.
namespace palimpsest {

/// The axis along which positions count, and the line that errors name.
struct IndexAttributes {
  int axis;
  Where where;

  bool operator==(const IndexAttributes& other) const {
    return axis == other.axis && same_line(where, other.where);
  }
};

/// Throws `DTypeError` unless the index is integer.
inline void require_places(const Var& index, const char* operation, const Where& where) {
  require_value(index, operation, where);
  if (is_integer(index.dtype())) return;
  throw DTypeError(operation, "the index is " + to_string(index.type()) + "; give i64 or i32",
                   where);
}

/// x in i32 if it has a narrower integer dtype, which the kernels do not compute with.
inline Var widened(const Var& x, const Where& where) {
  return is_narrow_integer(x.dtype()) ? cast(x, DType::i32, where) : x;
}

/// `shape` with the axes [axis, axis + count) replaced by `others`.
inline Shape replaced(const Shape& shape, int axis, int count, const Shape& others) {
  Shape result;
  for (int i = 0; i < axis; ++i) result.push_back(shape[i]);
  for (const std::int64_t size : others) result.push_back(size);
  for (int i = axis + count; i < shape.rank(); ++i) result.push_back(shape[i]);
  return result;
}

/// Checks that the index's elements are in [0, size), then calls `f` with them as `const I*`.
template <class F>
void with_places(const Operand& index, std::int64_t size, const char* operation, const Where& where,
                 F f) {
  const auto run = [&]<class I>(const I* places) {
    const I* const end = places + index.elements();
    const I last = static_cast<I>(std::min<std::int64_t>(size - 1, std::numeric_limits<I>::max()));
    // The highest bit of a negative position, or of what is left after one that is too large.
    // Compilers vectorize this for every processor.
    using Bits = std::make_unsigned_t<I>;
    Bits bits = 0;
    for (const I* place = places; place != end; ++place) {
      const Bits at = static_cast<Bits>(*place);
      bits |= at | (static_cast<Bits>(last) - at);
    }
    if (static_cast<I>(bits) < 0) {
      const auto outside = [&](I place) { return place < 0 || place > last; };
      const I* const bad = std::find_if(places, end, outside);
      throw ArgumentError(operation,
                          "index " + std::to_string(*bad) + " at element " +
                              std::to_string(bad - places) + " is out of range for an axis of " +
                              std::to_string(size) + "; give at least 0 and less than that size",
                          where);
    }
    f(places);
  };
  if (index.dtype() == DType::i64)
    run(index.as<std::int64_t>());
  else
    run(index.as<std::int32_t>());
}

/// Calls `f(T{})` with an unsigned type of the dtype's size, for kernels that only move elements.
template <class F>
void visit_size(DType dtype, F f) {
  switch (size_of(dtype)) {
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

/// Calls `write(to, from)` for the elements of x, rows (outer, count, inner), in order, and the
/// elements of y at the positions `place_of(row, column)`. Tasks own columns of y, so several
/// elements at one position are written in the order of their rows.
template <class T, class Place, class Write>
void write_rows(const LineShape& to, std::int64_t count, const T* x, T* y, Place place_of,
                Write write) {
  if (to.inner == 1) {
    const auto cost = static_cast<double>(count);
    parallel_chunks(to.outer, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        T* const line = y + block * to.size;
        for (std::int64_t row = block * count; row < (block + 1) * count; ++row) {
          write(line[place_of(row, std::int64_t{0})], x[row]);
        }
      }
    });
    return;
  }
  constexpr std::int64_t tile = 64;
  const std::int64_t tiles = (to.inner + tile - 1) / tile;
  const auto cost = static_cast<double>(count * std::min(tile, to.inner));
  parallel_chunks(to.outer * tiles, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t block = item / tiles;
      const std::int64_t first = item % tiles * tile;
      const std::int64_t last = std::min(first + tile, to.inner);
      for (std::int64_t row = block * count; row < (block + 1) * count; ++row) {
        const T* from = x + row * to.inner;
        T* rows = y + block * to.size * to.inner;
        for (std::int64_t i = first; i < last; ++i) {
          write(rows[place_of(row, i) * to.inner + i], from[i]);
        }
      }
    }
  });
}

/// Copies input 0 unless output 0 is in its place.
inline void copy_first(const KernelCall& call) {
  const Operand& y = call.output();
  const std::byte* const from = call.input(0).data;
  if (y.data == from) return;
  const std::int64_t bytes = size_of(y.dtype());
  parallel_chunks(y.elements(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
    std::copy(from + begin * bytes, from + end * bytes, y.data + begin * bytes);
  });
}

/// Throws `ShapeError` unless `source` has this shape, and `DTypeError` unless it has x's dtype.
void require_source(const Var& source, const Shape& shape, const Var& x, const char* operation,
                    const Where& where);

/// Checks the operands of a scatter along `axis`: an index and a source of one shape, which is x's
/// except along the axis. Throws naming `operation`. Returns the axis in [0, rank).
int require_scatter(const Var& x, int axis, const Var& index, const Var& source,
                    const char* operation, const Where& where);

/// Likewise for slices along `axis`: in the source, the axes of the index replace that axis.
int require_index_source(const Var& x, int axis, const Var& index, const Var& source,
                         const char* operation, const Where& where);

}  // namespace palimpsest
