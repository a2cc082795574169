// Writes the table of named strategies. Usage: generate_strategies [--check] FILE.
#include <sstream>

#include "docs/generated_document.h"
#include "strategy/base/execution_strategy.h"

namespace {

std::string document() {
  std::ostringstream text;
  text << "# Named strategies\n\n"
          "Written by `./dev docs` from `named_strategies()`; `./dev test` checks that it is up to "
          "date.\n"
          "All options: [strategies](strategies.md).\n\n"
          "| `strategy_named(…)` | purpose | settings |\n|---|---|---|\n";
  for (const palimpsest::NamedStrategy& named : palimpsest::named_strategies()) {
    text << "| `" << named.name << "` | " << named.purpose << " | " << named.strategy.summary()
         << " |\n";
  }
  return text.str();
}

}  // namespace

int main(int argc, char** argv) { return write_or_check(argc, argv, document()); }
