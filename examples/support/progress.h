#pragma once

#include <cstdint>
#include <string>

namespace examples {

/// A progress bar. On a terminal it is one line that is updated in place; otherwise it prints a
/// line for every tenth of the steps.
class Progress {
 public:
  Progress(std::string label, std::int64_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows that `step` steps are done, and prints `text` after the bar.
  void show(std::int64_t step, const std::string& text);

 private:
  std::string label_;
  std::int64_t steps_;
  bool terminal_;
  int shown_tenth_ = -1;
};

}  // namespace examples
