#pragma once

#include <cstdint>
#include <string>

namespace examples {

/// One line that is written over while it changes, on a terminal; elsewhere a line every tenth
/// part.
class Progress {
 public:
  Progress(std::string label, std::int64_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows that `step` of the steps are done, and `text` after the bar.
  void show(std::int64_t step, const std::string& text);

 private:
  std::string label_;
  std::int64_t steps_;
  bool terminal_;
  int shown_tenth_ = -1;
};

}  // namespace examples
