#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

namespace examples {

/// Command-line arguments of the simulation examples.
struct Arguments {
  bool quick = false;        ///< small problem size, for tests
  std::string output = ".";  ///< folder for the picture
};

/// Parses `[--quick] [--output FOLDER]` and calls `run`, which returns whether all claims of the
/// example hold. Prints errors. Returns the exit code of the program.
int program_main(int argc, char** argv, const std::function<bool(const Arguments&)>& run);

/// A statement that an example checks about its results.
struct Claim {
  bool holds = false;
  std::string text;
};

/// Prints the claims; returns whether all hold.
bool all_hold(std::span<const Claim> claims);
inline bool all_hold(std::initializer_list<Claim> claims) {
  return all_hold(std::span(claims.begin(), claims.size()));
}

/// Writes a text file and prints its path. Throws `palimpsest::FileError`.
void write_file(const std::string& path, const std::string& text);

/// Formats like `std::printf`, up to 255 characters.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

}  // namespace examples
