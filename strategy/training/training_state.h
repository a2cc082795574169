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
/// "optimizer/adam/steps". The metadata have the names of the parts, the position, a checksum of
/// each tensor, and one of the metadata. An existing file is replaced only when the new one is
/// complete. Throws `FileError` when the file cannot be written. Throws `ArgumentError` for a part
/// whose name is empty or contains '/' or ',', for an undefined tensor, and for text that is not
/// UTF-8.
void write_training_state(const std::string& path, const TrainingState& state);

/// Reads such a file. Throws `FileError` as `load_safetensors` does, for a file that
/// `write_training_state` did not write, and for one of a later version. Throws it for tensors or
/// metadata that do not fit their checksum; files of earlier versions may lack these.
TrainingState read_training_state(const std::string& path);

}  // namespace palimpsest
