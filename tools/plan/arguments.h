#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autodiff/bytes.h"

namespace palimpsest::tool {

/// A budget as given by the user: bytes, or a share of the keep-all peak.
struct Budget {
  double amount = 1;
  bool share = true;
  Bytes of(Bytes keep_all_peak) const;
};

/// Parses `40%`, `2GiB`, `1.5 MiB` or `4096`; empty for anything else.
std::optional<Budget> parse_budget(std::string text);

/// The parsed command line.
struct Arguments {
  std::string graph;
  Budget budget;
  bool budget_given = false;
  std::vector<std::string> planners;  ///< in the given order; empty: the command's default
  std::optional<double> seconds;
  bool json = false;
  std::string schedule;  ///< file to write; empty: none
  std::string check;     ///< file to read; empty: none
  int sweep = 0;         ///< number of budgets; 0: no sweep
  std::string svg;       ///< file to write; empty: none
  std::string html;      ///< file to write; empty: none
  bool explain = false;
  bool list = false;
};

/// Parses the command line. Sets `exit_code` when nothing is left to do: after `--help`, and after
/// an error, which it prints.
Arguments read_arguments(int argc, char** argv, std::optional<int>& exit_code);

}  // namespace palimpsest::tool
