#pragma once

#include <string>

#include "palimpsest.h"

namespace examples {

/// A text as a sequence of numbers, one per character. The alphabet is the sorted set of characters
/// that occur.
class Text {
 public:
  explicit Text(const std::string& characters);

  std::int64_t size() const { return numbers_.elements(); }
  std::int64_t alphabet_size() const { return static_cast<std::int64_t>(alphabet_.size()); }
  /// The numbers, i32 (size).
  const palimpsest::Tensor& numbers() const { return numbers_; }
  char character(std::int64_t number) const { return alphabet_[static_cast<std::size_t>(number)]; }

 private:
  std::string alphabet_;
  palimpsest::Tensor numbers_;
};

/// The King James Bible without the names of the verses, as printed by the program of Debian's
/// package bible-kjv. Throws `palimpsest::FileError` when the program is missing.
std::string read_king_james_bible();

}  // namespace examples
