#include "checkpoint/eviction_queue.h"

#include <climits>
#include <cmath>

namespace palimpsest {

namespace {

int band_of(double price) {
  if (!(price > 0)) return INT_MIN;
  return std::isfinite(price) ? static_cast<int>(std::floor(4 * std::log2(price))) : INT_MAX;
}

}  // namespace

void EvictionQueue::put(ValueId root, double price, double last_use) {
  if (places_.size() <= root) places_.resize(root + 1);
  Place& place = places_[root];
  const int band = band_of(price);
  if (place.present && place.band == band && place.last_use == last_use) {
    place.price = price;
    return;
  }
  erase(root);
  place = {true, band, price, last_use};
  auto& storages = bands_[band];
  storages.emplace_hint(storages.end(), last_use, root);  // it was usually used last of all
}

void EvictionQueue::erase(ValueId root) {
  if (!contains(root)) return;
  Place& place = places_[root];
  const auto band = bands_.find(place.band);
  band->second.erase({place.last_use, root});
  if (band->second.empty()) bands_.erase(band);
  place.present = false;
}

ValueId EvictionQueue::least(double now) const {
  ValueId best = none;
  for (const auto& [band, storages] : bands_) {
    const ValueId first = storages.begin()->second;
    // Compares price / idle time by products, because an idle time may be 0.
    if (best == none || places_[first].price * (now - places_[best].last_use) <
                            places_[best].price * (now - places_[first].last_use)) {
      best = first;
    }
  }
  return best;
}

}  // namespace palimpsest
