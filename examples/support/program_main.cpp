#include "examples/support/program_main.h"

#include <cstdarg>
#include <cstdio>
#include <fstream>

#include "palimpsest.h"

namespace examples {

int program_main(int argc, char** argv, const std::function<bool(const Arguments&)>& run) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--quick") {
      arguments.quick = true;
    } else if (flag == "--output" && i + 1 < argc) {
      arguments.output = argv[++i];
    } else {
      std::fprintf(stderr, "usage: %s [--quick] [--output FOLDER]\n", argv[0]);
      return 2;
    }
  }
  // Line buffering shows the output of a long run immediately, also through a pipe.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return run(arguments) ? 0 : 1;
  } catch (const palimpsest::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

bool all_hold(std::span<const Claim> claims) {
  bool all = true;
  for (const auto& [holds, text] : claims) {
    std::printf("%s %s\n", holds ? "holds:" : "FAILS:", text.c_str());
    all = all && holds;
  }
  return all;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) {
    throw palimpsest::FileError("cannot write " + path + "; is the folder there, the disk full?");
  }
  std::printf("wrote %s\n", path.c_str());
}

std::string format(const char* pattern, ...) {
  char text[256];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

}  // namespace examples
