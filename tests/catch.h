#pragma once

// Catch2 3 (many headers) or 2 (one): the part both have. Do not use Approx (its namespace moved)
// or SKIP (3 only). Include before <rapidcheck/catch.h>.
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>

namespace Catch::Matchers {
// 2's name for it.
inline auto Contains(const std::string& text) { return ContainsSubstring(text); }
}  // namespace Catch::Matchers
#else
#include <catch2/catch.hpp>
#pragma GCC poison Approx
#endif
