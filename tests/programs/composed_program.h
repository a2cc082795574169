#pragma once

#include <string>
#include <vector>

#include "tests/programs/composed_modules.h"
#include "tests/programs/program_text.h"

namespace palimpsest {

/// The recorded values of a program.
struct ComposedProgram {
  std::vector<Var> parameters;
  std::vector<std::string> lines;  ///< description of each step
  Var loss;
  Var other_loss;                     ///< depends on some of the same values
  Var last;                           ///< the last value that a step made
  std::vector<Tape::Update> updates;  ///< of running statistics
  bool reads_values = false;          ///< a step of a loop follows the values that it reads
  bool steps_differ = false;          ///< those of a loop
  bool has_derivatives = false;       ///< by values that are no leaves
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
