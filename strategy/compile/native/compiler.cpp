#include "strategy/compile/native/compiler.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "autodiff/file_size_limit.h"
#include "autodiff/kernels/kernels.h"

namespace palimpsest {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

/// The path of a program; empty if there is none.
std::string path_of(const std::string& program) {
  const auto runs = [](const std::string& path) {
    struct stat facts{};
    return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) return runs(program) ? program : std::string();
  std::istringstream folders(trusted_variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty() || folder.front() != '/') continue;  // not from the current folder
    if (runs(folder + "/" + program)) return folder + "/" + program;
  }
  return {};
}

/// Size and time of change of a program, which change when it is updated.
std::string version_of(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return path;
  return path + " " + std::to_string(facts.st_size) + " " + std::to_string(facts.st_mtim.tv_sec) +
         "." + std::to_string(facts.st_mtim.tv_nsec);
}

/// The instruction set of the kernels' level.
std::vector<std::string> level_options() {
  const std::string level = kernels().level;
  if (level == "v3") return {"-march=x86-64-v3"};
  if (level.starts_with("v4")) return {"-march=x86-64-v4", "-mprefer-vector-width=512"};
  return {};
}

/// The environment of this process, with another folder for temporary files.
std::vector<std::string> environment_with(const std::string& temporary_folder) {
  std::vector<std::string> variables{"TMPDIR=" + temporary_folder};
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("TMPDIR=")) variables.emplace_back(*variable);
  }
  return variables;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& each : texts) pointers.push_back(const_cast<char*>(each.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// As "60 s".
std::string seconds_text(std::chrono::milliseconds time) {
  std::ostringstream text;
  text << std::chrono::duration<double>(time).count() << " s";
  return text.str();
}

/// The end of a program that was run.
struct Ended {
  std::string problem;   ///< why it was not started or was ended
  int status = 0;        ///< its exit status, or −1
  bool is_known = true;  ///< false if the user's process does not keep the status of children
};

/// Waits for a child that leads a process group. Ends the group early as `priority` says.
Ended wait_for(pid_t child, const CompilePriority& priority) {
  const auto end = std::chrono::steady_clock::now() + priority.most;
  std::string problem;
  int status = 0;
  int flags = WNOHANG;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, flags);
    if (ended == child) break;
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) return {problem, problem.empty() ? 0 : -1, false};
    if (priority.stop.stop_requested()) {
      problem = "the run was stopped";
    } else if (std::chrono::steady_clock::now() >= end) {
      problem = "it did not end within " + seconds_text(priority.most);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    ::kill(-child, SIGKILL);
    flags = 0;
  }
  const bool has_ended = problem.empty() && WIFEXITED(status);
  return {problem, has_ended ? WEXITSTATUS(status) : -1};
}

/// Runs a program and waits for it. It gets no open file of this process.
Ended run(const std::vector<std::string>& command, const std::string& temporary_folder,
          const std::string& log, const CompilePriority& priority) {
  const std::vector<std::string> environment = environment_with(temporary_folder);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, 1, 2);
  ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  ::sigaddset(&signals, SIGCHLD);  // clang fails if it is ignored
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  // A group of its own, so that all its processes can be ended.
  short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (priority.idle) {
    sched_param parameters{};
    ::posix_spawnattr_setschedpolicy(&attributes, SCHED_IDLE);
    ::posix_spawnattr_setschedparam(&attributes, &parameters);
    flags |= POSIX_SPAWN_SETSCHEDULER;
  }
  ::posix_spawnattr_setflags(&attributes, flags);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, command[0].c_str(), &files, &attributes,
                                   pointers_to(command).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return {std::generic_category().message(failed), -1};
  return wait_for(child, priority);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string trusted_variable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr ? std::string() : value;
}

Compiler find_compiler() {
  Compiler found;
  const std::string named = trusted_variable("CC");
  std::vector<std::string> candidates{"cc", "gcc", "clang"};
  if (!named.empty()) candidates = {named};
  for (const std::string& candidate : candidates) {
    std::vector<std::string> command = words(candidate);
    if (command.empty()) continue;
    command[0] = path_of(command[0]);
    if (command[0].empty()) continue;
    found.command = std::move(command);
    break;
  }
  if (found.command.empty()) {
    found.problem = named.empty()
                        ? "there is no C compiler; install gcc or clang, or name one in CC"
                        : "there is no program " + named + ", which CC names";
    return found;
  }
  found.identity = version_of(found.command[0]);
  // The kernels' rounding: no contraction, no reassociation. Integers wrap. Arrays of one arena
  // have different types at different times. GCC 12.2 vectorizes neighboring statements with
  // conversions from f64 to f32 and back as if the f32 were never rounded. The first option undoes
  // what CC may permit, and would undo some of the others too.
  for (const char* option :
       {"-fno-fast-math", "-std=gnu11", "-O3", "-w", "-fPIC", "-shared", "-nostdlib",
        "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
        "-fno-strict-aliasing", "-fexceptions", "-fno-tree-slp-vectorize",
        "-fno-semantic-interposition", "-Wl,-Bsymbolic", "-fvisibility=default"}) {
    found.command.emplace_back(option);
  }
  for (const std::string& option : level_options()) found.command.push_back(option);
  for (const std::string& word : found.command) found.identity += " " + word;
  return found;
}

std::string compile_library(const Compiler& compiler, const std::string& source_path,
                            const std::string& library_path, const CompilePriority& priority) {
  std::vector<std::string> command = compiler.command;
  command.insert(command.end(), {"-o", library_path, source_path});
  const std::string log = library_path + ".log";
  const std::string folder = library_path.substr(0, library_path.rfind('/'));
  auto [problem, status, is_known] = run(command, folder, log, priority);
  struct stat facts{};
  const bool is_made = ::stat(library_path.c_str(), &facts) == 0 && facts.st_size > 0;
  if (!is_known && !is_made) status = -1;
  const bool is_own_failure = problem.empty();
  if (status != 0 && is_own_failure) problem = first_line(log);
  ::unlink(log.c_str());
  if (status == 0) return {};
  return compiler.command[0] + " failed" + (problem.empty() ? "" : ": " + problem) +
         (is_own_failure ? file_size_hint() : "");
}

}  // namespace palimpsest
