#include "autodiff/files.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

[[noreturn]] void fail(std::string_view operation, const std::string& problem) {
  throw FileError("[" + std::string(operation) + "] " + problem);
}

}  // namespace

std::string read_file(const std::string& path, std::string_view operation) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail(operation, path + " is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(operation, "cannot open " + path + "; is the file there, and readable?");
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad()) fail(operation, "reading " + path + " failed");
  return std::move(content).str();
}

void write_file(const std::string& path, std::string_view content, std::string_view operation) {
  std::ofstream file(path, std::ios::binary);
  if (!file) fail(operation, "cannot write " + path + "; check the folder and its rights");
  file << content;
  file.flush();
  if (!file) fail(operation, "writing " + path + " failed; is the disk full?");
}

}  // namespace palimpsest
