#pragma once

#include <string>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// A random program that any operation of the library may be part of, as a list of steps. Each step
/// is drawn from the seed and its own number, so that the program stays one when steps are left
/// out.
struct ProgramText {
  std::uint64_t seed = 0;
  std::vector<std::uint32_t> steps;
};

/// The program of a seed: 1 to 24 steps.
ProgramText program_of(std::uint64_t seed);
/// `SEED` or, where steps were left out, `SEED:STEP,STEP,...`; `text_of` reads that.
std::string to_string(const ProgramText& text);
ProgramText text_of(const std::string& written);

/// What a program records.
struct ComposedProgram {
  std::vector<Var> parameters;
  std::vector<std::string> lines;  ///< of each step, what it does
  Var loss;
  Var other_loss;  ///< of some of the same values
  Var last;        ///< that a step made
};

/// Records the program. A step applies one of the library's operations, with the inputs of one of
/// its rows in tests/autodiff/operation_rows.h, each of them combined with what earlier steps made;
/// moves, joins, reduces or casts what earlier steps made; or does so inside a checkpoint, a loop
/// or an operation of the user's, or takes a derivative. The loss is a sum of terms that are
/// linear, constant or quadratic in some of the values. Where `parameters` are given, these are its
/// parameters: as many as it has, of the same types.
ComposedProgram compose(Tape& tape, const ProgramText& text, std::span<const Var> parameters = {});

}  // namespace palimpsest
