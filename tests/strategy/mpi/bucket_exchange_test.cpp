#include "strategy/mpi/bucket_exchange.h"

#include <numeric>

#include "tests/strategy/mpi/ranks.h"

namespace palimpsest::bucket_exchange_test {
namespace {

/// Buckets of ones, one parameter each.
struct Ones {
  static constexpr std::size_t count = 12;
  static constexpr std::int64_t size = 65'536;

  BucketLayout layout;
  Tensor block;
  RankWeights weights{std::vector<double>(static_cast<std::size_t>(world().size()), 1), 1};

  Ones() {
    const std::vector<ValueType> parameters(count, {Shape{size}, DType::f32});
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    layout = BucketLayout(parameters, order, size * 4);
  }
  void begin(BucketExchange& exchange) {
    block = Tensor::ones({static_cast<std::int64_t>(count) * size});
    exchange.begin(block.raw(), weights);
  }
  /// The common value of all elements; -1 when they differ.
  double element() const {
    const std::span<float> all = block.data<float>();
    const bool are_same = std::equal(all.begin() + 1, all.end(), all.begin());
    return are_same ? all[0] : -1;
  }
};

TEST_CASE("in any order, no more is under way than is counted") {
  Ones ones;
  BucketExchange exchange(world().link(), ones.layout, SumOrder::any);
  CHECK(exchange.bytes() == (world().size() > 1 ? 1_MiB : 0));
  ones.begin(exchange);
  // On rank 0 no exchange ends before other ranks begin.
  if (world().rank() == 0) {
    for (std::size_t bucket = 0; bucket < Ones::count; ++bucket) exchange.give(bucket);
    CHECK(exchange.started_early() == (world().size() > 1 ? 4 : 11));
  }
  world().link().gather(0);
  if (world().rank() > 0) {
    for (std::size_t bucket = 0; bucket < Ones::count; ++bucket) exchange.give(bucket);
  }
  exchange.end_backward();
  exchange.finish();
  CHECK(ones.element() == world().size());
}

TEST_CASE("a rank that fails when it has sent some buckets leaves nobody waiting") {
  for (const SumOrder order : {SumOrder::any, SumOrder::ranks}) {
    Ones ones;
    BucketExchange exchange(world().link(), ones.layout, order);
    for (const bool fails : {true, false, true, false}) {
      CAPTURE(static_cast<int>(order), fails);
      ones.begin(exchange);
      const bool fails_here = fails && world().rank() == world().size() - 1;
      const std::size_t given = fails_here ? 3 : Ones::count;
      for (std::size_t bucket = 0; bucket < given; ++bucket) exchange.give(bucket);
      CHECK(exchange.started_early() > 0);
      exchange.end_backward();
      if (fails_here) {
        exchange.abandon();
      } else {
        exchange.finish();
      }
      if (!fails) CHECK(ones.element() == world().size());
    }
  }
}

}  // namespace
}  // namespace palimpsest::bucket_exchange_test
