#include "data/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "autodiff/shape.h"
#include "data/progress_line.h"

namespace palimpsest {
namespace {

/// The file descriptor of the terminal that a stream writes to, or -1.
int terminal_of(const std::ostream& stream) {
  const int file = &stream == &std::cout ? STDOUT_FILENO : STDERR_FILENO;
  const bool is_standard = &stream == &std::cout || &stream == &std::cerr || &stream == &std::clog;
  return is_standard && isatty(file) == 1 ? file : -1;
}

std::int64_t columns_of(int terminal) {
  winsize size{};
  return ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressBar::ProgressBar(std::string label, std::int64_t steps)
    : ProgressBar(std::move(label), steps, std::cerr) {}

ProgressBar::ProgressBar(std::string label, std::int64_t steps, std::ostream& stream)
    : label_(std::move(label)), steps_(steps), stream_(stream), terminal_(terminal_of(stream)) {
  if (steps < 0) {
    throw ArgumentError("[progress_bar] there are " + std::to_string(steps) +
                        " steps; give 0 or more");
  }
}

ProgressBar::~ProgressBar() {
  if (is_line_open_) stream_ << std::endl;
}

void ProgressBar::show(std::int64_t step, std::string_view text) {
  step = std::clamp<std::int64_t>(step, 0, steps_);
  const Clock::time_point now = Clock::now();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const std::string line = progress_line(label_, step, steps_, elapsed, text);
  if (terminal_ >= 0) {
    const bool is_soon = is_line_open_ && now - shown_at_ < std::chrono::milliseconds(50);
    if (is_soon && step < steps_) return;
    constexpr const char* clear_rest = "\x1b[K";
    // A line that fills the terminal would begin another one.
    stream_ << '\r' << first_columns(line, columns_of(terminal_) - 1) << clear_rest << std::flush;
    shown_at_ = now;
    is_line_open_ = true;
    return;
  }
  const std::int64_t tenth = steps_ > 0 ? multiply_sizes(step, 10) / steps_ : 10;
  if (tenth == shown_tenth_) return;
  shown_tenth_ = tenth;
  stream_ << line << std::endl;
}

}  // namespace palimpsest
