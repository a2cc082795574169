#include "data/progress_bar.h"

#include <algorithm>
#include <sstream>

#include "data/progress_line.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::progress_bar_test {
namespace {

TEST_CASE("a line has the bar, the times and the text") {
  CHECK(progress_line("train", 0, 100, 0, "") == "train      [........................] 0 %, 0 s");
  CHECK(progress_line("train", 25, 100, 20, "loss 2") ==
        "train      [######..................] 25 %, 20 s, 1:00 left, loss 2");
  CHECK(progress_line("a long label", 100, 100, 3723.4, "") ==
        "a long label [########################] 100 %, 1:02:03");
  CHECK(progress_line("none", 0, 0, 1, "") == "none       [########################] 100 %, 1 s");
  CHECK(format_seconds(59.4) == "59 s");
  CHECK(format_seconds(59.6) == "1:00");
  CHECK(format_seconds(3600) == "1:00:00");
}

TEST_CASE("a line is cut between characters") {
  CHECK(first_columns("loss", 10) == "loss");
  CHECK(first_columns("loss", 2) == "lo");
  CHECK(first_columns("µαx", 2) == "µα");
  CHECK(first_columns("µαx", 0).empty());
}

TEST_CASE("a bar that is not on a terminal prints a line for each tenth") {
  std::ostringstream stream;
  {
    ProgressBar bar("train", 200, stream);
    for (int step = 1; step <= 200; ++step) bar.show(step, "step " + std::to_string(step));
  }
  const std::string text = stream.str();
  CHECK(std::ranges::count(text, '\n') == 11);
  for (const char* words : {"0 %, 0 s", ", step 1\n", "[##......................] 10 %",
                            ", step 20\n", "[########################] 100 %, 0 s, step 200\n"}) {
    CHECK_THAT(text, Catch::Matchers::Contains(words));
  }
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find("step 21") == std::string::npos);
}

TEST_CASE("steps outside of the bar are shown at its ends") {
  std::ostringstream stream;
  ProgressBar bar("x", 2, stream);
  bar.show(-1);
  bar.show(5);
  CHECK_THAT(stream.str(),
             Catch::Matchers::Contains("] 0 %") && Catch::Matchers::Contains("] 100 %"));
  check_error([&] { ProgressBar("x", -1, stream); }, {"[progress_bar] there are -1 steps"});
}

}  // namespace
}  // namespace palimpsest::progress_bar_test
