#include <unsupported/Eigen/SpecialFunctions>

#include "autodiff/kernels/array_functions.h"
#include "autodiff/kernels/blocks.h"
#include "autodiff/kernels/level.h"
#include "autodiff/operations/unary_functions.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class F, class T>
void loop(const T* dy, const T* z, T* dx, std::int64_t n, const double* parameters) {
  in_blocks(
      dx, n,
      [parameters](const auto& dy_block, const auto& z_block) {
        return functions::adjoint_of<F>(dy_block, z_block, parameters);
      },
      Elements<T>(dy), Elements<T>(z));
}

template <class F, class T>
constexpr AdjointKernel<T> kernel() {
  using X = Eigen::Map<const Block<T>>;
  if constexpr (functions::ReadsX<F, X> || functions::ReadsY<F, X>) return loop<F, T>;
  return nullptr;
}

template <class T, class... F>
const AdjointKernel<T>* table(functions::List<F...>) {
  static constexpr AdjointKernel<T> kernels[] = {kernel<F, T>()...};
  return kernels;
}

}  // namespace

void add_adjoint(Kernels& kernels) {
  kernels.adjoint_f32 = table<float>(functions::Unary{});
  kernels.adjoint_f64 = table<double>(functions::Unary{});
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
