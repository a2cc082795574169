#pragma once

// Includes the common part of Catch2 3 (many headers) and Catch2 2 (one header). Do not use Approx
// (its namespace moved) or SKIP (3 only). Include this header before <rapidcheck/catch.h>.
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
// The name in Catch2 2.
inline auto Contains(const std::string& text) { return ContainsSubstring(text); }
}  // namespace Catch::Matchers
#else
#include <catch2/catch.hpp>
#pragma GCC poison Approx
#endif
