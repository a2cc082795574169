#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// x under another shape of as many elements; one size may be −1 and is inferred. A view.
Var reshape(const Var& x, const Shape& shape, Where where = Where::current());
Var reshape(const Var& x, std::initializer_list<std::int64_t> sizes,
            Where where = Where::current());

/// x repeated along axes of size 1, and along new axes in front, to fill `shape`.
Var broadcast_to(const Var& x, const Shape& shape, Where where = Where::current());

}  // namespace palimpsest
