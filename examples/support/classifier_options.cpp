#include "examples/support/classifier_options.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string_view>

namespace examples {

using namespace palimpsest;

namespace {

/// Reads all of a text as a number of at least `least`.
template <class Number>
bool read_number(std::string_view text, Number least, Number& into) {
  Number number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || !(number >= least)) {
    return false;
  }
  into = number;
  return true;
}

}  // namespace

std::optional<ClassifierOptions> parse_classifier_options(int argc, char** argv,
                                                          const ClassifierOptions& defaults) {
  ClassifierOptions options = defaults;
  // Each takes the text after an option, and returns whether it is a value of the option.
  using Setter = std::function<bool(std::string_view)>;
  const auto count = [](std::int64_t least, std::int64_t& into) {
    return [least, &into](std::string_view text) { return read_number(text, least, into); };
  };
  const auto text = [](std::string& into) {
    return [&into](std::string_view given) {
      into = given;
      return true;
    };
  };
  const auto budget = [&](std::string_view given) {
    double mebibytes = 0;
    if (!read_number(given, 0.0, mebibytes) || mebibytes > 1e9) return false;
    options.budget = static_cast<Bytes>(std::llround(mebibytes * static_cast<double>(1_MiB)));
    return true;
  };
  const auto required = [&](std::string_view given) {
    return read_number(given, 0.0, options.required);
  };
  const std::map<std::string_view, Setter> setters = {
      {"--epochs", count(1, options.epochs)},
      {"--batch", count(1, options.batch)},
      {"--images", count(1, options.images)},
      {"--test-images", count(1, options.test_images)},
      {"--budget", budget},
      {"--state", text(options.state)},
      {"--stop-after", count(0, options.stop_after)},
      {"--require", required},
      {"--data", text(options.data)},
  };
  for (int i = 1; i < argc; i += 2) {
    const auto setter = setters.find(argv[i]);
    if (setter == setters.end() || i + 1 == argc || !setter->second(argv[i + 1])) {
      std::fprintf(stderr,
                   "usage: %s [--epochs N] [--batch N] [--images N] [--test-images N]\n"
                   "  [--budget MIB] [--state FILE] [--stop-after EPOCHS] [--require PERCENT] "
                   "[--data FOLDER]\n",
                   argv[0]);
      return std::nullopt;
    }
  }
  return options;
}

}  // namespace examples
