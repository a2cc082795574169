#include "data/batch_maker.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "autodiff/parallel.h"
#include "autodiff/philox.h"

namespace palimpsest {

std::vector<std::int64_t> shuffled_order(std::int64_t size, std::uint64_t seed,
                                         std::int64_t epoch) {
  // A generation that neither tapes nor new tensors use, so that orders do not repeat their
  // numbers.
  constexpr std::uint32_t loader_generation = 0xfffffffe;
  const RandomStream stream{seed, loader_generation, static_cast<std::uint32_t>(epoch)};
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::array<double, 4096> numbers;
  // Fisher and Yates: every place gets one of the examples that no earlier place has.
  for (std::int64_t place = 0; place < size; ++place) {
    const std::int64_t number = place % std::ssize(numbers);
    if (number == 0) {
      fill_uniform(stream, numbers.data(), std::min(std::ssize(numbers), size - place), place);
    }
    const std::int64_t left = size - place;
    const double drawn = numbers[static_cast<std::size_t>(number)] * static_cast<double>(left);
    std::swap(order[static_cast<std::size_t>(place)],
              order[static_cast<std::size_t>(
                  place + std::min(static_cast<std::int64_t>(drawn), left - 1))]);
  }
  return order;
}

BatchMaker::BatchMaker(Dataset dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  const std::int64_t size = dataset_.size();
  if (options_.batch_size < 1) {
    throw ArgumentError("[data_loader] batch_size is " + std::to_string(options_.batch_size) +
                        "; give 1 or more");
  }
  if (options_.prefetch < 0) {
    throw ArgumentError("[data_loader] prefetch is " + std::to_string(options_.prefetch) +
                        " bytes; give 0 or more");
  }
  batches_ = options_.drop_last ? size / options_.batch_size : divide_up(size, options_.batch_size);
  if (batches_ == 0) {
    throw ArgumentError("[data_loader] a dataset of " + std::to_string(size) +
                        " examples has no batch of " + std::to_string(options_.batch_size) +
                        "; give more examples or a smaller batch_size");
  }
}

std::int64_t BatchMaker::size_of(std::int64_t batch) const {
  return std::min(options_.batch_size, dataset_.size() - batch * options_.batch_size);
}

Bytes BatchMaker::untransformed_bytes(std::int64_t batch) const {
  return multiply_sizes(size_of(batch), dataset_.example_bytes());
}

std::vector<std::int64_t> BatchMaker::examples_of(const DataLoaderPosition& position) {
  const std::int64_t first = position.batch * options_.batch_size;
  std::vector<std::int64_t> examples(static_cast<std::size_t>(size_of(position.batch)));
  if (!options_.shuffle) {
    std::iota(examples.begin(), examples.end(), first);
    return examples;
  }
  if (!order_ || order_->seed != position.seed || order_->epoch != position.epoch) {
    order_.reset();  // frees its memory before there is another
    order_ = Order{position.seed, position.epoch,
                   shuffled_order(dataset_.size(), position.seed, position.epoch)};
  }
  std::copy_n(order_->examples.begin() + first, examples.size(), examples.begin());
  return examples;
}

Batch BatchMaker::make(const DataLoaderPosition& position) {
  Batch batch{
      .names = {}, .tensors = {}, .examples = {}, .epoch = position.epoch, .index = position.batch};
  tbb::task_arena one_thread(1);
  one_thread.execute([&] {
    batch.examples = examples_of(position);
    for (const DatasetColumn& column : dataset_.columns()) batch.names.push_back(column.name);
    batch.tensors = dataset_.rows(batch.examples);
    if (options_.transform) options_.transform(batch);
  });
  return batch;
}

DataLoaderPosition BatchMaker::after(const DataLoaderPosition& position) const {
  if (position.batch + 1 < batches_) return {position.epoch, position.batch + 1, position.seed};
  return {position.epoch + 1, 0, position.seed};
}

}  // namespace palimpsest
