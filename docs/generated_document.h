#pragma once

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

/// The main function of a program that writes a document: NAME [--check] FILE. With --check it
/// compares the file with the document instead of writing it.
inline int write_or_check(int argc, char** argv, const std::string& document) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if ((argc != 2 && !check) || argv[argc - 1][0] == '-') {
    std::cerr << "usage: " << argv[0] << " [--check] FILE\n";
    return 2;
  }
  const char* const path = argv[argc - 1];
  if (!check) {
    std::ofstream file(path);
    file << document;
    return file.flush() ? 0 : 1;
  }
  std::ifstream file(path);
  if (std::string(std::istreambuf_iterator<char>(file), {}) == document) return 0;
  std::cerr << path << " is not up to date; run ./dev docs\n";
  return 1;
}
