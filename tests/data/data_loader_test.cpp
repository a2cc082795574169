#include "data/data_loader.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "data/batch_maker.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::data_loader_test {
namespace {

using Examples = std::vector<std::int64_t>;

Dataset numbers(std::int64_t size) { return in_memory({{"number", Tensor::arange(size)}}); }

/// The examples of the batches that are left of an epoch.
std::vector<Examples> rest_of_epoch(DataLoader& loader) {
  std::vector<Examples> batches;
  for (const Batch& batch : loader) {
    CHECK(batch.index + 1 == loader.position().batch);
    CHECK(batch.epoch == loader.epoch());
    const auto numbers = batch["number"].data<std::int64_t>();
    CHECK(std::ranges::equal(numbers, batch.examples));
    batches.push_back(batch.examples);
  }
  return batches;
}

Examples joined_examples(const std::vector<Examples>& batches) {
  Examples all;
  for (const Examples& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

static_assert(std::input_iterator<DataLoader::Iterator>);

const Bytes both[] = {0, 1_MiB};  // with and without another thread

TEST_CASE("without shuffling, batches keep the order of the dataset") {
  for (const Bytes prefetch : both) {
    DataLoader loader(numbers(7), {.batch_size = 3, .prefetch = prefetch});
    CHECK(loader.batches() == 3);
    for (int epoch = 0; epoch < 3; ++epoch) {
      CHECK(loader.epoch() == epoch);
      CHECK(rest_of_epoch(loader) == std::vector<Examples>{{0, 1, 2}, {3, 4, 5}, {6}});
    }
  }
}

TEST_CASE("the last batch can be left out") {
  DataLoader loader(numbers(7), {.batch_size = 3, .drop_last = true});
  CHECK(loader.batches() == 2);
  CHECK(rest_of_epoch(loader) == std::vector<Examples>{{0, 1, 2}, {3, 4, 5}});
  DataLoader exact(numbers(6), {.batch_size = 3, .drop_last = true});
  CHECK(exact.batches() == 2);
}

TEST_CASE("the order of a seed and an epoch is the same on every machine") {
  CHECK(shuffled_order(8, 1, 0) == Examples{3, 1, 7, 0, 4, 5, 2, 6});
  CHECK(shuffled_order(8, 1, 1) == Examples{4, 2, 0, 7, 6, 1, 3, 5});
  CHECK(shuffled_order(8, 2, 0) == Examples{6, 2, 7, 5, 0, 4, 3, 1});
  CHECK(shuffled_order(1, 2, 0) == Examples{0});
  CHECK(shuffled_order(0, 2, 0).empty());
  const Examples large = shuffled_order(10'000, 3, 5);  // draws its numbers in several blocks
  CHECK(Examples(large.end() - 4, large.end()) == Examples{2147, 8197, 2490, 3586});
}

TEST_CASE("a shuffled epoch has every example once, and another order than the one before") {
  for (const Bytes prefetch : both) {
    DataLoader loader(numbers(10'000),
                      {.batch_size = 128, .shuffle = true, .seed = 4, .prefetch = prefetch});
    Examples before;
    for (int epoch = 0; epoch < 3; ++epoch) {
      Examples examples = joined_examples(rest_of_epoch(loader));
      CHECK(examples == shuffled_order(10'000, 4, epoch));
      CHECK(examples != before);
      before = examples;
      std::ranges::sort(examples);
      CHECK(same_bits(Tensor::from(examples, {10'000}), Tensor::arange(10'000)));
    }
  }
}

TEST_CASE("every order of three examples is about equally frequent") {
  std::vector<int> counts(27);
  for (int seed = 0; seed < 6000; ++seed) {
    const Examples order = shuffled_order(3, static_cast<std::uint64_t>(seed), 0);
    ++counts[static_cast<std::size_t>(order[0] * 9 + order[1] * 3 + order[2])];
  }
  for (const int count : counts) CHECK((count == 0 || (count > 850 && count < 1150)));
}

TEST_CASE("a loader continues from a saved position with the same batches") {
  const DataLoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  DataLoader loader(numbers(20), options);
  rest_of_epoch(loader);
  for (int i = 0; i < 3; ++i) loader.next();
  const DataLoaderPosition saved = loader.position();
  CHECK(saved == DataLoaderPosition{.epoch = 1, .batch = 3, .seed = 9});
  const std::vector<Examples> rest = rest_of_epoch(loader);
  const std::vector<Examples> following = rest_of_epoch(loader);
  CHECK(rest.size() == 4);

  for (const Bytes prefetch : both) {
    DataLoader other(numbers(20), {.batch_size = 3, .shuffle = true, .prefetch = prefetch});
    other.next();  // so that there are prefetched batches of another seed
    other.set_position(saved);
    CHECK(rest_of_epoch(other) == rest);
    CHECK(rest_of_epoch(other) == following);
    other.set_position(saved);
    CHECK(rest_of_epoch(other) == rest);
  }
}

TEST_CASE("the position at the end of an epoch is one too") {
  DataLoader loader(numbers(4), {.batch_size = 2});
  loader.next();
  loader.next();
  const DataLoaderPosition end = loader.position();
  CHECK(end == DataLoaderPosition{.epoch = 0, .batch = 2});
  loader.set_position(end);
  CHECK(!loader.next().has_value());
  CHECK(loader.position() == DataLoaderPosition{.epoch = 1, .batch = 0});
}

TEST_CASE("a loop that is left early continues") {
  DataLoader loader(numbers(5), {.batch_size = 1});
  for (const Batch& batch : loader) {
    if (batch.index == 1) break;
  }
  CHECK(rest_of_epoch(loader) == std::vector<Examples>{{2}, {3}, {4}});
}

TEST_CASE("a transform changes batches") {
  for (const Bytes prefetch : both) {
    DataLoader loader(numbers(4),
                      {.batch_size = 2, .prefetch = prefetch, .transform = [](Batch& b) {
                         b.names.push_back("negative");
                         b.tensors.push_back(b[0].to(DType::f32));
                         for (float& x : b.tensors[1].data<float>()) x = -x;
                       }});
    loader.next();
    const Batch batch = *loader.next();
    CHECK(batch.size() == 2);
    CHECK(batch.bytes() == 2 * 8 + 2 * 4);
    CHECK(same_bits(batch["negative"], Tensor::vector({-2, -3})));
    CHECK(same_bits(batch[1], batch["negative"]));
    check_error([&] { batch["other"]; }, {"no tensor 'other'", "'number', 'negative'"});
    check_error([&] { batch[2]; }, {"no tensor 2", "below 2"});
  }
}

TEST_CASE("a loader can be moved") {
  DataLoader loader(numbers(6), {.batch_size = 2});
  loader.next();
  DataLoader moved = std::move(loader);
  CHECK(moved.next()->examples == Examples{2, 3});
  moved = DataLoader(numbers(1));
  CHECK(moved.next()->examples == Examples{0});
}

TEST_CASE("settings of loaders that cannot be are errors") {
  check_error([] { DataLoader(numbers(3), {.batch_size = 0}); }, {"batch_size is 0"});
  check_error([] { DataLoader(numbers(3), {.prefetch = -1}); }, {"prefetch is -1 bytes"});
  check_error([] { DataLoader(numbers(3), {.batch_size = 4, .drop_last = true}); },
              {"3 examples has no batch of 4"});
  check_error([] { DataLoader loader(numbers(0)); }, {"0 examples has no batch of 1"});
  DataLoader loader(numbers(3));
  const DataLoaderPosition wrong[] = {{-1, 0}, {0, -1}, {0, 4}, {std::int64_t{1} << 32, 0}};
  for (const DataLoaderPosition& position : wrong) {
    check_error([&] { loader.set_position(position); },
                {"no batch " + std::to_string(position.batch) + " in epoch " +
                 std::to_string(position.epoch)});
  }
}

}  // namespace
}  // namespace palimpsest::data_loader_test
