#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace palimpsest::benchmarks {

/// A child process that talks in lines through its standard input and output.
class Process {
 public:
  /// Starts `command`, looked up as in a shell, with `environment` added to this process's
  /// environment. Throws `std::runtime_error` when it cannot be started.
  Process(const std::vector<std::string>& command,
          const std::map<std::string, std::string>& environment);
  /// Closes the standard input of the child and waits until it has ended.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void write_line(const std::string& line) const;
  /// The next line without its newline. Throws `std::runtime_error` when there is none.
  std::string read_line();

 private:
  std::string name_;
  pid_t child_ = -1;
  int socket_ = -1;
  std::string unread_;
};

}  // namespace palimpsest::benchmarks
