// Reads arbitrary bytes as a safetensors file. They must be refused with a `FileError`, or the
// tensors read must be the same after writing and reading them again.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "palimpsest.h"

namespace palimpsest {
namespace {

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_bits(x.second, y.second);
  });
}

void run(std::string bytes) {
  static const std::string path = (std::filesystem::temp_directory_path() /
                                   ("fuzz" + std::to_string(::getpid()) + ".safetensors"))
                                      .string();
  if (!bytes.empty() && bytes.front() % 8 != 0) {
    // Replaces the header length by one that fits; random bytes rarely have one.
    const std::size_t length = bytes.find('\n');
    bytes.replace(0, 1,
                  {static_cast<char>(std::min(length, bytes.size()) - 1), 0, 0, 0, 0, 0, 0, 0});
  }
  write(path, bytes);
  try {
    const NamedTensors tensors = load_safetensors(path);
    save_safetensors(path, tensors);
    if (!same(tensors, load_safetensors(path))) {
      std::cerr << "what was written is not what is read\n";
      std::abort();
    }
  } catch (const FileError&) {
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace palimpsest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  palimpsest::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
