#include "strategy/base/svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace palimpsest {
namespace {

constexpr double width = 900;
constexpr double height = 420;
constexpr double left = 70;
constexpr double right = 30;
constexpr double top = 44;
constexpr double bottom = 56;
constexpr const char* colours[] = {"#1f77b4", "#d62728", "#2ca02c",
                                   "#9467bd", "#ff7f0e", "#17becf"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string coordinate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor,
                    const std::string& more = "") {
  return "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" text-anchor=\"" + anchor +
         "\"" + more + ">" + escaped(text) + "</text>\n";
}

std::string line_from(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line x1=\"" + coordinate(x1) + "\" y1=\"" + coordinate(y1) + "\" x2=\"" +
         coordinate(x2) + "\" y2=\"" + coordinate(y2) + "\" " + style + "/>\n";
}

/// A round step for an axis from 0 to `most` with about five ticks.
double tick_step(double most) {
  const double rough = most / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

struct ChartAxes {
  double most_x = 0;
  double most_y = 0;
  double x(double value) const { return left + value / most_x * (width - left - right); }
  double y(double value) const {
    return height - bottom - value / most_y * (height - top - bottom);
  }
};

ChartAxes axes_of(const Chart& chart) {
  ChartAxes axes;
  for (const auto& curve : chart.curves) {
    for (const auto& [x, y] : curve.points) {
      axes.most_x = std::max(axes.most_x, x);
      axes.most_y = std::max(axes.most_y, y);
    }
  }
  for (const auto& line : chart.lines) axes.most_y = std::max(axes.most_y, line.y);
  if (axes.most_x <= 0) axes.most_x = 1;
  axes.most_y = axes.most_y > 0 ? 1.08 * axes.most_y : 1;
  return axes;
}

/// The positions of ticks from 0 to `most`.
std::vector<double> ticks(double most) {
  const double step = tick_step(most);
  std::vector<double> result;
  for (int k = 0; k * step <= most; ++k) result.push_back(k * step);
  return result;
}

std::string frame(const Chart& chart, const ChartAxes& axes) {
  std::string svg;
  const std::string grid = "stroke=\"currentColor\" stroke-opacity=\"0.15\"";
  for (const double y : ticks(axes.most_y)) {
    svg += line_from(left, axes.y(y), width - right, axes.y(y), grid);
    svg += text_at(left - 8, axes.y(y) + 4, number(y), "end");
  }
  for (const double x : ticks(axes.most_x)) {
    svg += line_from(axes.x(x), height - bottom, axes.x(x), height - bottom + 5, grid);
    svg += text_at(axes.x(x), height - bottom + 20, number(x), "middle");
  }
  svg += text_at(left, 24, chart.title, "start", " font-size=\"16\"");
  svg += text_at((left + width - right) / 2, height - 12, chart.x_label, "middle");
  svg += text_at(0, 0, chart.y_label, "middle",
                 " transform=\"translate(18 " + coordinate(height / 2) + ") rotate(-90)\"");
  return svg;
}

/// Points of a curve in pixels. If several share a pixel column, only the first, the extremes and
/// the last remain.
std::vector<std::pair<double, double>> thinned(const Chart::Curve& curve, const ChartAxes& axes) {
  std::vector<std::pair<double, double>> pixels;
  std::size_t i = 0;
  while (i < curve.points.size()) {
    const double column = std::floor(axes.x(curve.points[i].first));
    const std::size_t first = i;
    std::size_t lowest = i;
    std::size_t highest = i;
    for (; i < curve.points.size() && std::floor(axes.x(curve.points[i].first)) == column; ++i) {
      if (curve.points[i].second < curve.points[lowest].second) lowest = i;
      if (curve.points[i].second > curve.points[highest].second) highest = i;
    }
    std::size_t shown[] = {first, lowest, highest, i - 1};
    std::sort(std::begin(shown), std::end(shown));
    const auto end = std::unique(std::begin(shown), std::end(shown));
    for (auto at = std::begin(shown); at != end; ++at) {
      pixels.emplace_back(axes.x(curve.points[*at].first), axes.y(curve.points[*at].second));
    }
  }
  return pixels;
}

std::string path_of(const Chart::Curve& curve, const ChartAxes& axes, const char* colour) {
  std::string path =
      "<path fill=\"none\" stroke=\"" + std::string(colour) + "\" stroke-width=\"1.6\" d=\"";
  bool first = true;
  for (const auto& [x, y] : thinned(curve, axes)) {
    if (!first && curve.stepped)
      path += "H" + coordinate(x) + "V" + coordinate(y);
    else
      path += (first ? "M" : "L") + coordinate(x) + " " + coordinate(y);
    first = false;
  }
  return path + "\"/>\n";
}

const char* ink(std::size_t curve) { return colours[curve % std::size(colours)]; }

/// The names of the curves, on a background of their own, so that grid and curves do not cross
/// them.
std::string legend_of(const Chart& chart) {
  constexpr double row = 16;
  constexpr double box = 196;
  if (chart.curves.empty()) return "";
  std::string svg = "<rect x=\"" + coordinate(width - right - box) + "\" y=\"" +
                    coordinate(top - 12) + "\" width=\"" + coordinate(box) + "\" height=\"" +
                    coordinate(row * static_cast<double>(chart.curves.size()) + 8) +
                    "\" fill=\"#fff\" fill-opacity=\"0.85\"/>\n";
  double y = top + 4;
  for (std::size_t i = 0; i < chart.curves.size(); ++i, y += row) {
    svg += line_from(width - right - 190, y - 4, width - right - 170, y - 4,
                     "stroke=\"" + std::string(ink(i)) + "\" stroke-width=\"3\"");
    svg += text_at(width - right - 164, y, chart.curves[i].label, "start");
  }
  return svg;
}

}  // namespace

std::string render(const Chart& chart) {
  const ChartAxes axes = axes_of(chart);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) +
                    " " + number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\">\n"
                    "<style>svg{color:#222;background:#fff}</style>\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  svg += frame(chart, axes);
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    svg += path_of(chart.curves[i], axes, ink(i));
  }
  bool above = true;
  for (const auto& line : chart.lines) {
    svg += line_from(left, axes.y(line.y), width - right, axes.y(line.y),
                     "stroke=\"#888\" stroke-dasharray=\"6 4\"");
    // Labels alternate above and below their lines, so that a budget and a peak just below it stay
    // legible.
    svg += text_at(left + 6, axes.y(line.y) + (above ? -4 : 14), line.label, "start",
                   " fill=\"#666\"");
    above = !above;
  }
  return svg + legend_of(chart) + "</svg>\n";
}

}  // namespace palimpsest
