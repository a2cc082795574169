// Compiled code on disk, and what happens without a compiler.
#include "strategy/compile/native/code_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "palimpsest.h"
#include "strategy/compile/native/native_library.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;

/// Sets an environment variable, and restores it at the end.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A folder for caches, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = fs::temp_directory_path().string() + "/cache-test-XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path;
};

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

void write_program(const std::string& path, const std::string& script) {
  write(path, "#!/bin/sh\n" + script);
  REQUIRE(::chmod(path.c_str(), 0700) == 0);
}

TEST_CASE("a library is compiled once and kept on disk", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const std::string source = "int answer_of_test(void) { return 42; }\n";
  const LoadedLibrary first = load_library(source);
  INFO(first.problem);
  REQUIRE(first.library != nullptr);
  CHECK(first.compile_seconds > 0);
  CHECK(reinterpret_cast<int (*)()>(first.library->function("answer_of_test"))() == 42);
  const LoadedLibrary second = load_library(source);
  CHECK(second.library == first.library);
  CHECK(second.compile_seconds == 0);
  const std::string kept = folder.path + "/palimpsest";
  struct stat facts{};
  REQUIRE(::stat(kept.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0700);
  std::size_t files = 0;
  for (const fs::directory_entry& each : fs::directory_iterator(kept)) {
    CHECK(each.path().extension() == ".so");
    CHECK(CodeCache().has(each.path().stem().string()));
    ++files;
  }
  CHECK(files == 1);
}

TEST_CASE("a source that the compiler refuses", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const LoadedLibrary loaded = load_library("int broken(\n");
  CHECK(loaded.library == nullptr);
  CHECK_THAT(loaded.problem, Catch::Matchers::Contains("failed"));
  CHECK(fs::is_empty(folder.path + "/palimpsest"));
}

TEST_CASE("broken entries are removed", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const CodeCache entries;
  REQUIRE(entries.is_kept());
  CHECK_FALSE(entries.has("absent"));
  const std::string built = entries.folder() + "/built";
  write(built, "a library");
  REQUIRE(entries.add("entry", built));
  CHECK(entries.has("entry"));
  const auto size = fs::file_size(entries.path_of("entry"));
  fs::resize_file(entries.path_of("entry"), size - 1);
  CHECK_FALSE(entries.has("entry"));
  CHECK_FALSE(fs::exists(entries.path_of("entry")));
}

TEST_CASE("code that others could have written is not used", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const std::string kept = folder.path + "/palimpsest";
  {
    const CodeCache entries;
    const std::string built = entries.folder() + "/built";
    write(built, "a library");
    REQUIRE(entries.add("entry", built));
    REQUIRE(entries.has("entry"));
    REQUIRE(::chmod(entries.path_of("entry").c_str(), 0722) == 0);
    CHECK_FALSE(entries.has("entry"));
  }
  REQUIRE(::chmod(kept.c_str(), 0777) == 0);
  const CodeCache other;
  CHECK_FALSE(other.is_kept());
  CHECK(other.folder() != kept);
  fs::remove_all(kept);
  fs::create_directory(folder.path + "/elsewhere");
  fs::create_directory_symlink(folder.path + "/elsewhere", kept);
  CHECK_FALSE(CodeCache().is_kept());
}

TEST_CASE("code is not kept in a folder that others can replace", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  REQUIRE(::chmod(folder.path.c_str(), 0777) == 0);
  CHECK_FALSE(CodeCache().is_kept());
  REQUIRE(::chmod(folder.path.c_str(), 01777) == 0);  // as /tmp
  CHECK(CodeCache().is_kept());
}

TEST_CASE("folders for code are made for this user only", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path + "/a/b");
  const mode_t before = ::umask(0);
  const bool is_kept = CodeCache().is_kept();
  ::umask(before);
  REQUIRE(is_kept);
  for (const char* made : {"/a", "/a/b", "/a/b/palimpsest"}) {
    struct stat facts{};
    REQUIRE(::stat((folder.path + made).c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0700);
  }
}

TEST_CASE("what is not compiled code stays in the folder", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const CodeCache entries;
  const auto path = [&](const std::string& name) { return entries.folder() + "/" + name; };
  const std::string key(code_key_length, 'a');
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(48);
  for (const std::string& name : {std::string("docs"), std::string(".git"), key, key + "-mine"}) {
    fs::create_directory(path(name));
    write(path(name) + "/text", "the user's");
    fs::last_write_time(path(name), old);
  }
  write(path("library.so"), "the user's");
  fs::resize_file(path("library.so"), CodeCache::most_bytes + 1);  // with a hole
  fs::last_write_time(path("library.so"), old);
  fs::create_directory_symlink(path("docs"), path(key + "-link"));
  write(path("built"), "a library");
  REQUIRE(entries.add(std::string(code_key_length, 'b'), path("built")));
  for (const std::string& name :
       {std::string("docs/text"), std::string(".git/text"), key + "/text", key + "-link/text",
        std::string("library.so"), std::string(code_key_length, 'b') + ".so"}) {
    CAPTURE(name);
    CHECK(fs::exists(path(name)));
  }
  CHECK_FALSE(fs::exists(path(key + "-mine")));  // as if a killed process had left it
}

TEST_CASE("a library that cannot be loaded is not kept", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const std::string script = folder.path + "/compiler";
  write_program(script, "while [ \"$1\" != -o ]; do shift; done\necho garbage >\"$2\"\n");
  const Setting compiler("CC", script);
  const LoadedLibrary loaded = load_library("int no_library_of_test;\n");
  CHECK(loaded.library == nullptr);
  CHECK(loaded.problem.find("there is no program") == std::string::npos);
  CHECK(fs::is_empty(folder.path + "/palimpsest"));
}

TEST_CASE("a folder is no compiler", "[native]") {
  const Setting compiler("CC", "/usr");
  CHECK_THAT(find_compiler().problem, Catch::Matchers::Contains("there is no program /usr"));
}

TEST_CASE("a compiler works where the status of children is not kept", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const LoadedLibrary loaded = load_library("int made_without_status(void) { return 3; }\n");
  const LoadedLibrary broken = load_library("int broken_without_status(\n");
  std::signal(SIGCHLD, before);
  INFO(loaded.problem);
  CHECK(loaded.library != nullptr);
  CHECK(broken.library == nullptr);
  CHECK_THAT(broken.problem, Catch::Matchers::Contains("failed: "));
}

TEST_CASE("a compiler's temporary files lie in the cache, and its files are its own", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const std::string script = folder.path + "/compiler";
  write_program(script, "cd '" + folder.path + "'\necho \"$TMPDIR\" >seen\n" +
                            "ls /proc/self/fd >files\nexec " + find_compiler().command[0] +
                            " \"$@\"\n");
  const Setting compiler("CC", script);
  const std::ifstream open_here("/dev/zero");
  REQUIRE(load_library("int made_by_script;\n").library != nullptr);
  std::string seen;
  std::ifstream seen_by_compiler(folder.path + "/seen");
  std::getline(seen_by_compiler, seen);
  CHECK_THAT(seen, Catch::Matchers::StartsWith(folder.path + "/palimpsest/"));
  CHECK_FALSE(fs::exists(seen));
  std::ifstream files(folder.path + "/files");
  int most = 0;
  for (int file = 0; files >> file;) most = std::max(most, file);
  REQUIRE(most >= 2);
  CHECK(most <= 3);  // standard streams, and the list itself
}

TEST_CASE("fast math in CC does not change bits", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const auto run = [](NativeCode native, Tensor& value) {
    Tape tape;
    const Var x = tape.constant(Tensor::uniform({1000}, 1, -1, 1, DType::f64));
    Var y = (x + 1e8) - 1e8 + x / 3.0;
    Report report = evaluate({&y, 1}, {.threads = 1, .native = native});
    value = y.value();
    return report;
  };
  Tensor expected;
  run(NativeCode::off, expected);
  const Setting compiler("CC", find_compiler().command[0] +
                                   " -Ofast -ffast-math -funsafe-math-optimizations "
                                   "-fvisibility=hidden");
  Tensor found;
  const Report report = run(NativeCode::at_once, found);
  INFO(report.native.problem);
  CHECK(report.native.groups == 1);
  CHECK(report.native.compile_seconds > 0);
  CHECK(same_bits(found, expected));
}

TEST_CASE("square roots are instructions", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const LoadedLibrary loaded = load_library(
      "void roots(double* x) {\n"
      "  for (int i = 0; i < 1000; ++i) x[i] = __builtin_sqrt(x[i]);\n}\n");
  INFO(loaded.problem);
  REQUIRE(loaded.library != nullptr);
  for (const fs::directory_entry& each : fs::directory_iterator(folder.path + "/palimpsest")) {
    std::ostringstream content;
    content << std::ifstream(each.path(), std::ios::binary).rdbuf();
    CHECK(content.str().find("roots") != std::string::npos);
    CHECK(content.str().find("sqrt") == std::string::npos);  // no symbol of that name
  }
  const std::vector<std::string> command = find_compiler().command;
  const auto place = [&](const char* option) { return std::ranges::find(command, option); };
  CHECK(place("-fno-fast-math") < place("-fno-math-errno"));
  CHECK(place("-fno-fast-math") < place("-fno-trapping-math"));
  CHECK(place("-fno-trapping-math") != command.end());
}

TEST_CASE("the oldest entries are removed when the cache is full", "[native]") {
  const Folder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path);
  const CodeCache entries;
  const auto add = [&](const std::string& key, std::int64_t bytes) {
    const std::string built = entries.folder() + "/built";
    write(built, key);
    REQUIRE(entries.add(key, built));
    fs::resize_file(entries.path_of(key), static_cast<std::uintmax_t>(bytes));  // with a hole
  };
  const std::string oldest(code_key_length, '0');
  const std::string second(code_key_length, '1');
  const std::string third(code_key_length, '2');
  add(oldest, CodeCache::most_bytes / 2);
  fs::last_write_time(entries.path_of(oldest),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  add(second, CodeCache::most_bytes / 2);
  add(third, 1'000);
  CHECK_FALSE(fs::exists(entries.path_of(oldest)));
  CHECK(fs::exists(entries.path_of(second)));
  CHECK(fs::exists(entries.path_of(third)));
}

TEST_CASE("without a compiler, groups are interpreted and the report says why", "[native]") {
  const auto run = [] {
    Tape tape;
    const Var x = tape.constant(numbers({123}, DType::f64));
    Var y = x * 2.0 + x * x;
    return evaluate({&y, 1}, {.threads = 1, .native = NativeCode::at_once});
  };
  {
    const Setting compiler("CC", "no-such-compiler");
    const Report report = run();
    CHECK(report.native.groups == 0);
    std::ostringstream text;
    text << report;
    CHECK_THAT(text.str(), Catch::Matchers::Contains("interpreted       there is no program"));
    CHECK_THAT(report.native.problem,
               Catch::Matchers::Contains("there is no program no-such-compiler, which CC names"));
  }
  const Setting none("CC", "");
  const Setting path("PATH", "/nowhere");
  CHECK_THAT(run().native.problem, Catch::Matchers::Contains("there is no C compiler"));
}

}  // namespace
}  // namespace palimpsest
