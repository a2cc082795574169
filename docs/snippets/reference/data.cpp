// Examples of docs/reference/data.md.
#include <palimpsest/data/data.h>

#include <fstream>
#include <sstream>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(Dataset, DatasetColumn, in_memory) {
  const Dataset all =
      in_memory({{"x", Tensor::matrix({{1, 2}, {3, 4}, {5, 6}})}, {"label", Tensor::arange(3)}});
  print(all.size(), all.columns().size(), all.position("label"), all.example_bytes());
  // → 3 2 1 16
  print(all.rows({2, 0})[0], all.slice(1, 2).size());  // → [[5, 6], [1, 2]] 2
  const Dataset computed(100, {{"x", {{}, DType::f32}}}, [](std::span<const std::int64_t> rows) {
    return std::vector{Tensor::ones({std::ssize(rows)})};
  });
  print(computed.rows({5, 7})[0]);  // → [1, 1]
}

EXAMPLE(joined) {
  const Dataset x = in_memory({{"x", Tensor::ones({3, 2})}});
  print(joined({x, in_memory({{"y", Tensor::arange(3)}})}).columns().size());  // → 2
}

EXAMPLE(read_csv, CsvTensor, CsvOptions) {
  std::ofstream("points.csv") << "x,y,kind\n1,2,0\n3,4,1\n";
  const Dataset data = read_csv("points.csv", {{.name = "point", .columns = {"x", "y"}},
                                               {.name = "kind", .dtype = DType::i64}});
  print(data.rows({0, 1})[0], data.rows({1})[1]);  // → [[1, 2], [3, 4]] [1]
}

EXAMPLE(mapped_safetensors, mapped_npy, mapped_idx) {
  save_safetensors("points.safetensors", {{"x", Tensor::ones({3, 2})}});
  // Rows are read when they are needed.
  print(mapped_safetensors("points.safetensors").size());  // → 3
}

EXAMPLE(save_npy, load_npy) {
  save_npy("points.npy", Tensor::matrix({{1, 2}, {3, 4}}));
  print(load_npy("points.npy"));                 // → [[1, 2], [3, 4]]
  print(mapped_npy("points.npy").rows({1})[0]);  // → [[3, 4]]
}

EXAMPLE(DataLoader, DataLoaderOptions, DataLoaderPosition, Batch) {
  const Dataset all = in_memory({{"x", Tensor::arange(5)}});
  DataLoader loader(all, {.batch_size = 2, .shuffle = true, .seed = 1});
  for (const Batch& batch : loader) print(batch.index, batch.size(), batch["x"].shape());
  // → 0 2 (2)
  // → 1 2 (2)
  // → 2 1 (1)
  print(loader.epoch(), loader.batches());       // → 1 3
  loader.set_position({.epoch = 3, .seed = 1});  // as after loading a saved run
  const auto next = loader.next();
  print(next->epoch, loader.position().batch);  // → 3 1
}

EXAMPLE(WeightedMean) {
  WeightedMean loss;
  loss.add(1.0, 3);  // the mean of 3 examples
  loss.add(5.0, 1);
  print(loss.value(), loss.weight());  // → 2 4
  loss.reset();
}

EXAMPLE(Accuracy, AccuracyOptions) {
  Accuracy accuracy, of_two({.top = 2});
  const Tensor logits = Tensor::matrix({{3, 2, 1}, {1, 3, 2}});
  accuracy.add(logits, Tensor::from<std::int64_t>({0, 2}, {2}));
  of_two.add(logits, Tensor::from<std::int64_t>({0, 2}, {2}));
  print(accuracy.value(), of_two.value(), accuracy.examples());  // → 0.5 1 2
  accuracy.reset();
}

EXAMPLE(ConfusionMatrix) {
  ConfusionMatrix matrix(2);
  matrix.add(Tensor::from<std::int64_t>({0, 1, 1}, {3}),
             Tensor::from<std::int64_t>({0, 1, 0}, {3}));
  print(matrix.value(), matrix.accuracy());    // → [[1, 1], [0, 1]] 0.6667
  print(matrix.precision(), matrix.recall());  // → [1, 0.5] [0.5, 1]
  matrix.reset();
}

EXAMPLE(Perplexity) {
  Perplexity perplexity;
  perplexity.add(0.6931, /*tokens=*/100);
  print(perplexity.value());  // → 2
  perplexity.reset();
}

EXAMPLE(ProgressBar) {
  std::ostringstream stream;  // by default, the standard error stream
  ProgressBar bar("train", 2, stream);
  bar.show(1, "loss 0.5");
  bar.show(2, "loss 0.4");
  print(stream.str().empty());  // → false
}

EXAMPLE(DataLoader::begin, DataLoader::end, DataLoader::prefetched_peak) {
  DataLoader loader(in_memory({{"x", Tensor::arange(6)}}), {.batch_size = 2, .prefetch = 0});
  for (auto batch = loader.begin(); batch != loader.end(); ++batch) print((*batch)["x"]);
  // → [0, 1]
  // → [2, 3]
  // → [4, 5]
  // With 0 bytes for it, nothing is made ahead.
  print(loader.prefetched_peak());  // → 0
}

}  // namespace reference
