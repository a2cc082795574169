#include "benchmarks/process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

extern char** environ;

namespace palimpsest::benchmarks {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(name + '=' + value);
  return result;
}

}  // namespace

Process::Process(const std::vector<std::string>& command,
                 const std::map<std::string, std::string>& environment)
    : name_(command.at(0)) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::runtime_error("no socket to talk with " + name_);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = environment_with(environment);
  const int failed = posix_spawnp(&child_, name_.c_str(), &actions, nullptr,
                                  pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (failed == 0) return;
  close(socket_);
  throw std::runtime_error("cannot start " + name_);
}

Process::~Process() {
  close(socket_);
  waitpid(child_, nullptr, 0);
}

void Process::write_line(const std::string& line) const {
  const std::string text = line + '\n';
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = send(socket_, text.data() + written, text.size() - written, MSG_NOSIGNAL);
    if (count <= 0) throw std::runtime_error(name_ + " does not listen any more");
    written += static_cast<std::size_t>(count);
  }
}

std::string Process::read_line() {
  std::size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    std::array<char, 4096> buffer{};
    const ssize_t count = read(socket_, buffer.data(), buffer.size());
    if (count <= 0) throw std::runtime_error(name_ + " ended before it answered");
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

}  // namespace palimpsest::benchmarks
