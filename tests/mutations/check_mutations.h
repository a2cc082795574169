#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/mutations/mutations.h"
#include "tests/temporary_file.h"

namespace palimpsest {

/// Reads mutated contents. Each must be refused with a `FileError`, or `use` must succeed with it.
/// No allocation may exceed what the content can need.
inline void check_mutations(const std::string& content, bool json,
                            const std::function<void(const std::string& mutated)>& use) {
  const std::size_t most = std::size_t{1} << 22;
  REQUIRE_NOTHROW(use(content));
  int accepted = 0;
  const int wanted = mutations_wanted();
  for (int seed = 0; seed < wanted; ++seed) {
    Mutations mutations(static_cast<std::uint64_t>(seed));
    const std::string mutated = json ? mutations.of_json(content) : mutations.of_bytes(content);
    std::string problem;
    forget_allocations();
    try {
      use(mutated);
      ++accepted;
    } catch (const FileError&) {
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (largest_allocation() > most) problem += " allocated too much";
    if (!problem.empty()) {
      CAPTURE(seed, mutated);
      FAIL_CHECK(problem);
    }
  }
  CHECK(accepted < wanted);
}

/// Like `check_mutations`, for contents that are read from a file.
inline void check_file_mutations(const std::string& content, bool json,
                                 const std::function<void(const std::string& path)>& use) {
  const TemporaryFile file;
  check_mutations(content, json, [&](const std::string& mutated) {
    file.write(mutated);
    use(file.path());
  });
}

}  // namespace palimpsest
