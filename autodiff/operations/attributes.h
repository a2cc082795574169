#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/operation.h"
#include "autodiff/operations/linalg.h"

/// Attributes of operations that are read outside of the file of their operation, for example to
/// express the operation in another language. Attributes that have a header of their own, such as
/// those of reductions, are not here.
namespace palimpsest {

/// The number of `full`.
struct FullAttributes {
  double value;

  bool operator==(const FullAttributes& other) const { return same_number(value, other.value); }
};

/// The numbers of `linspace`. The second half counts from `stop`, if there is one, so that rounding
/// errors are symmetric.
struct LinspaceAttributes {
  double start;
  double step;
  double stop;
  bool has_stop;

  bool operator==(const LinspaceAttributes& other) const {
    return same_number(start, other.start) && same_number(step, other.step) &&
           same_number(stop, other.stop) && has_stop == other.has_stop;
  }
};

/// Position of the smaller tensor's elements in the larger one: start + i·step on each axis. The
/// attributes of `slice`.
struct Places {
  Strides starts{};
  Strides steps{};

  bool operator==(const Places&) const = default;
};

/// Places and fill value of `pad`.
struct PadAttributes {
  Places places;
  double value;

  bool operator==(const PadAttributes& other) const {
    return places == other.places && same_number(value, other.value);
  }
};

/// Where each part of `concat` and `split` begins along the axis. Positions that no part covers
/// are zero.
struct PartAttributes {
  int axis;
  std::vector<std::int64_t> begins;

  bool operator==(const PartAttributes&) const = default;
};

/// The shift of `roll`. Positions [0, cut) of the axis hold the last elements of x, in order.
struct RollAttributes {
  int axis;
  std::int64_t cut;

  bool operator==(const RollAttributes&) const = default;
};

/// The axis of `softmax`, `log_softmax` and their adjoints.
struct AxisAttributes {
  int axis;
};

/// Options of `cross_entropy`, `nll` and their adjoints.
struct ClassAttributes {
  int axis;
  double smoothing;
  std::optional<std::int64_t> ignored;
  std::string_view operation;
  Where where;

  bool operator==(const ClassAttributes& other) const {
    return axis == other.axis && same_number(smoothing, other.smoothing) &&
           ignored == other.ignored && operation == other.operation &&
           same_line(where, other.where);
  }
  /// Throws `ArgumentError` for a class outside [0, classes).
  std::int64_t checked(std::int64_t choice, std::int64_t classes, std::int64_t place) const {
    if (choice >= 0 && choice < classes) return choice;
    throw ArgumentError(operation,
                        "class " + std::to_string(choice) + " at position " +
                            std::to_string(place) + " is outside [0, " + std::to_string(classes) +
                            "); correct it, or pass it as ignore_index",
                        where);
  }
};

/// Options of `solve` and `inverse`.
struct SolveAttributes {
  bool transpose;
  Where where;

  bool operator==(const SolveAttributes& other) const {
    return transpose == other.transpose && same_line(where, other.where);
  }
};

/// Options of `triangular_solve`.
struct TriangularAttributes {
  TriangularSolveOptions options;
  Where where;

  bool operator==(const TriangularAttributes& other) const {
    return options == other.options && same_line(where, other.where);
  }
};

}  // namespace palimpsest
