#include <dnnl.h>
#include <omp.h>

#include <algorithm>

#include "autodiff/kernels/kernels.h"

namespace palimpsest {
namespace {

/// While it exists, oneDNN uses only the calling thread. Work has already been distributed over
/// threads.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

void multiply(const Gemm<float>& p) {
  const OneThread one_thread;
  const dnnl_status_t status =
      dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha, p.a,
                 p.lda, p.b, p.ldb, p.accumulate ? 1.0f : 0.0f, p.c, p.ldc);
  if (status == dnnl_out_of_memory) {
    throw EnvironmentError("[matmul] oneDNN has no memory to pack the operands of a product of " +
                           std::to_string(p.m) + "×" + std::to_string(p.k) + " and " +
                           std::to_string(p.k) + "×" + std::to_string(p.n) +
                           " elements; free memory");
  }
  internal_check(status == dnnl_success, "oneDNN refuses a product");
}

/// The addend is added to the rounded product, with the same bits as two separate operations.
void gemm(const BlockedGemm<float>& call) {
  const Gemm<float>& p = call.product;
  if (p.k > 0) multiply(p);
  const bool clear = p.k == 0 && !p.accumulate;
  for (std::int64_t i = 0; i < p.m; ++i) {
    float* row = p.c + i * p.ldc;
    if (clear) std::fill_n(row, p.n, 0.0f);
    if (p.addend == nullptr) continue;
    const float* addend = p.addend + i * p.ldc;
    for (std::int64_t j = 0; j < p.n; ++j) row[j] += addend[j];
  }
}

}  // namespace

void add_onednn(Kernels& kernels) {
  kernels.gemm_f32 = gemm;
  kernels.product_library = "onednn";
}

}  // namespace palimpsest
