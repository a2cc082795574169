#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"

namespace palimpsest {

/// The type in which products of T are accumulated: f32 for bf16, else T.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

/// C = α·op(A)·op(B), or C += α·op(A)·op(B), where op(A) is m×k, op(B) k×n and C m×n. All are
/// row-major with the given leading dimensions (elements from row to row as stored).
///
/// An addend D has the row stride of C. It is added to each element when the product is complete; α
/// must then be 1. D may alias C only if `gemm_batch_adds_in_place`. T is float, double or, if
/// `multiplies_bf16`, BFloat16. For BFloat16, subnormal operands and sums count as 0.
template <class T>
struct Gemm {
  using Sum = SumOf<T>;

  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  Sum* c = nullptr;
  std::int64_t ldc = 0;
  bool accumulate = false;
  Sum alpha = 1;
  const Sum* addend = nullptr;
};

/// True if the kernels of this level multiply bf16 natively.
bool multiplies_bf16();

/// True if this library's kernels compute the products of T. An external library allocates its own
/// memory, and its bits depend on the sizes of a product in unspecified ways.
template <class T>
bool has_own_products();

/// Computes one product on the calling thread. With our own kernels, the bits of an element depend
/// only on its row of op(A), its column of op(B) and what it is added to; the rest of the product
/// has no influence. Exception: f32 and f64 products with m or n = 1, and those with
/// m + n + k < 20, have bits of their own; and at depth 1 the sign of a number that underflows to
/// zero may differ. `workspace` holds at least `gemm_workspace<T>(m, n, k)`
/// bytes, aligned to 64.
template <class T>
void gemm_serial(const Gemm<T>& product, std::span<std::byte> workspace);

/// True if the product writes each element once. So does any part that is cut from the longer side
/// of the result and is at least two wide; in a product of one row, a multiple of 16 wide.
template <class T>
bool gemm_writes_once(std::int64_t m, std::int64_t n, std::int64_t k);

/// Bytes of packing space per thread; monotone in the sizes.
template <class T>
Bytes gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k);

/// Computes one product in parallel in the caller's arena, with the same bits for any number of
/// threads. `workspace` holds `parallel_gemm_workspace<T>(m, n, k, threads)` bytes, aligned to 64,
/// where `threads` ≥ `max_threads()` of that arena.
template <class T>
void gemm(const Gemm<T>& product, std::span<std::byte> workspace);
template <class T>
Bytes parallel_gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, int threads);

/// True if `gemm` is `gemm_serial`, whatever the number of threads.
bool gemm_is_serial(std::int64_t m, std::int64_t n, std::int64_t k);

/// One axis of a batch: its size, and each operand's stride along it in elements.
struct BatchAxis {
  std::int64_t size = 1;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
};

/// Computes products of one shape; `first` is the one at index 0 of every axis. Each index along
/// `outputs` is a separate matrix. Along `terms` the products are summed in order (their `c` stride
/// is 0). An addend has the layout of C and is added to the sum.
///
/// Parallel over matrices and their panels, with the same bits for any number of threads.
/// `workspace` holds `gemm_batch_workspace<T>` bytes; there, `outputs` and `terms` are numbers of
/// products.
template <class T>
void gemm_batch(const Gemm<T>& first, std::span<const BatchAxis> outputs,
                std::span<const BatchAxis> terms, std::span<std::byte> workspace);
/// True if no element of C is written before it is complete.
template <class T>
bool gemm_batch_adds_in_place(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs,
                              std::int64_t terms);
template <class T>
Bytes gemm_batch_workspace(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs,
                           std::int64_t terms, int threads);

}  // namespace palimpsest
