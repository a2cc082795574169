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
#define INLINED __attribute__((always_inline))
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
typedef void (*product)(const void* prepared, const char* a, const char* b, const char* addend,
                        char* y, char* workspace);
typedef void (*fold_begin)(char* state, i64 elements);
typedef void (*fold_add)(char* state, const char* x, i64 n);
typedef void (*fold_end)(char* state, char* total);
typedef void (*fold_finish)(const void* attributes, char* totals, i64 segments, char* to);
typedef void (*fold_rows)(const void* attributes, const char* x, i64 count, i64 elements, char* to);
#define FOLD(T, W)                                                                        \
  typedef struct {                                                                        \
    _Alignas(64) T sums[64];                                                              \
    W total;                                                                              \
    i64 lanes, rows;                                                                      \
  } fold_##T;                                                                             \
  static __attribute__((noinline)) void add_rows_##T(const T* x, i64 rows, i64 width, T* sums) { \
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
    for (i64 i = 0; i < f->lanes; ++i) f->sums[i] = 0;                                           \
    f->rows = 0;                                                                                 \
  }                                                                                              \
  static inline void begin_##T(fold_##T* f, i64 elements) {                                      \
    f->total = 0;                                                                                \
    f->lanes = elements / 2 < 1 ? 1 : elements / 2 > 64 ? 64 : elements / 2;                     \
    clear_##T(f);                                                                                \
  }                                                                                              \
  static __attribute__((noinline)) void join_##T(fold_##T* f) {                                  \
    if (f->rows == 0) return;                                                                    \
    for (i64 lanes = f->lanes; lanes > 1; lanes = (lanes + 1) / 2) {                             \
      const i64 half = (lanes + 1) / 2;                                                          \
      INDEPENDENT for (i64 i = 0; i < lanes - half; ++i) {                                       \
        f->sums[i] = f->sums[i] + f->sums[half + i];                                             \
      }                                                                                          \
    }                                                                                            \
    f->total = f->total + (W)f->sums[0];                                                         \
    clear_##T(f);                                                                                \
  }                                                                                              \
  static __attribute__((noinline)) void add_##T(fold_##T* f, const T* x, i64 n) {                \
    while (n >= f->lanes && f->lanes > 1) {                                                      \
      const i64 rows = smallest(n / f->lanes, 64 - f->rows);                                     \
      if (f->lanes == 64) {                                                                      \
        add_blocks_##T(x, rows, f->sums);                                                        \
      } else {                                                                                   \
        add_rows_##T(x, rows, f->lanes, f->sums);                                                \
      }                                                                                          \
      f->rows += rows;                                                                           \
      if (f->rows == 64) join_##T(f);                                                            \
      x += rows * f->lanes;                                                                      \
      n -= rows * f->lanes;                                                                      \
    }                                                                                            \
    if (n == 0) return;                                                                          \
    join_##T(f);                                                                                 \
    T sum = f->sums[0];                                                                          \
    for (; n >= 4; n -= 4, x += 4) sum = sum + ((x[0] + x[1]) + (x[2] + x[3]));                  \
    for (; n > 0; --n, ++x) sum = sum + *x;                                                      \
    f->sums[0] = sum;                                                                            \
    f->rows = 1;                                                                                 \
    f->lanes = 1;                                                                                \
  }
FOLD(double, double)
FOLD(float, double)
FOLD(i64, i64)
FOLD(i32, i32)
)C";
}

}  // namespace palimpsest
