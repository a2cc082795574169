#pragma once

#include <functional>
#include <span>
#include <vector>

#include "autodiff/gradient.h"

namespace palimpsest {

/// A function of values that records what it does.
using Composition = std::function<std::vector<Var>(std::span<const Var>)>;

/// For the VJP of an operation that equals `f`, a composition of others: records `f` of the inputs,
/// differentiates the nodes recorded and sets the adjoints of the inputs asked for. What it records
/// can be differentiated again. Throws `ArgumentError` when `f` does not give one value for every
/// output, `ShapeError` when their types differ.
void pull_back_through(const Pullback& p, const Composition& f);

/// The same with `f` taken at other values, one for each of the first inputs and of its type; the
/// derivatives do not flow through those behind.
void pull_back_through(const Pullback& p, const Composition& f, std::span<const Var> at);

}  // namespace palimpsest
