#include "examples/support/host_c.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "palimpsest.h"

namespace examples {

bool has_command(const std::string& command) {
  return std::system(("command -v " + command + " > /dev/null 2>&1").c_str()) == 0;
}

std::string output_of(const std::string& command) {
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw palimpsest::FileError("cannot run " + command);
  std::string text;
  std::array<char, 4096> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe)) {
    text.append(part.data(), count);
  }
  if (pclose(pipe) != 0) throw palimpsest::FileError(command + " failed:\n" + text);
  return text;
}

}  // namespace examples
