#include <functional>

#include "data/csv_dataset.h"
#include "data/mapped_dataset.h"
#include "data/npy.h"
#include "strategy/training/safetensors.h"
#include "tests/catch.h"
#include "tests/named_pipe.h"

namespace palimpsest::pipes_test {
namespace {

TEST_CASE("a pipe that nothing writes to is refused at once") {
  const NamedPipe pipe;
  const std::function<void(const std::string&)> readers[] = {
      [](const std::string& path) { mapped_npy(path); },
      [](const std::string& path) { load_npy(path); },
      [](const std::string& path) { mapped_idx(path); },
      [](const std::string& path) { mapped_safetensors(path); },
      [](const std::string& path) { load_safetensors(path); },
      [](const std::string& path) { load_safetensors_file(path); },
      [](const std::string& path) { map_safetensors(path); },
      [](const std::string& path) { read_csv(path); },
  };
  for (const auto& read : readers) {
    CHECK_THROWS_AS(read(pipe.path()), FileError);
    CHECK_THROWS_WITH(read(pipe.path()),
                      Catch::Matchers::Contains(pipe.path() + " is not a regular file; copy"));
  }
}

}  // namespace
}  // namespace palimpsest::pipes_test
