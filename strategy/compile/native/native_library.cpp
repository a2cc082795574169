#include "strategy/compile/native/native_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <span>
#include <system_error>

#include "autodiff/error.h"
#include "autodiff/file_size_limit.h"
#include "checkpoint/stores/hash.h"
#include "strategy/base/stopwatch.h"
#include "strategy/compile/native/code_cache.h"

namespace palimpsest {
namespace {

using LibraryPtr = std::shared_ptr<const NativeLibrary>;

/// The libraries in use in this process, and some more.
class Libraries {
 public:
  LibraryPtr find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(key);
    return known == known_.end() ? nullptr : known->second.lock();
  }
  void add(const std::string& key, const LibraryPtr& library) {
    constexpr std::size_t most_kept = 64;
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
    known_[key] = library;
    kept_.push_back(library);
    if (kept_.size() > most_kept) kept_.pop_front();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const NativeLibrary>> known_;
  std::deque<LibraryPtr> kept_;  // the latest
};

Libraries& libraries() {
  static Libraries all;
  return all;
}

std::string key_of(const std::string& source, const Compiler& compiler) {
  const std::string text = compiler.identity + "\n" + source;
  const Hash128 hash = hash_bytes_128(std::as_bytes(std::span(text)));
  std::array<char, code_key_length + 1> key{};
  std::snprintf(key.data(), key.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
  return key.data();
}

LoadedLibrary open(const std::string& path, const Compiler& compiler,
                   std::span<const std::string> functions) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const message = ::dlerror();
    return {nullptr, message != nullptr ? message : "a library cannot be loaded"};
  }
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  auto library =
      std::make_shared<const NativeLibrary>(handle, error ? 0 : static_cast<Bytes>(bytes));
  for (const std::string& name : functions) {
    if (library->find(name) != nullptr) continue;
    return {nullptr, "the library that " + compiler.command[0] + " made lacks the function " +
                         name + "; name another compiler in CC"};
  }
  return {std::move(library), {}};
}

std::string cannot_write(const CodeCache& cache) {
  return "cannot write to " + cache.folder() + file_size_hint();
}

/// Writes the source, compiles it, and adds the result to the cache. Returns what failed.
std::string compile_into(const CodeCache& cache, const std::string& key, const std::string& source,
                         const Compiler& compiler, const CompilePriority& priority) {
  // A folder of its own: other machines may share the cache.
  std::string base = cache.folder() + "/" + key + "-XXXXXX";
  if (::mkdtemp(base.data()) == nullptr) return cannot_write(cache);
  const FileSizeScope no_signal;
  const std::string source_path = base + "/source.c";
  const std::string built = base + "/built";
  std::ofstream file(source_path);
  file << source;
  file.close();
  std::string problem =
      file ? compile_library(compiler, source_path, built, priority) : cannot_write(cache);
  if (problem.empty() && !cache.add(key, built)) problem = cannot_write(cache);
  std::error_code error;
  std::filesystem::remove_all(base, error);
  return problem;
}

}  // namespace

NativeLibrary::~NativeLibrary() { ::dlclose(handle_); }

void* NativeLibrary::find(const std::string& name) const { return ::dlsym(handle_, name.c_str()); }

void* NativeLibrary::function(const std::string& name) const {
  void* const address = find(name);
  internal_check(address != nullptr, "native code lacks a function");
  return address;
}

void prepare_libraries() {
  libraries();
  CodeCache::prepare();
}

LoadedLibrary load_library(const std::string& source, const CompilePriority& priority,
                           std::span<const std::string> functions) {
  const Compiler compiler = find_compiler();
  if (!compiler.problem.empty()) return {nullptr, compiler.problem};
  const std::string key = key_of(source, compiler);
  if (LibraryPtr known = libraries().find(key)) return {std::move(known), {}};
  const CodeCache cache;
  if (cache.folder().empty())
    return {nullptr, "no folder for compiled code can be made; name one in TMPDIR"};
  const Stopwatch compiling;
  double seconds = 0;
  if (!cache.has(key)) {
    std::string problem = compile_into(cache, key, source, compiler, priority);
    if (!problem.empty()) return {nullptr, std::move(problem)};
    seconds = compiling.seconds();
  }
  LoadedLibrary loaded = open(cache.path_of(key), compiler, functions);
  if (loaded.library == nullptr && seconds == 0) {  // it was made by another machine, or removed
    ::unlink(cache.path_of(key).c_str());
    std::string problem = compile_into(cache, key, source, compiler, priority);
    if (!problem.empty()) return {nullptr, std::move(problem)};
    seconds = compiling.seconds();
    loaded = open(cache.path_of(key), compiler, functions);
  }
  if (loaded.library == nullptr) ::unlink(cache.path_of(key).c_str());
  loaded.compile_seconds = seconds;
  if (loaded.library != nullptr) libraries().add(key, loaded.library);
  return loaded;
}

}  // namespace palimpsest
