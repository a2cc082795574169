#pragma once

// Includes the common part of Catch2 3 (many headers) and Catch2 2 (one header). Only this header
// and catch_main.cpp use names that one of them lacks, such as Approx (its namespace moved) and
// SKIP (3 only); the test `catch_names` checks that. Include this header before
// <rapidcheck/catch.h>.
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace Catch::Matchers {
// The name in Catch2 2.
inline auto Contains(const std::string& text) { return ContainsSubstring(text); }
}  // namespace Catch::Matchers
#else
#include <catch2/catch.hpp>
#pragma GCC poison Approx
#endif

#include <functional>
#include <string>
#include <utility>

namespace palimpsest {

/// Registers a test case whose body is known at run time only, as TEST_CASE registers one that is
/// written out.
inline void register_test(std::function<void()> body, const std::string& name,
                          const std::string& tags, const char* file, int line) {
  class Test final : public Catch::ITestInvoker {
   public:
    explicit Test(std::function<void()> body) : body_(std::move(body)) {}
    void invoke() const override { body_(); }

   private:
    std::function<void()> body_;
  };
  const Catch::SourceLineInfo place(file, static_cast<std::size_t>(line));
#if __has_include(<catch2/catch_test_macros.hpp>)
  Catch::Detail::unique_ptr<Catch::ITestInvoker> test(new Test(std::move(body)));
  Catch::AutoReg(std::move(test), place, Catch::StringRef(), Catch::NameAndTags{name, tags});
#else
  Catch::AutoReg(new Test(std::move(body)), place, Catch::StringRef(),
                 Catch::NameAndTags{name, tags});
#endif
}

}  // namespace palimpsest
