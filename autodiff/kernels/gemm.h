#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"

namespace palimpsest {

/// What products of T are added up in: f32 for bf16, else T.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

/// C = α·op(A)·op(B), or C += α·op(A)·op(B): op(A) is m×k, op(B) k×n, C m×n, all row-major with the
/// given leading dimensions (elements from row to row as stored). An addend D, whose rows lie as
/// far apart as those of C, is added to each element once that is complete; then α is 1, and D is
/// C only where `gemm_batch_adds_in_place`. T is float, double or, where `multiplies_bf16`,
/// BFloat16: then subnormal operands and sums count as 0.
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

/// True where the kernels of this level multiply bf16 as it is stored.
bool multiplies_bf16();

/// True where the kernels make the products of T themselves, and not another library, whose bits
/// depend on the sizes of a product in ways of its own and which takes memory of its own.
template <class T>
bool has_own_products();

/// One product on the calling thread. Of our own products, the bits of an element come from its row
/// of op(A), its column of op(B) and what it is added to, whichever others are computed with it,
/// except that those of f32 and f64 with m or n = 1 and with m + n + k < 20 have bits of their own.
/// `workspace` holds at least `gemm_workspace<T>(m, n, k)` bytes aligned to 64.
template <class T>
void gemm_serial(const Gemm<T>& product, std::span<std::byte> workspace);

/// True where the product, and any part of it with rows and columns no fewer than 2, writes each
/// element once.
template <class T>
bool gemm_writes_once(std::int64_t m, std::int64_t n, std::int64_t k);

/// Bytes of packing space one thread needs; no fewer for larger sizes.
template <class T>
Bytes gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k);

/// One product in parallel in the caller's arena, with the same bits at any number of threads.
/// `workspace` holds `parallel_gemm_workspace<T>(m, n, k, threads)` bytes aligned to 64, where
/// `threads` ≥ `max_threads()` of that arena.
template <class T>
void gemm(const Gemm<T>& product, std::span<std::byte> workspace);
template <class T>
Bytes parallel_gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, int threads);

/// One axis of a batch: how many products lie along it and the elements from each operand to the
/// next.
struct BatchAxis {
  std::int64_t size = 1;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
};

/// Products of one shape; `first` is the one at index 0 of every axis. Each index along `outputs`
/// makes a matrix of its own, over `terms` the products are added up in order (their `c` is 0). An
/// addend is one array as C is, and is added to the sum.
/// Parallel over matrices and their panels, with the same bits at any number of threads.
/// `workspace` holds `gemm_batch_workspace<T>` bytes, where `outputs` and `terms` are the counts of
/// products.
template <class T>
void gemm_batch(const Gemm<T>& first, std::span<const BatchAxis> outputs,
                std::span<const BatchAxis> terms, std::span<std::byte> workspace);
/// True where no element of C is written before it is complete.
template <class T>
bool gemm_batch_adds_in_place(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs,
                              std::int64_t terms);
template <class T>
Bytes gemm_batch_workspace(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs,
                           std::int64_t terms, int threads);

}  // namespace palimpsest
