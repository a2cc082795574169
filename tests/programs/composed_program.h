#pragma once

#include <string>
#include <vector>

#include "tests/programs/composed_modules.h"

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

/// The program of a seed: 1 to 24 steps; from `first_with_modules` on, one in eight has more than
/// 12, and one in sixty more than 18.
ProgramText program_of(std::uint64_t seed);
/// `SEED` or, if steps were removed, `SEED:STEP,STEP,...`; `text_of` parses this.
std::string to_string(const ProgramText& text);
ProgramText text_of(const std::string& written);

/// The recorded values of a program.
struct ComposedProgram {
  std::vector<Var> parameters;
  std::vector<std::string> lines;  ///< description of each step
  Var loss;
  Var other_loss;                     ///< depends on some of the same values
  Var last;                           ///< the last value that a step made
  std::vector<Tape::Update> updates;  ///< of running statistics
};

/// Records the program. A step does one of the following:
/// - It applies one of the library's operations. The inputs are those of one of its rows in
///   tests/autodiff/operation_rows.h, each combined with results of earlier steps.
/// - It applies a layer of nn/ to the result of an earlier step, perhaps inside a checkpoint.
/// - It moves, joins, reduces or casts results of earlier steps.
/// - It does so inside a checkpoint, a loop or a custom operation, or takes a derivative.
/// The loss is a sum of terms that are linear, constant or quadratic in some of the values.
/// `parameters`, if given, replace those of the program: the same number with the same types. Then
/// `modules` must be those of the recording that the parameters come from. Loops outside of
/// checkpoints keep journals in the directory `journals`, if one is given.
ComposedProgram compose(Tape& tape, const ProgramText& text, std::span<const Var> parameters = {},
                        ComposedModules* modules = nullptr, const std::string& journals = {});

}  // namespace palimpsest
