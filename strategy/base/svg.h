#pragma once

#include <string>
#include <utility>
#include <vector>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Curves over common axes that begin at zero, as in the pictures of reports and examples.
struct Chart {
  struct Curve {
    std::string label;
    std::vector<std::pair<double, double>> points;  ///< ordered by x
    bool stepped = true;  ///< holds each y until the next x; otherwise straight lines
  };
  /// A labelled horizontal line.
  struct Line {
    std::string label;
    double y;
  };

  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Curve> curves;
  std::vector<Line> lines;
};

/// The chart as a self-contained SVG document of about 900 × 420 pixels, readable on a light or a
/// dark page. Curves with more points than pixels are thinned to their extremes.
std::string render(const Chart& chart);

}  // namespace palimpsest
