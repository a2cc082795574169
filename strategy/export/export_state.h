#pragma once

#include <string>
#include <vector>

#include "strategy/export/emit_optimizer.h"
#include "strategy/export/export_names.h"

namespace palimpsest {

/// The struct that holds the state of an exported optimizer.
class ExportState {
 public:
  ExportState(const COptimizerText& optimizer, const ExportNames& names,
              std::span<const Var> parameters);

  bool exists() const { return counts_steps_ || !arrays_.empty(); }
  /// Bytes of the struct, as C lays it out.
  Bytes bytes() const;
  /// The definition of the type `name`_state.
  std::string definition(const std::string& name) const;

 private:
  struct Array {
    std::string name;
    DType dtype;
    std::int64_t elements;
  };
  bool counts_steps_;
  std::vector<Array> arrays_;
};

}  // namespace palimpsest
