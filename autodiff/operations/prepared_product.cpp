#include "autodiff/operations/prepared_product.h"

#include "autodiff/kernels/kernels.h"
#include "autodiff/operations/batched_product.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

template <class T>
class Prepared final : public PreparedProduct {
 public:
  explicit Prepared(const Gemm<T>& product) : call_(blocked(product)) {}

  Run run() const override { return &multiply; }

 private:
  static void multiply(const void* prepared, const std::byte* a, const std::byte* b,
                       const std::byte* addend, std::byte* y, std::byte* workspace) {
    BlockedGemm<T> call =
        static_cast<const Prepared*>(static_cast<const PreparedProduct*>(prepared))->call_;
    Gemm<T>& p = call.product;
    p.a = reinterpret_cast<const T*>(call.transpose_c ? b : a);
    p.b = reinterpret_cast<const T*>(call.transpose_c ? a : b);
    p.addend = reinterpret_cast<const T*>(addend);
    p.c = reinterpret_cast<T*>(y);
    run_blocked(call, workspace);
  }

  BlockedGemm<T> call_;
};

template <class T>
class SmallPrepared final : public PreparedProduct {
 public:
  SmallPrepared(const Gemm<T>& product, SmallGemm<T> kernel) : product_(product), kernel_(kernel) {}

  Run run() const override { return &multiply; }

 private:
  static void multiply(const void* prepared, const std::byte* a, const std::byte* b,
                       const std::byte* addend, std::byte* y, std::byte* /*workspace*/) {
    const auto& self =
        *static_cast<const SmallPrepared*>(static_cast<const PreparedProduct*>(prepared));
    self.kernel_(self.product_, reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b),
                 reinterpret_cast<const T*>(addend), reinterpret_cast<T*>(y));
  }

  Gemm<T> product_;
  SmallGemm<T> kernel_;
};

template <class T>
std::shared_ptr<const PreparedProduct> prepared(const Gemm<T>& product) {
  if (const SmallGemm<T> small = small_gemm(product)) {
    return std::make_shared<const SmallPrepared<T>>(product, small);
  }
  return std::make_shared<const Prepared<T>>(product);
}

}  // namespace

std::shared_ptr<const PreparedProduct> prepared_product(const Operation& operation,
                                                        const Attributes& attributes,
                                                        std::span<const Operand> inputs,
                                                        const Operand& output) {
  const DType dtype = output.dtype();
  if (&operation != matmul_operations()[0] || (dtype != DType::f32 && dtype != DType::f64)) {
    return nullptr;
  }
  const KernelCall call{attributes, inputs, {&output, 1}, {}};
  const BatchedProduct all = product_of(call);
  const bool is_single = all.outputs().empty() && all.terms().empty() && all.m > 0 && all.n > 0;
  if (!is_single || !gemm_is_serial(all.m, all.n, all.k)) return nullptr;
  return visit_floating(dtype, [&]<class T>(T) -> std::shared_ptr<const PreparedProduct> {
    return prepared(first_of<T>(call, all, nullptr));
  });
}

}  // namespace palimpsest
