#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace palimpsest {

/// A random program, as a list of steps, that may contain any operation of the library. Each step
/// is drawn from the seed and its own number, so the program remains valid when steps are removed.
struct ProgramText {
  std::uint64_t seed = 0;
  std::vector<std::uint32_t> steps;
};

/// Programs of this seed and later ones apply layers of nn/, and most of them are small, because
/// planning takes most of the time of a check. Earlier ones stay as they are, since tests and past
/// findings name them.
constexpr std::uint64_t first_with_modules = 1'000'000;

/// Long programs of this seed and later ones have a budget in few of their cells only, the fewer
/// the longer they are. A budget takes ten times as long to check as anything else, so this checks
/// more programs in the same time.
constexpr std::uint64_t first_in_bulk = 10'000'000;

/// Programs of this seed and later ones also reduce matrices of many rows along each axis.
constexpr std::uint64_t first_with_columns = 21'000'000;

/// Losses of programs of this seed and later ones have means over weights.
constexpr std::uint64_t first_with_weights = 22'000'000;

/// Programs of this seed and later ones have loops in loops, and derivatives by values that are no
/// leaves. Steps of some loops differ, so they are recorded one by one.
constexpr std::uint64_t first_with_nesting = 24'000'000;

/// Programs of this seed and later ones have loops of several state tensors, some of which no
/// derivative of a step reads or needs.
constexpr std::uint64_t first_with_components = 28'000'000;

/// The program of a seed: 1 to 24 steps; from `first_with_modules` on, one in eight has more than
/// 12, and one in sixty more than 18.
ProgramText program_of(std::uint64_t seed);
/// `SEED` or, if steps were removed, `SEED:STEP,STEP,...`; `text_of` parses this.
std::string to_string(const ProgramText& text);
ProgramText text_of(const std::string& written);

}  // namespace palimpsest
