#include "tests/programs/program_text.h"

#include <algorithm>
#include <sstream>

namespace palimpsest {

ProgramText program_of(std::uint64_t seed) {
  ProgramText text{seed, {}};
  const std::uint64_t mixed = seed * 0x9e3779b97f4a7c15u;
  auto size = static_cast<std::uint32_t>(1 + (mixed >> 40) % 24);
  if (seed >= first_with_modules) {
    for (const int shift : {30, 20}) {
      size = std::min(size, static_cast<std::uint32_t>(1 + (mixed >> shift) % 24));
    }
  }
  for (std::uint32_t step = 0; step < size; ++step) text.steps.push_back(step);
  return text;
}

std::string to_string(const ProgramText& text) {
  std::string written = std::to_string(text.seed);
  if (text.steps == program_of(text.seed).steps) return written;
  char separator = ':';
  for (const std::uint32_t step : text.steps) {
    written += separator + std::to_string(step);
    separator = ',';
  }
  return written;
}

ProgramText text_of(const std::string& written) {
  std::istringstream stream(written);
  ProgramText text;
  stream >> text.seed;
  if (stream.peek() != ':') return program_of(text.seed);
  char separator = 0;
  for (std::uint32_t step = 0; stream >> separator >> step;) text.steps.push_back(step);
  return text;
}

}  // namespace palimpsest
