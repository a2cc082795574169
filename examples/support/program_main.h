#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

namespace examples {

/// What the simulations among the examples are told on the command line.
struct Arguments {
  bool quick = false;        ///< a small setting, for tests
  std::string output = ".";  ///< folder for the picture
};

/// Reads `[--quick] [--output FOLDER]` and calls `run`, which returns whether everything holds that
/// the example claims. Returns the exit code of the program; errors are printed.
int program_main(int argc, char** argv, const std::function<bool(const Arguments&)>& run);

/// What an example says of itself, and whether that is so.
struct Claim {
  bool holds = false;
  std::string text;
};

/// Prints the claims; returns whether all hold.
bool all_hold(std::span<const Claim> claims);
inline bool all_hold(std::initializer_list<Claim> claims) {
  return all_hold(std::span(claims.begin(), claims.size()));
}

/// Writes a text file and says so. Throws `palimpsest::FileError`.
void write_file(const std::string& path, const std::string& text);

/// As `std::printf` would print it.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

}  // namespace examples
