#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "checkpoint/stores/spill_file.h"

namespace palimpsest::tests {

using Sizes = std::vector<RecordPiece>;

/// The bytes of a record: one half is noise, the other half compresses well.
class Record {
 public:
  Record(const Sizes& sizes, unsigned seed) {
    std::minstd_rand random(seed);
    for (const auto& [size, dtype] : sizes) {
      std::vector<std::byte>& piece = pieces_.emplace_back(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < piece.size(); ++i) {
        const auto number = static_cast<unsigned>(random());
        piece[i] = static_cast<std::byte>(i < piece.size() / 2 ? number % 3 + seed : number);
      }
    }
  }

  std::vector<std::span<const std::byte>> bytes() const { return {pieces_.begin(), pieces_.end()}; }
  std::vector<std::span<std::byte>> room() { return {pieces_.begin(), pieces_.end()}; }
  bool operator==(const Record&) const = default;

 private:
  std::vector<std::vector<std::byte>> pieces_;
};

}  // namespace palimpsest::tests
