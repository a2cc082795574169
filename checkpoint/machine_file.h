#pragma once

#include <string>

#include "autodiff/export.h"
#include "checkpoint/machine.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Reads a machine from a JSON file of format `palimpsest-machine`, version 1, whose members are
/// those of the struct. The list of caches may be shorter, the smallest first. Rates of one kind of
/// work may be left out, and are then unknown. Throws `FileError` naming the file and the place in
/// it for anything the format does not allow, and naming the file for what `check` refuses.
Machine read_machine(const std::string& path);

/// Writes a machine such that `read_machine` gives an equal one. Throws what `check` throws, and
/// `FileError` when the file cannot be written.
void write_machine(const Machine& machine, const std::string& path);

}  // namespace palimpsest
