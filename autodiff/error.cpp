#include "autodiff/error.h"

namespace palimpsest {

std::string to_string(const Where& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

namespace {

std::string compose(std::string_view operation, std::string_view message, const Where& where) {
  std::string text = "[";
  text.append(operation).append("] ").append(message);
  return text.append(" (recorded at ").append(to_string(where)).append(")");
}

}  // namespace

UsageError::UsageError(std::string_view operation, std::string_view message, const Where& where)
    : Error(compose(operation, message, where)) {}

InternalError::InternalError(std::string_view message)
    : Error("[internal] " + std::string(message) +
            "; this is a defect in Palimpsest; please report it with the program that caused it") {}

}  // namespace palimpsest
