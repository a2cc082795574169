#include "autodiff/number_text.h"

#include <charconv>

namespace palimpsest {

std::string number_text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

}  // namespace palimpsest
