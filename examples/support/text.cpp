#include "examples/support/text.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

namespace examples {

using namespace palimpsest;

Text::Text(const std::string& characters) {
  const std::set<char> occurring(characters.begin(), characters.end());
  alphabet_.assign(occurring.begin(), occurring.end());
  numbers_ = Tensor({static_cast<std::int64_t>(characters.size())}, DType::i32);
  std::transform(characters.begin(), characters.end(), numbers_.data<std::int32_t>().begin(),
                 [this](char c) { return static_cast<std::int32_t>(alphabet_.find(c)); });
}

std::string read_king_james_bible() {
  const auto close = [](std::FILE* pipe) { return pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(
      popen("bible -f gen1:1-rev22:21 2>/dev/null </dev/null", "r"), close);
  std::string printed;
  if (pipe != nullptr) {
    char part[4096];
    for (std::size_t n; (n = std::fread(part, 1, sizeof part, pipe.get())) > 0;) {
      printed.append(part, n);
    }
  }
  if (printed.empty()) {
    throw FileError(
        "[text] the program bible printed nothing; install the Debian packages "
        "bible-kjv and bible-kjv-text");
  }
  // Every line has the form "Ge1:1 In the beginning …".
  std::string text;
  text.reserve(printed.size());
  for (std::size_t line = 0; line < printed.size();) {
    const std::size_t end = std::min(printed.find('\n', line), printed.size());
    const std::size_t verse = std::min(printed.find(' ', line), end - 1) + 1;
    text.append(printed, verse, end - verse).push_back('\n');
    line = end + 1;
  }
  return text;
}

}  // namespace examples
