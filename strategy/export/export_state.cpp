#include "strategy/export/export_state.h"

#include <algorithm>

#include "strategy/export/c_text.h"

namespace palimpsest {

ExportState::ExportState(const COptimizerText& optimizer, const ExportNames& names,
                         std::span<const Var> parameters)
    : counts_steps_(optimizer.counts_steps()) {
  for (const Var& parameter : parameters) {
    const std::int64_t elements = parameter.shape().elements();
    if (elements == 0) continue;
    for (const std::string& slot : optimizer.slots()) {
      arrays_.push_back({*names.leaf(parameter.id()) + "_" + slot, parameter.dtype(), elements});
    }
  }
}

Bytes ExportState::bytes() const {
  Bytes bytes = counts_steps_ ? size_of(DType::i64) : 0;
  Bytes alignment = std::max<Bytes>(bytes, 1);
  const auto align = [&](Bytes unit) { bytes = (bytes + unit - 1) / unit * unit; };
  for (const Array& array : arrays_) {
    align(size_of(array.dtype));
    alignment = std::max(alignment, size_of(array.dtype));
    bytes += size_of(array.dtype) * array.elements;
  }
  align(alignment);
  return bytes;
}

std::string ExportState::definition(const std::string& name) const {
  std::string text = "\n/* The optimizer's state: all zeros before the first call. */\n";
  text += "typedef struct " + name + "_state {\n";
  if (counts_steps_) text += "  int64_t steps;\n";
  for (const Array& array : arrays_) {
    text += "  " + c_type(array.dtype) + " " + array.name + "[" + std::to_string(array.elements) +
            "];\n";
  }
  return text + "} " + name + "_state;\n";
}

}  // namespace palimpsest
