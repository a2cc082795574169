#include "strategy/compile/native/group_source.h"

namespace palimpsest {

// `FOLD` defines the sums of `RowFold` (autodiff/operations/row_fold.h), in the same order.
std::string_view native_prelude() {
  return R"C(typedef __INT64_TYPE__ i64;
typedef __INT32_TYPE__ i32;
typedef __INT16_TYPE__ i16;
typedef __INT8_TYPE__ i8;
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
static inline i64 smallest(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 largest(i64 a, i64 b) { return a > b ? a : b; }
static inline i64 from_row(i64 first, i64 begin, i64 length) {
  return first > begin ? (first - begin) / length : 0;
}
typedef struct {
  const void* attributes;
  const void* inputs[3];
  i64 steps[3];
  void* output;
  i64 n;
} pointwise_call;
typedef void (*pointwise_kernel)(const pointwise_call*);
typedef void (*fold_begin)(char* state, i64 elements);
typedef void (*fold_add)(char* state, const char* x, i64 n);
typedef void (*fold_end)(char* state, char* total);
typedef void (*fold_finish)(const void* attributes, char* totals, i64 segments, char* to);
#define FOLD(T, W)                                                                        \
  typedef struct {                                                                        \
    _Alignas(64) T sums[64];                                                              \
    W total;                                                                              \
    i64 lanes, rows;                                                                      \
  } fold_##T;                                                                             \
  static inline void add_rows_##T(const T* x, i64 rows, i64 stride, i64 width, T* sums) { \
    for (; rows >= 4; rows -= 4, x += 4 * stride) {                                       \
      INDEPENDENT for (i64 i = 0; i < width; ++i) {                                       \
        const T one = x[i] + x[stride + i];                                               \
        const T two = x[2 * stride + i] + x[3 * stride + i];                              \
        sums[i] = sums[i] + (one + two);                                                  \
      }                                                                                   \
    }                                                                                     \
    for (; rows > 0; --rows, x += stride) {                                               \
      INDEPENDENT for (i64 i = 0; i < width; ++i) sums[i] = sums[i] + x[i];               \
    }                                                                                     \
  }                                                                                       \
  static inline void clear_##T(fold_##T* f) {                                             \
    for (i64 i = 0; i < f->lanes; ++i) f->sums[i] = 0;                                    \
    f->rows = 0;                                                                          \
  }                                                                                       \
  static inline void begin_##T(fold_##T* f, i64 elements) {                               \
    f->total = 0;                                                                         \
    f->lanes = elements / 2 < 1 ? 1 : elements / 2 > 64 ? 64 : elements / 2;              \
    clear_##T(f);                                                                         \
  }                                                                                       \
  static inline void join_##T(fold_##T* f) {                                              \
    if (f->rows == 0) return;                                                             \
    for (i64 lanes = f->lanes; lanes > 1; lanes = (lanes + 1) / 2) {                      \
      const i64 half = (lanes + 1) / 2;                                                   \
      add_rows_##T(f->sums + half, 1, 0, lanes - half, f->sums);                          \
    }                                                                                     \
    f->total = f->total + (W)f->sums[0];                                                  \
    clear_##T(f);                                                                         \
  }                                                                                       \
  static inline void add_##T(fold_##T* f, const T* x, i64 n) {                            \
    while (n >= f->lanes && f->lanes > 1) {                                               \
      const i64 rows = smallest(n / f->lanes, 64 - f->rows);                              \
      if (f->lanes == 64) {                                                               \
        add_rows_##T(x, rows, 64, 64, f->sums);                                           \
      } else {                                                                            \
        add_rows_##T(x, rows, f->lanes, f->lanes, f->sums);                               \
      }                                                                                   \
      f->rows += rows;                                                                    \
      if (f->rows == 64) join_##T(f);                                                     \
      x += rows * f->lanes;                                                               \
      n -= rows * f->lanes;                                                               \
    }                                                                                     \
    if (n == 0) return;                                                                   \
    join_##T(f);                                                                          \
    add_rows_##T(x, n, 1, 1, f->sums);                                                    \
    f->rows = 1;                                                                          \
    f->lanes = 1;                                                                         \
  }
FOLD(double, double)
FOLD(float, double)
FOLD(i64, i64)
FOLD(i32, i32)
)C";
}

}  // namespace palimpsest
