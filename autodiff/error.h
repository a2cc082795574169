#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Source line in the user's program that recorded something. Defaulted parameters of this type
/// capture it.
using Where = std::source_location;

/// `file:line` of a source location, the form used in all messages.
std::string to_string(const Where& where);

/// True for locations on the same line.
inline bool same_line(const Where& a, const Where& b) {
  return a.line() == b.line() && a.file_name() == b.file_name();
}

/// Base class of every error this library reports. Four kinds derive from it: `UsageError`,
/// `EnvironmentError`, `StoppedError` and `InternalError`. A message reads `[operation] what is
/// wrong; what to do`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A mistake of the caller: a wrong shape, dtype, argument or setting.
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

/// A dtype that the operation does not support, or two dtypes that cannot be combined.
class DTypeError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// An argument, option or setting that is out of range.
class ArgumentError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A handle is used with a tape that it does not belong to, or after that tape was cleared. Also
/// thrown by a call that would change a tape or another object while it is in use, from a function
/// that is called meanwhile or from another thread.
class TapeError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Anomaly mode found the first NaN or infinity. The message names the operation, node, source
/// line, shapes and the range of each input.
class AnomalyError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A run ended early because the stop token of `RunOptions::stop` requested it.
class StoppedError : public Error {
 public:
  using Error::Error;
};

/// A limit of the environment: memory, budget, disk or files.
class EnvironmentError : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, truncated or malformed. The message names the file and, where it helps,
/// the place in it.
class FileError : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// A bug in this library. The message asks for a report.
class InternalError : public Error {
 public:
  explicit InternalError(std::string_view message);
  /// The error `cause`, with `details` for the report after its message.
  InternalError(const InternalError& cause, const std::string& details)
      : Error(cause.what() + ("\n" + details)) {}
};

/// Throws `InternalError` with `message` unless `holds`.
inline void internal_check(bool holds, const char* message) {
  if (!holds) throw InternalError(message);
}

}  // namespace palimpsest
