#include "examples/support/panels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "examples/support/png.h"
#include "examples/support/program_main.h"

namespace examples {
namespace {

constexpr double side = 260;  // of the square drawing area of a panel
constexpr double left = 62, right = 18, top = 34, bottom = 64;  // margins
constexpr double width = left + side + right;
constexpr double height = top + side + bottom;
constexpr const char* inks[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd"};

/// The viridis colour map at equal distances, from dark blue through green to yellow.
constexpr Colour stops[] = {{68, 1, 84},    {71, 44, 122},  {59, 81, 139},
                            {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
                            {92, 200, 99},  {170, 220, 50}, {253, 231, 37}};

std::vector<Colour> palette() {
  std::vector<Colour> colours;
  for (std::size_t i = 0; i < 256; ++i) {
    const double place = static_cast<double>(i) / 255 * static_cast<double>(std::size(stops) - 1);
    const std::size_t k = std::min(static_cast<std::size_t>(place), std::size(stops) - 2);
    const double part = place - static_cast<double>(k);
    Colour& colour = colours.emplace_back();
    for (std::size_t c = 0; c < 3; ++c) {
      colour[c] =
          static_cast<std::uint8_t>(std::lround((1 - part) * stops[k][c] + part * stops[k + 1][c]));
    }
  }
  return colours;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor,
                    const char* more = "") {
  return format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>", x, y, anchor, more) + text +
         "</text>\n";
}

std::string frame(const std::string& title) {
  return text_at(left, top - 12, title, "start", "font-size=\"14\"") +
         format(
             "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"none\" "
             "stroke=\"#999\"/>\n",
             left, top, side, side);
}

std::string image(const std::string& file, double x, double y, double w, double h) {
  return format(
             "<image x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
             "preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
             "href=\"data:image/png;base64,",
             x, y, w, h) +
         base64(file) + "\"/>\n";
}

std::string content(const HeatMap& map) {
  const auto rows = static_cast<std::size_t>(map.field.shape()[0]);
  const auto columns = static_cast<std::size_t>(map.field.shape()[1]);
  std::vector<std::uint8_t> pixels;
  for (const double value : map.field.data<double>()) {
    const double part = std::clamp((value - map.low) / (map.high - map.low), 0.0, 1.0);
    pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * part)));
  }
  std::string svg = image(png(pixels, rows, columns, palette()), left, top, side, side);
  for (const auto& [row, column] : map.marks) {
    svg += format(
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"#fff\" stroke=\"#000\" "
        "stroke-width=\"0.6\"/>\n",
        left + (column + 0.5) / static_cast<double>(columns) * side,
        top + (row + 0.5) / static_cast<double>(rows) * side);
  }
  std::vector<std::uint8_t> ramp;
  for (int i = 0; i < 256; ++i) ramp.push_back(static_cast<std::uint8_t>(i));
  return svg + image(png(ramp, 1, 256, palette()), left, top + side + 10, side, 8) +
         text_at(left, top + side + 32, format("%.3g", map.low), "start") +
         text_at(left + side, top + side + 32, format("%.3g", map.high), "end");
}

/// An axis from `low` to `high`, in values or in their logarithms.
struct Axis {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  bool logarithmic = false;

  double scaled(double value) const { return logarithmic ? std::log10(value) : value; }
  bool shows(double value) const { return std::isfinite(scaled(value)); }
  void include(double value) {
    low = std::min(low, scaled(value));
    high = std::max(high, scaled(value));
  }
  /// Moves the ends apart to at least `span`. An axis with a single value gets some room too.
  void widen(double span) {
    const double room = (std::max(span, 1e-9 * (1 + std::abs(high))) - (high - low)) / 2;
    low -= room;
    high += room;
  }
  /// Position of a value between the ends, from 0 to 1.
  double place(double value) const { return (scaled(value) - low) / (high - low); }
  std::string label(double tick) const {
    return logarithmic ? format("1e%g", std::log10(tick)) : format("%g", tick);
  }
  /// About five round numbers between the ends; powers of ten on a logarithmic axis.
  std::vector<double> ticks() const {
    const double rough = (high - low) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0}) {
      if (rough <= factor * power) step = factor * power;
    }
    if (logarithmic) step = std::max(1.0, std::round(step));
    std::vector<double> result;
    for (double k = std::ceil(low / step); k * step <= high; ++k) {
      result.push_back(logarithmic ? std::pow(10, k * step) : k * step);
    }
    return result;
  }
};

std::string content(const Plot& plot) {
  Axis x, y{.logarithmic = plot.logarithmic};
  for (const auto& curve : plot.curves) {
    for (const auto& [a, b] : curve.points) {
      if (!y.shows(b)) continue;
      x.include(a);
      y.include(b);
    }
  }
  y.widen(1.1 * (y.high - y.low));
  if (plot.equal_axes) {
    const double span = std::max(1.05 * (x.high - x.low), y.high - y.low);
    x.widen(span);
    y.widen(span);
  }
  const auto across = [&](double value) { return left + x.place(value) * side; };
  const auto down = [&](double value) { return top + (1 - y.place(value)) * side; };

  std::string svg;
  const char* grid = "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#ddd\"/>\n";
  for (const double value : x.ticks()) {
    svg += format(grid, across(value), top, across(value), top + side);
    svg += text_at(across(value), top + side + 16, x.label(value), "middle");
  }
  for (const double value : y.ticks()) {
    svg += format(grid, left, down(value), left + side, down(value));
    svg += text_at(left - 6, down(value) + 4, y.label(value), "end");
  }
  svg += text_at(left + side / 2, top + side + 36, plot.x_label, "middle");

  std::string legend;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const auto& curve = plot.curves[i];
    const char* ink = inks[i % std::size(inks)];
    std::string path;
    for (const auto& [a, b] : curve.points) {
      if (!y.shows(b)) continue;
      // A line of length zero with round caps is a dot.
      path += format(path.empty() || curve.dots ? "M%.1f %.1f" : "L%.1f %.1f", across(a), down(b));
      if (curve.dots) path += "h0";
    }
    svg += format(
               "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" stroke-linecap=\"round\" "
               "stroke-linejoin=\"round\" d=\"",
               ink, curve.dots ? "3.6" : "1.6") +
           path + "\"/>\n";
    legend += format("<tspan dx=\"14\" fill=\"%s\">", ink) + curve.label + "</tspan>";
  }
  svg += text_at(left + side / 2 - 7, top + side + 54, legend, "middle");
  return svg;
}

}  // namespace

std::string draw(std::span<const Panel> panels, std::size_t columns) {
  columns = std::min(columns, panels.size());
  const std::size_t rows = (panels.size() + columns - 1) / columns;
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
      width * static_cast<double>(columns), height * static_cast<double>(rows));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    svg +=
        format("<g transform=\"translate(%.0f %.0f)\">\n", width * static_cast<double>(i % columns),
               height * static_cast<double>(i / columns));
    svg += std::visit([](const auto& panel) { return content(panel) + frame(panel.title); },
                      panels[i]);
    svg += "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace examples
