#include "data/mapped_dataset.h"
#include "strategy/training/safetensors.h"
#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace palimpsest::mapped_safetensors_test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("tensors of a file are columns, in the order of their names or of the given ones") {
  const TemporaryFile file;
  save_safetensors(file.path(), {{"labels", Tensor::arange(3)},
                                 {"images", Tensor::uniform({3, 2, 2}, 1)},
                                 {"half", Tensor::uniform({3, 1}, 2, 0, 1, DType::bf16)},
                                 {"scale", Tensor::scalar(2)}});
  const NamedTensors tensors = load_safetensors(file.path());
  const Dataset dataset = mapped_safetensors(file.path(), {"labels", "images", "half"});
  CHECK(dataset.size() == 3);
  CHECK(dataset.columns()[1] == DatasetColumn{"images", {{2, 2}, DType::f32}});
  const std::vector<Tensor> rows = dataset.rows({0, 1, 2});
  CHECK(same_bits(rows[0], tensors.at("labels")));
  CHECK(same_bits(rows[1], tensors.at("images")));
  CHECK(same_bits(rows[2], tensors.at("half")));

  save_safetensors(file.path(), {{"y", Tensor::arange(3)}, {"x", Tensor::zeros({3})}});
  CHECK(mapped_safetensors(file.path()).columns()[0].name == "x");
  CHECK(dataset.rows({2})[0].at(0) == 2);  // still of the file that was replaced
}

TEST_CASE("tensors that are no columns are errors") {
  const TemporaryFile file;
  const auto saved = [&](const NamedTensors& tensors, const std::vector<std::string>& names = {}) {
    save_safetensors(file.path(), tensors);
    return mapped_safetensors(file.path(), names);
  };
  CHECK_THROWS_WITH(saved({{"a", Tensor::zeros({3})}, {"b", Tensor::zeros({2})}}),
                    Contains("tensor 'b' has 2 rows, but 'a' has 3; name tensors"));
  CHECK_THROWS_WITH(saved({{"a", Tensor::scalar(3)}}),
                    Contains("tensor 'a'") && Contains("a scalar"));
  CHECK_THROWS_WITH(saved({}), Contains("has no tensors"));
  CHECK_THROWS_AS(saved({{"a", Tensor::zeros({3})}}, {"b"}), ArgumentError);
  CHECK_THROWS_WITH(saved({{"a", Tensor::zeros({3})}}, {"b"}),
                    Contains("no tensor 'b'; use one of a"));
}

TEST_CASE("a wrong bool in a safetensors file is an error when its row is requested") {
  const TemporaryFile file;
  save_safetensors(file.path(), {{"mask", Tensor::zeros({4}, DType::boolean)}});
  std::string content = file.read();
  content.back() = '\7';
  file.write(content);
  const Dataset dataset = mapped_safetensors(file.path());
  CHECK_NOTHROW(dataset.rows({0, 1, 2}));
  CHECK_THROWS_WITH(dataset.rows({3}),
                    Contains("byte " + std::to_string(content.size() - 1) + ": a bool"));
}

}  // namespace
}  // namespace palimpsest::mapped_safetensors_test
