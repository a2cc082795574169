#pragma once

#include <initializer_list>
#include <string>

#include "autodiff/error.h"
#include "tests/catch.h"

namespace palimpsest {

/// The message of the `UsageError` that `f` throws; empty when it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// Checks that `f` throws a `UsageError` whose message contains all of `words`.
template <class F>
void check_error(F f, std::initializer_list<std::string> words) {
  const std::string message = error_of(f);
  for (const std::string& word : words) CHECK_THAT(message, Catch::Matchers::Contains(word));
}

}  // namespace palimpsest
