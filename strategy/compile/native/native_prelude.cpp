#include "strategy/compile/native/group_source.h"

namespace palimpsest {

// `FOLD` defines the sums of `PieceFold` (autodiff/operations/piece_fold.h), in the same order.
std::string_view native_prelude() {
  return R"C(typedef __INT64_TYPE__ i64;
typedef __INT32_TYPE__ i32;
typedef __INT16_TYPE__ i16;
typedef __INT8_TYPE__ i8;
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define INDEPENDENT_ROW INDEPENDENT
#define ALONE __attribute__((noinline))
#else
#define INDEPENDENT _Pragma("GCC ivdep")
// For a loop with a small constant trip count, which would be unrolled before it is vectorized.
#define INDEPENDENT_ROW _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
// GCC 12.2 computes wrong addresses in copies of functions that it makes for constant arguments.
#define ALONE __attribute__((noinline, noclone))
#endif
#define INLINED __attribute__((always_inline))
static inline i64 smallest(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 largest(i64 a, i64 b) { return a > b ? a : b; }
// Rows of elements from `begin` on: the one with element `first`, and the one after element `end`.
static inline i64 from_row(i64 first, i64 begin, i64 length) {
  return first > begin ? (first - begin) / length : 0;
}
static inline i64 to_row(i64 end, i64 begin, i64 length, i64 rows) {
  return smallest(end > begin ? (end - begin + length - 1) / length : 0, rows);
}
// A vector register of elements that repeat the given ones, which have 16 bytes.
#define TWICE(...) __VA_ARGS__, __VA_ARGS__
#if defined(__AVX512F__)
#define WIDE 64
#define REPEATED(...) {TWICE(TWICE(__VA_ARGS__))}
#elif defined(__AVX__)
#define WIDE 32
#define REPEATED(...) {TWICE(__VA_ARGS__)}
#else
#define WIDE 16
#define REPEATED(...) {__VA_ARGS__}
#endif
#define VECTOR(T) typedef T wide_##T __attribute__((vector_size(WIDE), aligned(4), may_alias))
VECTOR(double);
VECTOR(float);
VECTOR(i64);
VECTOR(i32);
typedef struct {
  const void* attributes;
  const void* inputs[3];
  i64 steps[3];
  void* output;
  i64 n;
} pointwise_call;
typedef void (*pointwise_kernel)(const pointwise_call*);
typedef void (*product)(const void* prepared, const char* a, const char* b, const char* addend,
                        char* y, char* workspace);
typedef void (*fold_begin)(char* state, i64 elements, i64 columns);
typedef void (*fold_add)(char* state, const char* x, i64 n);
typedef void (*fold_end)(char* state, char* total);
typedef void (*fold_finish)(const void* attributes, char* totals, i64 segments, i64 columns,
                            char* to);
typedef void (*fold_rows)(const void* attributes, const char* x, i64 count, i64 elements, char* to);
#define FOLD(T, W)                                                                               \
  typedef W total_##T;                                                                           \
  typedef struct {                                                                               \
    T* sums;                                                                                     \
    W* totals;                                                                                   \
    i64 columns, most_lanes, lanes, rows;                                                        \
  } fold_##T;                                                                                    \
  static inline INLINED void add_rows_##T(const T* x, i64 rows, i64 width, T* sums) { \
    for (; rows >= 4; rows -= 4, x += 4 * width) {                                               \
      INDEPENDENT for (i64 i = 0; i < width; ++i) {                                              \
        const T one = x[i] + x[width + i];                                                       \
        const T two = x[2 * width + i] + x[3 * width + i];                                       \
        sums[i] = sums[i] + (one + two);                                                         \
      }                                                                                          \
    }                                                                                            \
    for (; rows > 0; --rows, x += width) {                                                       \
      INDEPENDENT for (i64 i = 0; i < width; ++i) sums[i] = sums[i] + x[i];                      \
    }                                                                                            \
  }                                                                                              \
  static inline void add_blocks_##T(const T* x, i64 rows, T* sums) {                             \
    for (; rows >= 4; rows -= 4, x += 256) {                                                     \
      INDEPENDENT for (i64 i = 0; i < 64; ++i) {                                                 \
        const T one = x[i] + x[64 + i];                                                          \
        const T two = x[128 + i] + x[192 + i];                                                   \
        sums[i] = sums[i] + (one + two);                                                         \
      }                                                                                          \
    }                                                                                            \
    for (; rows > 0; --rows, x += 64) {                                                          \
      INDEPENDENT for (i64 i = 0; i < 64; ++i) sums[i] = sums[i] + x[i];                         \
    }                                                                                            \
  }                                                                                              \
  static inline void clear_##T(fold_##T* f) {                                                    \
    T* const sums = f->sums;                                                                     \
    const i64 n = f->lanes * f->columns;                                                         \
    for (i64 i = 0; i < n; ++i) sums[i] = 0;                                                     \
    f->rows = 0;                                                                                 \
  }                                                                                              \
  static inline void begin_##T(fold_##T* f, i64 elements) {                                      \
    W* const totals = f->totals;                                                                 \
    const i64 columns = f->columns;                                                              \
    totals[0] = 0;                                                                               \
    for (i64 i = 1; i < columns; ++i) totals[i] = 0;                                             \
    f->lanes = largest(1, smallest(elements / f->columns / 2, f->most_lanes));                   \
    clear_##T(f);                                                                                \
  }                                                                                              \
  static inline INLINED T joined_##T(T* sums, i64 lanes) {                                       \
    if (lanes == 64) {                                                                           \
      INDEPENDENT for (i64 i = 0; i < 32; ++i) sums[i] = sums[i] + sums[32 + i];                 \
      lanes = 32;                                                                                \
    }                                                                                            \
    if (lanes == 32) {                                                                           \
      INDEPENDENT for (i64 i = 0; i < 16; ++i) sums[i] = sums[i] + sums[16 + i];                 \
      lanes = 16;                                                                                \
    }                                                                                            \
    if (lanes == 16) {                                                                           \
      INDEPENDENT for (i64 i = 0; i < 8; ++i) sums[i] = sums[i] + sums[8 + i];                   \
      lanes = 8;                                                                                 \
    }                                                                                            \
    if (lanes == 8) {                                                                            \
      const T a = sums[0] + sums[4], b = sums[1] + sums[5], c = sums[2] + sums[6];               \
      return (a + c) + (b + (sums[3] + sums[7]));                                                \
    }                                                                                            \
    for (; lanes > 1; lanes = (lanes + 1) / 2) {                                                 \
      const i64 half = (lanes + 1) / 2;                                                          \
      INDEPENDENT for (i64 i = 0; i < lanes - half; ++i) sums[i] = sums[i] + sums[half + i];     \
    }                                                                                            \
    return sums[0];                                                                              \
  }                                                                                              \
  static ALONE void join_##T(fold_##T* f) {                                                      \
    if (f->rows == 0) return;                                                                    \
    T* const sums = f->sums;                                                                     \
    W* const totals = f->totals;                                                                 \
    const i64 columns = f->columns;                                                              \
    if (columns == 1) {                                                                          \
      totals[0] = totals[0] + (W)joined_##T(sums, f->lanes);                                     \
      for (i64 i = 0; i < 64; ++i) sums[i] = 0;                                                  \
      f->rows = 0;                                                                               \
      return;                                                                                    \
    }                                                                                            \
    for (i64 lanes = f->lanes; lanes > 1; lanes = (lanes + 1) / 2) {                             \
      const i64 half = (lanes + 1) / 2;                                                          \
      INDEPENDENT for (i64 i = 0; i < (lanes - half) * columns; ++i) {                           \
        sums[i] = sums[i] + sums[half * columns + i];                                            \
      }                                                                                          \
    }                                                                                            \
    totals[0] = totals[0] + (W)sums[0];                                                          \
    INDEPENDENT for (i64 i = 1; i < columns; ++i) totals[i] = totals[i] + (W)sums[i];            \
    clear_##T(f);                                                                                \
  }                                                                                              \
  static ALONE void add_##T(fold_##T* f, const T* x, i64 n) {                                    \
    const i64 width = f->lanes * f->columns;                                                     \
    while (n >= width) {                                                                         \
      const i64 rows = smallest(n / width, 64 - f->rows);                                        \
      if (width == 64) {                                                                         \
        add_blocks_##T(x, rows, f->sums);                                                        \
      } else {                                                                                   \
        add_rows_##T(x, rows, width, f->sums);                                                   \
      }                                                                                          \
      f->rows += rows;                                                                           \
      if (f->rows == 64) join_##T(f);                                                            \
      x += rows * width;                                                                         \
      n -= rows * width;                                                                         \
    }                                                                                            \
    if (n == 0) return;                                                                          \
    join_##T(f);                                                                                 \
    if (f->columns == 1) {                                                                       \
      T sum = f->sums[0];                                                                        \
      for (; n >= 4; n -= 4, x += 4) sum = sum + ((x[0] + x[1]) + (x[2] + x[3]));                \
      for (; n > 0; --n, ++x) sum = sum + *x;                                                    \
      f->sums[0] = sum;                                                                          \
    } else {                                                                                     \
      add_rows_##T(x, n / f->columns, f->columns, f->sums);                                      \
    }                                                                                            \
    f->rows = 1;                                                                                 \
    f->lanes = 1;                                                                                \
  }                                                                                              \
  static inline INLINED total_##T sum_of_##T(const T* x, i64 n) {                                \
    const i64 lanes = largest(1, smallest(n / 2, 64));                                           \
    total_##T total = 0;                                                                         \
    for (; n >= lanes && lanes > 1;) {                                                           \
      T sums[64];                                                                                \
      const i64 rows = smallest(n / lanes, 64);                                                  \
      INDEPENDENT for (i64 i = 0; i < lanes; ++i) sums[i] = 0;                                   \
      add_rows_##T(x, rows, lanes, sums);                                                        \
      total = total + (total_##T)joined_##T(sums, lanes);                                        \
      x += rows * lanes;                                                                         \
      n -= rows * lanes;                                                                         \
    }                                                                                            \
    if (n == 0) return total;                                                                    \
    T sum = 0;                                                                                   \
    for (; n >= 4; n -= 4, x += 4) sum = sum + ((x[0] + x[1]) + (x[2] + x[3]));                  \
    for (; n > 0; --n, ++x) sum = sum + *x;                                                      \
    return total + (total_##T)sum;                                                               \
  }
// The state `name` of a sum, and its totals.
#define SUM(T, name, columns, lanes)           \
  _Alignas(64) T name##s[(columns) * (lanes)]; \
  _Alignas(64) total_##T name##t[columns];     \
  fold_##T name = {name##s, name##t, columns, lanes, 1, 0}
FOLD(double, double)
FOLD(float, double)
FOLD(i64, i64)
FOLD(i32, i32)
)C";
}

}  // namespace palimpsest
