#include "autodiff/kernels/level.h"
#include "autodiff/kernels/pack_functions.h"
#include "autodiff/operations/functions/unary_functions.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class F, class T>
struct AdjointBlock {
  static void compute(const double* parameters, T* dx, const T* dy, const T* z) {
    compute_block<T>(
        [&](const Pack<T>& from, const Pack<T>& at) {
          return functions::adjoint_of<F>(from, at, parameters);
        },
        dx, dy, z);
  }
};

template <class F, class T>
void compute_adjoint(const T* dy, const T* z, T* dx, std::int64_t n, const double* parameters) {
  in_blocks<T>(block_loop<T, AdjointBlock<F, T>, Reads::elements, Reads::elements>, dx, n,
               {{dy, 1}, {z, 1}}, parameters);
}

template <class F, class T>
constexpr AdjointKernel<T> adjoint_kernel() {
  using X = Pack<T>;
  if constexpr (functions::ReadsX<F, X> || functions::ReadsY<F, X>) return compute_adjoint<F, T>;
  return nullptr;
}

template <class T, class... F>
const AdjointKernel<T>* adjoint_table(functions::List<F...>) {
  static constexpr AdjointKernel<T> kernels[] = {adjoint_kernel<F, T>()...};
  return kernels;
}

}  // namespace

void add_adjoint(Kernels& kernels) {
  kernels.adjoint_f32 = adjoint_table<float>(functions::Unary{});
  kernels.adjoint_f64 = adjoint_table<double>(functions::Unary{});
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
