#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace palimpsest {

/// An environment variable that has another value while this object lives.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value)
      : name_(name), before_(value_of(name)) {
    ::setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

  /// Empty if there is no such variable.
  static std::optional<std::string> value_of(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace palimpsest
