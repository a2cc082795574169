#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "palimpsest.h"

namespace examples {

/// A two-dimensional field as colours, dark at `low` and bright at `high`. The first row is at the
/// top.
struct HeatMap {
  std::string title;
  palimpsest::Tensor field;  ///< f64
  double low = 0;
  double high = 1;
  std::vector<std::pair<double, double>> marks = {};  ///< dots, each a (row, column)
};

/// Curves in a coordinate system scaled to fit them.
struct Plot {
  struct Curve {
    std::string label;
    std::vector<std::pair<double, double>> points;
    bool dots = false;  ///< draws the points themselves instead of a line through them
  };

  std::string title;
  std::string x_label;
  std::vector<Curve> curves;
  bool logarithmic = false;  ///< logarithmic y axis; points that are not positive are left out
  bool equal_axes = false;   ///< the same scale for both axes
};

using Panel = std::variant<HeatMap, Plot>;

/// Draws the panels side by side, `columns` per row, as a self-contained SVG document.
std::string draw(std::span<const Panel> panels, std::size_t columns = 3);

}  // namespace examples
