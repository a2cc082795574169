#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autodiff/bytes.h"

namespace palimpsest::tool {

/// A budget as it is given: bytes, or a share of what keeping everything takes.
struct Budget {
  double amount = 1;
  bool share = true;
  Bytes of(Bytes keep_all_peak) const;
};

/// Reads `40%`, `2GiB`, `1.5 MiB` or `4096`; nothing for anything else.
std::optional<Budget> parse_budget(std::string text);

/// What the program was asked to do.
struct Arguments {
  std::string graph;
  Budget budget;
  bool budget_given = false;
  std::vector<std::string> planners;  ///< as asked for; none: the command's choice
  std::optional<double> seconds;
  bool json = false;
  std::string schedule;  ///< file to write to, or none
  std::string check;     ///< file to read from, or none
  int sweep = 0;         ///< number of budgets, or 0
  std::string svg;       ///< file to write to, or none
  bool list = false;
};

/// Reads the command line. When there is nothing left to do, as after `--help` and after a mistake,
/// which it tells, `exit_code` is set.
Arguments read_arguments(int argc, char** argv, std::optional<int>& exit_code);

}  // namespace palimpsest::tool
