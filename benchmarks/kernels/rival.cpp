#include "benchmarks/kernels/rival.h"

#ifdef PALIMPSEST_ONEDNN
#include <dnnl.h>
#include <omp.h>
#endif

namespace palimpsest::benchmarks {

#ifdef PALIMPSEST_ONEDNN
bool has_rival() { return true; }

bool rival_gemm(const Gemm<float>& p, int threads) {
  omp_set_num_threads(threads);
  return dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, 1, p.a,
                    p.lda, p.b, p.ldb, p.accumulate ? 1 : 0, p.c, p.ldc) == dnnl_success;
}
#else
bool has_rival() { return false; }

bool rival_gemm(const Gemm<float>&, int) { return false; }
#endif

}  // namespace palimpsest::benchmarks
