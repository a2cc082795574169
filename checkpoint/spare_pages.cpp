#include "checkpoint/spare_pages.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace palimpsest {

std::byte* SparePages::take(Bytes bytes) noexcept {
  const auto enough = by_size_.lower_bound({bytes, nullptr});
  if (enough != by_size_.end()) {
    const auto [size, pages] = *enough;
    remove(enough);
    if (size > bytes) give(pages + bytes, size - bytes);
    return pages;
  }
  std::byte* pages = grow_largest(bytes);
  if (pages == nullptr) {
    trim(bytes_ - bytes);
    pages = map_pages(bytes);
  }
  if (pages == nullptr && bytes_ > 0) {
    trim(0);
    pages = map_pages(bytes);
  }
  return pages;
}

std::byte* SparePages::grow_largest(Bytes bytes) noexcept {
  if (by_size_.empty()) return nullptr;
  const auto [size, pages] = *std::prev(by_size_.end());
  remove(std::prev(by_size_.end()));
  trim(bytes_ - (bytes - size));
  std::byte* const grown = grow_pages(pages, size, bytes);
  if (grown == nullptr) give(pages, size);
  return grown;
}

void SparePages::give(std::byte* pages, Bytes bytes) noexcept {
  std::byte* begin = pages;
  Bytes size = bytes;
  const auto next = pieces_.lower_bound(pages);
  const auto after = next != pieces_.end() && next->first == pages + bytes ? next : pieces_.end();
  const auto last = next != pieces_.begin() ? std::prev(next) : pieces_.end();
  const auto before =
      last != pieces_.end() && last->first + last->second == pages ? last : pieces_.end();
  for (const auto& neighbour : {before, after}) {
    if (neighbour == pieces_.end()) continue;
    begin = std::min(begin, neighbour->first);
    size += neighbour->second;
    remove(by_size_.find({neighbour->second, neighbour->first}));
  }
  try {
    const auto noted = by_size_.emplace(size, begin).first;
    try {
      pieces_.emplace(begin, size);
    } catch (...) {
      by_size_.erase(noted);
      throw;
    }
    bytes_ += size;
  } catch (const std::bad_alloc&) {
    unmap_pages(begin, size);
  }
}

void SparePages::trim(Bytes most) noexcept {
  while (bytes_ > std::max<Bytes>(most, 0)) {
    const auto [size, pages] = *std::prev(by_size_.end());
    remove(std::prev(by_size_.end()));
    const Bytes cut = std::min(size, whole_pages(bytes_ + size - std::max<Bytes>(most, 0)));
    unmap_pages(pages + (size - cut), cut);
    if (size > cut) give(pages, size - cut);
  }
}

void SparePages::remove(BySize::iterator piece) noexcept {
  bytes_ -= piece->first;
  pieces_.erase(piece->second);
  by_size_.erase(piece);
}

}  // namespace palimpsest
