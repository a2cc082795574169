#include "data/data_loader.h"

#include <utility>

#include "autodiff/in_use.h"
#include "data/batch_maker.h"
#include "data/prefetcher.h"

namespace palimpsest {

struct DataLoader::State {
  State(Dataset dataset, DataLoaderOptions options)
      : maker(std::move(dataset), std::move(options)), prefetcher(maker) {
    position.seed = maker.options().seed;
  }

  InUse in_use{"DataLoader"};
  BatchMaker maker;
  Prefetcher prefetcher;
  DataLoaderPosition position;
};

DataLoader::DataLoader(Dataset dataset, DataLoaderOptions options)
    : state_(std::make_unique<State>(std::move(dataset), std::move(options))) {}
DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;

std::int64_t DataLoader::batches() const { return state_->maker.batches(); }

std::optional<Batch> DataLoader::next() {
  state_->prefetcher.require_other_thread("DataLoader::next");
  const InUse::Use use(state_->in_use, call_in_progress, "DataLoader::next");
  DataLoaderPosition& position = state_->position;
  if (position.batch == batches()) {
    position = {position.epoch + 1, 0, position.seed};
    return std::nullopt;
  }
  Batch batch = state_->maker.options().prefetch == 0 ? state_->maker.make(position)
                                                      : state_->prefetcher.take(position);
  ++position.batch;
  return batch;
}

DataLoaderPosition DataLoader::position() const { return state_->position; }

void DataLoader::set_position(const DataLoaderPosition& position) {
  state_->prefetcher.require_other_thread("DataLoader::set_position");
  const InUse::Use use(state_->in_use, call_in_progress, "DataLoader::set_position");
  constexpr std::int64_t epochs = std::int64_t{1} << 32;
  if (position.epoch < 0 || position.epoch >= epochs || position.batch < 0 ||
      position.batch > batches()) {
    throw ArgumentError("[data_loader] there is no batch " + std::to_string(position.batch) +
                        " in epoch " + std::to_string(position.epoch) +
                        "; give a batch from 0 to " + std::to_string(batches()) +
                        " and an epoch of 32 bits, as position() does");
  }
  state_->prefetcher.restart();
  state_->position = position;
}

Bytes DataLoader::prefetched_peak() const { return state_->prefetcher.peak(); }

}  // namespace palimpsest
