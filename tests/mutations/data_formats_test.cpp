#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "data/csv_dataset.h"
#include "data/mapped_dataset.h"
#include "data/npy.h"
#include "strategy/training/safetensors.h"
#include "tests/catch.h"
#include "tests/data/npy_files.h"
#include "tests/mutations/check_mutations.h"
#include "tests/temporary_file.h"

namespace palimpsest::data_formats_test {
namespace {

/// Reads all rows, or the first ones if there are many.
void read_rows(const Dataset& dataset) {
  std::vector<std::int64_t> examples(
      static_cast<std::size_t>(std::min<std::int64_t>(dataset.size(), 100)));
  std::iota(examples.begin(), examples.end(), 0);
  dataset.rows(examples);
}

TEST_CASE("mutated .npy files are refused, or hold rows that can be read") {
  for (const char* element : {"<f4", "|b1", "|u1", "<i2", ">u8"}) {
    const std::string data(6 * static_cast<std::size_t>(element[2] - '0'), '\1');
    for (const char* order : {"False", "True"}) {
      const std::string content = tests::npy_file(tests::npy_text(element, "(3, 2)", order), data);
      check_file_mutations(content, false, [](const std::string& path) {
        read_rows(mapped_npy(path));
        load_npy(path);
      });
    }
  }
}

TEST_CASE("mutated IDX files are refused, or hold rows that can be read") {
  const std::string content("\0\0\x0b\2\0\0\0\2\0\0\0\3abcdefghijkl", 24);
  check_file_mutations(content, false,
                       [](const std::string& path) { read_rows(mapped_idx(path)); });
}

TEST_CASE("mutated safetensors files are refused, or hold rows that can be read") {
  const TemporaryFile file;
  save_safetensors(file.path(), {{"images", Tensor::uniform({4, 3}, 1)},
                                 {"labels", Tensor::arange(4)},
                                 {"mask", Tensor::full({4}, 1, DType::boolean)}});
  const std::string content = file.read();
  for (const bool json : {false, true}) {
    check_file_mutations(content, json,
                         [](const std::string& path) { read_rows(mapped_safetensors(path)); });
  }
}

TEST_CASE("mutated CSV files are refused, or hold rows that can be read") {
  const std::string content =
      "width,\"height\",class\n1.5,2,7\n-3e2, 4 ,8\n\"5\",+6,-9\n1,2,3\n4,5,6\n";
  check_file_mutations(content, false, [](const std::string& path) { read_rows(read_csv(path)); });
}

}  // namespace
}  // namespace palimpsest::data_formats_test
