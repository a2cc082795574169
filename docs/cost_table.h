#pragma once

#include <string>
#include <vector>

namespace palimpsest {

/// The costs of functions that are not elementwise or record several nodes, and the values that
/// their backward parts read.
struct CostTable {
  std::string rows;                   ///< in Markdown
  std::vector<std::string> problems;  ///< such as operations in no example
};

/// Records the examples with several sizes, and finds how the costs of their nodes grow.
CostTable cost_table();

}  // namespace palimpsest
