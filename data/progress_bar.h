#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Shows how far a long loop is, how long it has taken, and how long the rest takes if it goes on
/// like that:
///
///     train      [############............] 50 %, 12 s, 12 s left, loss 0.42
///
/// On a terminal it is one line, which is updated in place, at most 20 times a second. Otherwise it
/// is a line for each tenth of the steps. It is not thread-safe.
class ProgressBar {
 public:
  /// Writes to stderr. Throws `ArgumentError` for a negative number of steps.
  ProgressBar(std::string label, std::int64_t steps);
  /// Writes to `stream`, which must outlive the bar.
  ProgressBar(std::string label, std::int64_t steps, std::ostream& stream);
  /// Ends the line on a terminal.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows that `step` steps are done, with `text` at the end of the line. The last step is always
  /// shown.
  void show(std::int64_t step, std::string_view text = "");

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  std::int64_t steps_;
  std::ostream& stream_;
  int terminal_ = -1;  // file descriptor of the terminal, if there is one
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_at_;
  std::int64_t shown_tenth_ = -1;
  bool is_line_open_ = false;
};

}  // namespace palimpsest
