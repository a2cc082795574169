#pragma once

#include <functional>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/gradient.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A function of values that records nodes.
using Composition = std::function<std::vector<Var>(std::span<const Var>)>;

/// Implements the VJP of an operation that equals `f`, a composition of other operations. Records
/// `f` of the inputs, differentiates the recorded nodes and sets the adjoints of the wanted inputs.
/// The recorded nodes can be differentiated again. Throws `ArgumentError` when `f` does not return
/// one value per output, `ShapeError` when their types differ.
void pull_back_through(const Pullback& p, const Composition& f);

/// Like the overload above, but evaluates `f` at the values `at` instead of the first inputs. `at`
/// holds one value for each of them, of its type. No derivatives flow through the remaining inputs.
void pull_back_through(const Pullback& p, const Composition& f, std::span<const Var> at);

}  // namespace palimpsest
