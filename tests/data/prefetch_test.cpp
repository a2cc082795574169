#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "autodiff/parallel.h"
#include "data/data_loader.h"
#include "tests/catch.h"

namespace palimpsest::prefetch_test {
namespace {

constexpr Bytes example_bytes = 1000;

/// Bytes of tensors that exist, and the most there were.
struct Live {
  std::atomic<Bytes> now = 0;
  std::atomic<Bytes> most = 0;
  std::atomic<int> made = 0;

  void add(Bytes bytes) {
    const Bytes sum = now += bytes;
    for (Bytes seen = most; seen < sum && !most.compare_exchange_weak(seen, sum);) {
    }
  }
};

/// A tensor whose bytes are counted as long as it lives.
Tensor counted(Live& live, const Shape& shape) {
  const Tensor plain(shape, DType::boolean);
  const Bytes bytes = plain.bytes();
  live.add(bytes);
  const auto end = [&live, bytes, buffer = plain.buffer()](std::byte*) { live.now -= bytes; };
  return {Buffer(plain.raw(), end), shape, DType::boolean};
}

Dataset counted_rows(Live& live, std::int64_t size) {
  return Dataset(size, {{"x", {{example_bytes}, DType::boolean}}},
                 [&live](std::span<const std::int64_t> examples) {
                   ++live.made;
                   return std::vector{counted(live, {std::ssize(examples), example_bytes})};
                 });
}

/// Waits until `holds` returns true, or for a time in which it would.
template <class F>
bool eventually(F holds) {
  for (int i = 0; i < 2000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return holds();
}

/// Gives the other thread time to do what it should not.
void give_time() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

TEST_CASE("finished batches take at most the bytes of prefetch") {
  Live live;
  {
    const Bytes limit = 3 * 2 * example_bytes;
    DataLoader loader(counted_rows(live, 40), {.batch_size = 2, .prefetch = limit});
    give_time();
    CHECK(live.made == 0);  // nothing before the first batch is asked for
    loader.next();
    CHECK(eventually([&] { return live.now == limit; }));
    give_time();
    CHECK(live.made == 4);
    CHECK(live.most <= limit + 2 * example_bytes);  // and the batch that was handed out
    for (const Batch& batch : loader) CHECK(batch.size() == 2);
    CHECK(loader.prefetched_peak() <= limit);
    CHECK(live.most <= limit + 2 * example_bytes);
  }
  CHECK(live.now == 0);
}

TEST_CASE("batches are made across the end of an epoch") {
  Live live;
  DataLoader loader(counted_rows(live, 3), {.batch_size = 2, .prefetch = 100 * example_bytes});
  loader.next();
  CHECK(eventually([&] { return live.made > 20; }));
}

TEST_CASE("at most 64 batches are made ahead") {
  Live live;
  DataLoader loader(counted_rows(live, 1000), {.prefetch = 1_GiB});
  loader.next();
  CHECK(eventually([&] { return live.now == 64 * example_bytes; }));
  give_time();
  CHECK(live.made == 65);
}

TEST_CASE("a batch larger than prefetch is made when it is asked for") {
  Live live;
  DataLoader loader(counted_rows(live, 20), {.batch_size = 5, .prefetch = 4 * example_bytes});
  for (int made = 1; made <= 3; ++made) {
    loader.next();
    give_time();
    CHECK(live.made == made);
  }
  CHECK(loader.prefetched_peak() == 0);
}

TEST_CASE("the limit holds for batches that a transform makes larger") {
  Live live;
  const auto enlarge = [&](Batch& batch) {
    const std::int64_t factor = batch.index < 10 ? 2 : 3;
    batch.tensors = {counted(live, {batch.size(), factor * example_bytes})};
  };
  const Bytes limit = 7 * example_bytes;
  DataLoader loader(counted_rows(live, 20), {.prefetch = limit, .transform = enlarge});
  std::vector<std::int64_t> examples;
  for (const Batch& batch : loader) {
    if (batch.index == 0) {  // three batches fit
      CHECK(eventually([&] { return loader.prefetched_peak() == 6 * example_bytes; }));
    }
    examples.push_back(batch.examples[0]);
    CHECK(batch.bytes() == (batch.index < 10 ? 2 : 3) * example_bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(loader.prefetched_peak() <= limit);
  CHECK(std::ranges::is_sorted(examples));
  CHECK(examples.size() == 20);
}

TEST_CASE("a transform that makes batches larger than prefetch is no deadlock") {
  Live live;
  const auto enlarge = [&](Batch& batch) {
    batch.tensors = {counted(live, {batch.size(), 20 * example_bytes})};
  };
  DataLoader loader(counted_rows(live, 10), {.prefetch = 7 * example_bytes, .transform = enlarge});
  int batches = 0;
  for (const Batch& batch : loader) batches += batch.bytes() == 20 * example_bytes;
  CHECK(batches == 10);
  CHECK(loader.prefetched_peak() == 0);
}

/// A dataset whose example 5 fails `times` times.
Dataset failing(std::atomic<int>& times) {
  return Dataset(8, {{"x", {{}, DType::i64}}}, [&times](std::span<const std::int64_t> examples) {
    if (std::ranges::count(examples, 5) > 0 && times-- > 0) throw std::logic_error("example 5");
    return std::vector{Tensor::zeros({std::ssize(examples)}, DType::i64)};
  });
}

TEST_CASE("an exception comes at the batch that it belongs to, which can be tried again") {
  for (const Bytes prefetch : {0_B, 1_MiB}) {
    std::atomic<int> times = 2;
    DataLoader loader(failing(times), {.batch_size = 2, .prefetch = prefetch});
    CHECK(loader.next()->examples[0] == 0);
    give_time();
    CHECK(loader.next()->examples[0] == 2);
    CHECK_THROWS_WITH(loader.next(), "example 5");
    CHECK(loader.position().batch == 2);
    CHECK_THROWS_AS(loader.next(), std::logic_error);
    give_time();
    CHECK(loader.next()->examples[0] == 4);
    CHECK(loader.next()->examples[0] == 6);
    CHECK(!loader.next().has_value());
  }
}

TEST_CASE("a batch that always fails can be skipped") {
  std::atomic<int> times = 1'000'000;
  DataLoader loader(failing(times), {.batch_size = 2, .prefetch = 1_MiB});
  loader.next();
  loader.next();
  CHECK_THROWS_AS(loader.next(), std::logic_error);
  DataLoaderPosition position = loader.position();
  ++position.batch;
  loader.set_position(position);
  CHECK(loader.next()->examples[0] == 6);
}

TEST_CASE("an exception of the transform comes at its batch") {
  const auto transform = [](Batch& batch) {
    if (batch.index == 1) throw ArgumentError("[transform] batch 1");
  };
  DataLoader loader(in_memory({{"x", Tensor::arange(4)}}), {.transform = transform});
  CHECK_NOTHROW(loader.next());
  CHECK_THROWS_AS(loader.next(), ArgumentError);
}

TEST_CASE("a loader can be destroyed at any time") {
  for (int batches = 0; batches < 20; ++batches) {
    Live live;
    {
      DataLoader loader(counted_rows(live, 50), {.prefetch = 7 * example_bytes});
      for (int i = 0; i < batches; ++i) loader.next();
      if (batches % 3 == 0) loader.set_position({.epoch = 2, .batch = 7});
    }
    CHECK(live.now == 0);
  }
  std::atomic<int> times = 1'000'000;
  DataLoader loader(failing(times), {.batch_size = 8});
  CHECK_THROWS_AS(loader.next(), std::logic_error);
}

TEST_CASE("batches are made on another thread, or on the caller's without prefetch") {
  const std::thread::id caller = std::this_thread::get_id();
  for (const Bytes prefetch : {0_B, 1_MiB}) {
    std::atomic<int> on_caller = 0;
    std::atomic<int> most_threads = 0;
    const auto transform = [&](Batch&) {
      on_caller += std::this_thread::get_id() == caller;
      most_threads = std::max(most_threads.load(), max_threads());
    };
    DataLoader loader(in_memory({{"x", Tensor::arange(4)}}),
                      {.prefetch = prefetch, .transform = transform});
    while (loader.next()) {
    }
    CHECK(on_caller == (prefetch == 0 ? 4 : 0));
    CHECK(most_threads == 1);
  }
}

}  // namespace
}  // namespace palimpsest::prefetch_test
