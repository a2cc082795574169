#include "autodiff/storage_version.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/var.h"
#include "tests/catch.h"

namespace palimpsest::storage_version_test {
namespace {

TEST_CASE("tensors of one storage have one version, which a write raises") {
  const Tensor x = Tensor::ones({2, 3});
  const Tensor view = x.reshape({6});
  const Tensor other = x.clone();
  CHECK(version_of(x.buffer()).number == 0);
  note_write(view, "first");
  const StorageVersion first = version_of(x.buffer());
  CHECK(first.number == latest_version());
  CHECK(std::string_view(first.call) == "first");
  CHECK(version_of(other.buffer()).number == 0);
  note_write(x, "second");
  CHECK(version_of(view.buffer()).number > first.number);
  CHECK(std::string_view(version_of(view.buffer()).call) == "second");
}

TEST_CASE("storages without elements have no version") {
  const std::uint64_t before = latest_version();
  note_write(Tensor(), "nothing");
  note_write(Tensor::zeros({0, 3}), "nothing");
  CHECK(latest_version() == before);
}

TEST_CASE("many storages that are freed leave no trace in the versions of others") {
  const Tensor x = Tensor::ones({4});
  note_write(x, "kept");
  const std::uint64_t version = version_of(x.buffer()).number;
  for (int i = 0; i < 5000; ++i) note_write(Tensor::ones({4}), "freed");
  CHECK(version_of(x.buffer()).number == version);
}

TEST_CASE("a tape without an evaluator computes from one version of its leaves") {
  Tape tape;
  const Tensor weight = Tensor::from<double>({1, 2, 3}, {3});
  const Var x = tape.parameter(weight);
  const Var view = reshape(x, {3, 1});
  const Var square = x * x;
  const Var cube = sum(square * x);
  CHECK(square.value().at(2) == 9);
  CHECK(view.value().at(2) == 3);
  note_write(weight, "test");
  weight.data<double>()[2] = 4;
  CHECK(square.value().at(2) == 9);  // as it was computed
  CHECK(cube.item() == 1 + 8 + 64);
  CHECK(view.value().at(2) == 4);  // the storage of the leaf
  const Var later = square + 0.0;
  CHECK(later.value().at(2) == 16);
}

TEST_CASE("handles of values that are out of date end with their nodes") {
  Tape tape;
  const Tensor weight = Tensor::ones({3});
  const Var x = tape.parameter(weight);
  const Var twice = x * 2.0;
  CHECK(twice.value().at(0) == 2);
  note_write(weight, "test");
  tape.notice_writes();
  CHECK_FALSE(tape.has_value(twice.id()));
  CHECK(tape.outdated().size() == 1);
  tape.clear();
  CHECK(tape.outdated().empty());
}

}  // namespace
}  // namespace palimpsest::storage_version_test
