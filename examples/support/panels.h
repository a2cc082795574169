#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "palimpsest.h"

namespace examples {

/// A field of two axes in colours, dark where it is `low` and bright where it is `high`; the first
/// row is at the top.
struct HeatMap {
  std::string title;
  palimpsest::Tensor field;  ///< f64
  double low = 0;
  double high = 1;
  std::vector<std::pair<double, double>> marks = {};  ///< dots, each a row and a column
};

/// Curves over axes that fit them.
struct Plot {
  struct Curve {
    std::string label;
    std::vector<std::pair<double, double>> points;
    bool dots = false;  ///< the points themselves in place of a line through them
  };

  std::string title;
  std::string x_label;
  std::vector<Curve> curves;
  bool logarithmic = false;  ///< the y axis; points that are not positive are left out
  bool equal_axes = false;   ///< one scale for both
};

using Panel = std::variant<HeatMap, Plot>;

/// The panels side by side, `columns` of them in a row, as a self-contained SVG document.
std::string draw(std::span<const Panel> panels, std::size_t columns = 3);

}  // namespace examples
