#include "examples/support/progress.h"

#include <unistd.h>

#include <cstdio>

namespace examples {

Progress::Progress(std::string label, std::int64_t steps)
    : label_(std::move(label)), steps_(steps), terminal_(isatty(STDOUT_FILENO) == 1) {}

Progress::~Progress() {
  if (terminal_) std::printf("\n");
}

void Progress::show(std::int64_t step, const std::string& text) {
  constexpr int width = 24;
  const int tenth = static_cast<int>(10 * step / steps_);
  if (!terminal_ && tenth == shown_tenth_) return;
  shown_tenth_ = tenth;
  const auto filled = static_cast<std::size_t>(width * step / steps_);
  const std::string bar = std::string(filled, '#') + std::string(width - filled, '.');
  std::printf("%s%-10s [%s] %s%s", terminal_ ? "\r" : "", label_.c_str(), bar.c_str(), text.c_str(),
              terminal_ ? "  " : "\n");
  std::fflush(stdout);
}

}  // namespace examples
