#include "autodiff/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "autodiff/files.h"

namespace palimpsest {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

MappedFile map_file(const std::string& path, std::string_view operation) {
  const auto refuse = [&](const std::string& problem) {
    throw FileError("[" + std::string(operation) + "] " + problem);
  };
  require_regular_file(path, operation);
  const OpenFile file(path);
  struct stat status{};
  if (file.descriptor() < 0 || fstat(file.descriptor(), &status) != 0) {
    refuse("cannot open " + path + "; check that the file exists and is readable");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {};
  // Without MAP_NORESERVE, systems with strict accounting would count the file as memory of this
  // process.
  void* const content = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                             file.descriptor(), 0);
  if (content == MAP_FAILED) {
    refuse("cannot map " + path + " of " + format_bytes(status.st_size) + ": " +
           std::generic_category().message(errno) + "; free address space, or copy the file");
  }
  const auto unmap = [size](std::byte* pages) { munmap(pages, size); };
  return {Buffer(static_cast<std::byte*>(content), unmap), status.st_size};
}

}  // namespace palimpsest
