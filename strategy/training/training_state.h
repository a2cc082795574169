#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "autodiff/export.h"
#include "strategy/training/safetensors.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Where a training run is in its data, as small numbers and texts by name.
using DataPosition = std::map<std::string, std::variant<std::int64_t, std::string>>;

/// The number or text of that name. Throw `ArgumentError` when there is none, or one of the other
/// kind.
std::int64_t integer_at(const DataPosition& position, const std::string& name);
const std::string& text_at(const DataPosition& position, const std::string& name);

/// The content of a file that a training run continues from (see training_parts.h).
struct TrainingState {
  std::map<std::string, NamedTensors> parts;  ///< such as the parameters, and the optimizer's state
  DataPosition position;
};

/// Writes a safetensors file. A tensor is named by its part and its own name, as in
/// "optimizer/adam/steps". The metadata have the names of the parts, the position, and a checksum
/// of each tensor. An existing file is replaced only when the new one is complete. Throws
/// `FileError` when the file cannot be written. Throws `ArgumentError` for a part whose name is
/// empty or contains '/' or ',', for an undefined tensor, and for text that is not UTF-8.
void write_training_state(const std::string& path, const TrainingState& state);

/// Reads such a file. Throws `FileError` as `load_safetensors` does, for a tensor that its checksum
/// does not fit, for a file that `write_training_state` did not write, and for one of a later
/// version. Files of earlier versions have no checksums.
TrainingState read_training_state(const std::string& path);

}  // namespace palimpsest
