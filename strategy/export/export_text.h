#pragma once

#include <string>

#include "strategy/export/c_file.h"
#include "strategy/export/export_state.h"

namespace palimpsest {

/// The parts of the two files.
struct ExportText {
  const ExportedC& exported;
  const COptimizerText& optimizer;
  const ExportState& state;
  const CFile& file;
  std::string statements;  ///< of the exported function
  bool fails = false;      ///< some statement may set `status`
};

std::string header_text(const ExportText& text);
std::string source_text(const ExportText& text);

}  // namespace palimpsest
