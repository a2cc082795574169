#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace palimpsest {

/// Where in the user's program something was recorded; defaulted parameters of this type capture
/// it.
using Where = std::source_location;

/// `file:line` of a source location, as every message writes it.
std::string to_string(const Where& where);

/// True for places in the same line.
inline bool same_line(const Where& a, const Where& b) {
  return a.line() == b.line() && a.file_name() == b.file_name();
}

/// Every failure this library reports. Three kinds of blame derive from it: `UsageError`,
/// `EnvironmentError` and `InternalError`. A message reads `[operation] what is wrong; what to do`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller's mistake: a wrong shape, dtype, argument or setting.
class UsageError : public Error {
 public:
  using Error::Error;
  /// Composes `[operation] message (recorded at file:line)`.
  UsageError(std::string_view operation, std::string_view message, const Where& where);
};

/// Shapes that do not fit the operation or each other.
class ShapeError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A dtype the operation does not take, or two that do not go together.
class DTypeError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// An argument, option or setting out of its range.
class ArgumentError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A handle used with a tape that it does not belong to, or after that tape was cleared; or a tape
/// that two threads record on at the same time.
class TapeError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Anomaly mode met the first NaN or infinity; the message names operation, node, source line,
/// shapes and the range of each input.
class AnomalyError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// The surroundings' limit: memory, budget, disk, files.
class EnvironmentError : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, truncated or malformed; the message names the file and the byte offset.
class FileError : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// A mistake of this library. The message asks for a report.
class InternalError : public Error {
 public:
  explicit InternalError(std::string_view message);
};

/// Throws `InternalError` with `message` unless `holds`.
inline void internal_check(bool holds, const char* message) {
  if (!holds) throw InternalError(message);
}

}  // namespace palimpsest
