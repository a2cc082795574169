// Compilers that do not do what they should, and limits under which they run.
#include "strategy/compile/native/compiler.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "palimpsest.h"
#include "strategy/compile/native/code_cache.h"
#include "strategy/compile/native/native_library.h"
#include "strategy/compile/native/native_program.h"
#include "tests/catch.h"
#include "tests/child_process.h"
#include "tests/strategy/compile/native/native_results.h"
#include "tests/temporary_directory.h"

namespace palimpsest::compiler_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A cache of its own, and perhaps another compiler, until the end of a test.
class Setup {
 public:
  Setup() { set("XDG_CACHE_HOME", folder_.path()); }
  ~Setup() {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  /// The path of a file beside the cache.
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string cache() const { return path("palimpsest"); }
  /// Makes a shell script the compiler. It is called as the real one, `command`.
  void use_script(const std::string& script) {
    std::ofstream(path("compiler")) << "#!/bin/sh\n" << script;
    REQUIRE(::chmod(path("compiler").c_str(), 0700) == 0);
    set("CC", path("compiler"));
  }
  const std::string command = find_compiler().command.at(0);

 private:
  void set(const char* name, const std::string& value) {
    const char* const before = std::getenv(name);
    before_.emplace_back(name,
                         before == nullptr ? std::nullopt : std::optional<std::string>(before));
    ::setenv(name, value.c_str(), 1);
  }

  const TemporaryDirectory folder_;
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

Report run_natively(const RunOptions& options = {.threads = 1, .native = NativeCode::at_once}) {
  Tape tape;
  const Var x = tape.constant(numbers({321}, DType::f64, 1));
  Var y = x * 3.5 + x * x;
  return evaluate({&y, 1}, options);
}

TEST_CASE("a compiler that does not end is ended", "[native]") {
  Setup setup;
  setup.use_script("exec sleep 1000\n");
  const LoadedLibrary loaded = load_library("int never_made;\n", {.most = 50ms});
  CHECK(loaded.library == nullptr);
  CHECK_THAT(loaded.problem,
             Catch::Matchers::Contains("compiler failed: it did not end within 0.05 s"));
  CHECK(fs::is_empty(setup.cache()));
  CHECK(CompilePriority{}.most == 60s);
}

TEST_CASE("a compiler ends when its run is stopped, and the next run starts it again", "[native]") {
  Setup setup;
  setup.use_script("[ -e '" + setup.path("started") + "' ] && exec " + setup.command +
                   " \"$@\"\ntouch '" + setup.path("started") + "'\nexec sleep 1000\n");
  Tape tape;
  const Var x = tape.constant(numbers({87}, DType::f64, 1));
  const Var y = x * 4.5 + x * x;
  const auto lowered = std::make_shared<const Lowered>(
      Lowered::fused(tape, std::vector<ValueId>{y.id()}, 1, tape.node_count(), {}));
  const Plan plan = make_plan(lowered->graph(), *keep_all());
  const Instructions instructions(tape, lowered, plan);
  const auto program = std::make_shared<NativeProgram>(instructions);
  std::stop_source source;
  const RunControl control(source.get_token(), nullptr, 1);
  const std::jthread stops([&] {
    while (!fs::exists(setup.path("started"))) std::this_thread::sleep_for(1ms);
    source.request_stop();
  });
  CHECK(program->service_for(instructions, tape, NativeCode::at_once, &control).code == nullptr);
  CHECK_THAT(program->facts(NativeCode::at_once).problem,
             Catch::Matchers::Contains("the run was stopped"));
  CHECK(program->service_for(instructions, tape, NativeCode::at_once).code != nullptr);
}

TEST_CASE("a run that is stopped does not wait for the compiler", "[native]") {
  Setup setup;
  setup.use_script("touch '" + setup.path("started") + "'\nexec sleep 1000\n");
  std::stop_source source;
  const std::jthread stops([&] {
    while (!fs::exists(setup.path("started"))) std::this_thread::sleep_for(1ms);
    source.request_stop();
  });
  CHECK_THROWS_AS(
      run_natively({.threads = 1, .native = NativeCode::at_once, .stop = source.get_token()}),
      StoppedError);
}

TEST_CASE("a library without our functions is not kept, and the report names the compiler",
          "[native]") {
  Setup setup;
  setup.use_script("for source; do :; done\necho 'int other;' >\"$source\"\nexec " + setup.command +
                   " \"$@\"\n");
  const Report report = run_natively();
  CHECK(report.native.groups == 0);
  CHECK_THAT(report.native.problem,
             Catch::Matchers::Contains("the library that " + setup.path("compiler") +
                                       " made lacks the function "));
  CHECK(fs::is_empty(setup.cache()));
}

constexpr const char* source_of_a = "int function_a(void) { return 1; }\n";

TEST_CASE("child process: reads a cached library of another program", "[.]") {
  const std::string name = "function_a";
  const LoadedLibrary loaded = load_library(source_of_a, {}, {&name, 1});
  INFO(loaded.problem);
  REQUIRE(loaded.library != nullptr);
  CHECK(loaded.compile_seconds > 0);
  CHECK(reinterpret_cast<int (*)()>(loaded.library->function(name))() == 1);
}

TEST_CASE("a cached library without our functions is compiled again", "[native]") {
  const Setup setup;
  REQUIRE(load_library(source_of_a).library != nullptr);
  const fs::path of_a = fs::directory_iterator(setup.cache())->path();
  REQUIRE(load_library("int function_b(void) { return 2; }\n").library != nullptr);
  for (const fs::directory_entry& each : fs::directory_iterator(setup.cache())) {
    if (each.path() == of_a) continue;
    fs::remove(of_a);  // this process has loaded the file
    fs::copy_file(each.path(), of_a);
    break;
  }
  CHECK(ChildProcess("child process: reads a cached library of another program", "read").wait() ==
        0);
}

TEST_CASE("a file of more bytes than the cache may have is no code", "[native]") {
  const Setup setup;
  const CodeCache entries;
  const auto size = static_cast<std::uintmax_t>(CodeCache::most_bytes);
  const std::string built = entries.folder() + "/built";
  std::ofstream(built) << "a library";
  fs::resize_file(built, size + 1);  // with a hole
  CHECK_FALSE(entries.add(std::string(code_key_length, 'c'), built));
  const std::string key(code_key_length, 'd');
  std::ofstream(entries.path_of(key)) << "a library";
  REQUIRE(::chmod(entries.path_of(key).c_str(), 0700) == 0);
  fs::resize_file(entries.path_of(key), size * 640);  // too large to be read
  CHECK_FALSE(entries.has(key));
  CHECK_FALSE(fs::exists(entries.path_of(key)));
}

TEST_CASE("child process: native code where files are limited", "[.]") {
  rlimit before;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low{.rlim_cur = std::stoul(ChildProcess::task()), .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  const std::string at_once = run_natively().native.problem;
  // The compiling thread writes too.
  const auto program = palimpsest::Program::values(
      [](Tape& tape) {
        const Var x = tape.constant(numbers({654}, DType::f64, 1));
        return std::vector<Var>{x * 1.25 + x * x - exp(x)};
      },
      {.threads = 1, .machine = {.flops_per_second = 1e3}});
  Runner runner(program);
  const auto end = std::chrono::steady_clock::now() + 2min;
  do {
    runner.run();
    std::this_thread::sleep_for(1ms);
  } while (runner.report().native.problem.empty() && std::chrono::steady_clock::now() < end);
  ::setrlimit(RLIMIT_FSIZE, &before);  // output may go to a file
  CHECK_THAT(at_once, Catch::Matchers::Contains("see `ulimit -f`"));
  CHECK_THAT(runner.report().native.problem, Catch::Matchers::Contains("see `ulimit -f`"));
}

TEST_CASE("a limit on the size of files leaves a program without native code", "[native]") {
  const Setup setup;
  // The source does not fit, or it fits and the library does not.
  for (const char* limit : {"0", "4096", "12000"}) {
    CAPTURE(limit);
    CHECK(ChildProcess("child process: native code where files are limited", limit).wait() == 0);
    if (fs::exists(setup.cache())) CHECK(fs::is_empty(setup.cache()));
  }
}

}  // namespace
}  // namespace palimpsest::compiler_test
