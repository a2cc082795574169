// Trains a convolutional network in 256 KiB, by a C file without a library or a heap.
//
// Lin et al. (2022), "On-Device Training Under 256KB Memory", train networks on microcontrollers.
// Here the exported function has everything that a training step takes: forward part, backward part
// and an update with momentum. Weights, momenta, intermediate values and a batch of images fit into
// 256 KiB together, with a second function that classifies. The program is compiled for this
// computer and trains here. If arm-none-eabi-gcc is found, it is also compiled for a Cortex-M4.
//
// The images are those of Fashion-MNIST if they are installed, otherwise drawn digits.
//
//   28_digits_c [--quick] [--output FOLDER]
#include <palimpsest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "examples/support/drawn_digits.h"
#include "examples/support/host_c.h"
#include "examples/support/idx.h"
#include "examples/support/program_main.h"

using namespace palimpsest;
using namespace examples;

namespace {

constexpr std::int64_t batch = 12;
constexpr double rate = 0.05;
constexpr double momentum = 0.9;
constexpr Bytes mark = 256_KiB;
constexpr int compared = 8;  // steps whose losses are compared with the engine's

/// Three convolutions with stride 2, the mean over the image, and a linear layer.
struct Network {
  std::vector<std::string> names{"kernel_1", "bias_1", "kernel_2", "bias_2",
                                 "kernel_3", "bias_3", "dense",    "dense_bias"};
  std::vector<Shape> shapes{{8, 1, 3, 3},   {8},  {16, 8, 3, 3}, {16},
                            {32, 16, 3, 3}, {32}, {32, 10},      {10}};
  std::vector<Tensor> weights;
  Var images, labels;

  Network() {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Shape& shape = shapes[i];
      const std::int64_t outputs = i == 6 ? 10 : shape[0];
      const double inputs = static_cast<double>(shape.elements() / outputs);
      weights.push_back(shape.rank() == 1 ? Tensor::zeros(shape)
                                          : Tensor::normal(shape, i + 1, 0, std::sqrt(2 / inputs)));
    }
  }

  Var logits(Tape& tape, std::int64_t count) {
    std::vector<Var> w;
    for (std::size_t i = 0; i < names.size(); ++i)
      w.push_back(tape.parameter(weights[i], names[i]));
    images = tape.constant(Tensor::zeros({count, 1, 28, 28}));
    Var x = images;
    for (std::size_t layer = 0; layer < 6; layer += 2) {
      x = relu(conv2d(x, w[layer], w[layer + 1], {.stride = 2, .padding = 1}));
    }
    return linear(reshape(global_average_pool(x), {count, 32}), w[6], w[7]);
  }
  /// A training step.
  Program training() {
    return Program::gradients(
        [&](Tape& tape) {
          const Var scores = logits(tape, batch);
          labels = tape.constant(Tensor::zeros({batch}, DType::i32));
          return cross_entropy(scores, labels);
        },
        {.threads = 1});
  }
  /// The most likely class of one image.
  Program classifying() {
    return Program::values(
        [&](Tape& tape) {
          return std::vector<Var>{cast(argmax(logits(tape, 1), {1}), DType::i32)};
        },
        {.threads = 1});
  }
};

struct Data {
  LabelledImages training, test;
  const char* name;
};

Data read_data(bool quick) {
  const std::int64_t training = quick ? 1'920 : 24'000;
  const std::int64_t test = quick ? 240 : 4'800;
  if (quick || !std::filesystem::exists(fashion_mnist_folder)) {
    return {drawn_digits(quick ? training : 9'600, 1), drawn_digits(quick ? test : 960, 2),
            "drawn digits"};
  }
  return {read_fashion_mnist(fashion_mnist_folder, "train").slice(0, training),
          read_fashion_mnist(fashion_mnist_folder, "t10k").slice(0, test), "Fashion-MNIST"};
}

/// Images as bytes, then labels as bytes.
void write_images(std::ofstream& file, const LabelledImages& data) {
  for (const float pixel : data.images.data<float>()) {
    file.put(static_cast<char>(std::lround(pixel * 255)));
  }
  for (const std::int32_t label : data.labels.data<std::int32_t>()) {
    file.put(static_cast<char>(label));
  }
}

void write_data(const std::string& path, const Network& network, const Data& data) {
  std::ofstream file(path, std::ios::binary);
  for (const Tensor& weight : network.weights) {
    const std::span<const float> numbers = weight.data<float>();
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size_bytes()));
  }
  write_images(file, data.training);
  write_images(file, data.test);
}

/// The memory of a device and the two steps that it takes. It has no input or output.
std::string device_text(const Network& network) {
  std::ostringstream text;
  text << "#include \"digits.h\"\n#include \"digits_classify.h\"\n\n";
  std::string arguments;
  for (std::size_t i = 0; i < network.names.size(); ++i) {
    text << "float " << network.names[i] << "[" << network.shapes[i].elements() << "];\n";
    arguments += network.names[i] + ", ";
  }
  text << "float images[DIGITS_IMAGES_ELEMENTS];\n"
          "int32_t labels[DIGITS_LABELS_ELEMENTS];\n"
          "float loss;\n"
          "static digits_state state;\n\n"
          "int train(double learning_rate) {\n  return digits("
       << arguments
       << "images, labels, &loss, &state, learning_rate);\n}\n\n"
          "int classify(void) { return digits_classify("
       << arguments << "images, labels); }\n";
  return text.str();
}

/// The program of this computer: it reads images, and calls the device's functions.
std::string main_text(const Network& network, const Data& data, int epochs) {
  std::ostringstream text;
  text << "#include <stdio.h>\n#include <stdlib.h>\n\n#include \"digits.h\"\n\n"
          "enum { batch = "
       << batch << ", pixels = 784, training = " << data.training.size()
       << ", test = " << data.test.size() << ", epochs = " << epochs << " };\n";
  std::string reads;
  for (std::size_t i = 0; i < network.names.size(); ++i) {
    text << "extern float " << network.names[i] << "[" << network.shapes[i].elements() << "];\n";
    reads += "  get(" + network.names[i] + ", sizeof " + network.names[i] + ");\n";
  }
  text << R"(extern float images[DIGITS_IMAGES_ELEMENTS];
extern int32_t labels[DIGITS_LABELS_ELEMENTS];
extern float loss;
int train(double learning_rate);
int classify(void);

static unsigned char pictures[(size_t)training * pixels], classes[training];
static unsigned char test_pictures[(size_t)test * pixels], test_classes[test];
static FILE *file;

static void get(void *to, size_t bytes) {
  if (fread(to, 1, bytes, file) != bytes) exit(2);
}

static void show(const unsigned char *from, long first, long count) {
  for (long i = 0; i < count * pixels; ++i) images[i] = (float)from[first * pixels + i] / 255;
}

int main(int count, char **words) {
  if (count != 2 || (file = fopen(words[1], "rb")) == NULL) return 2;
)" << reads
       << R"(  get(pictures, sizeof pictures);
  get(classes, sizeof classes);
  get(test_pictures, sizeof test_pictures);
  get(test_classes, sizeof test_classes);
  fclose(file);
  int steps = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (long first = 0; first + batch <= training; first += batch) {
      show(pictures, first, batch);
      for (int i = 0; i < batch; ++i) labels[i] = classes[first + i];
      const double learning_rate = DIGITS_LEARNING_RATE / (epoch + 1 < epochs ? 1 : 5);
      if (train(learning_rate) != DIGITS_OK) return 1;
      if (steps++ < )"
       << compared << R"() printf("%.9g\n", loss);
    }
  }
  long right = 0;
  for (long i = 0; i < test; ++i) {
    show(test_pictures, i, 1);
    if (classify() != DIGITS_OK) return 1;
    right += labels[0] == test_classes[i];
  }
  printf("%.9g\n", (double)right / test);
  return 0;
}
)";
  return text.str();
}

/// Losses of the first steps by the engine.
std::vector<double> engine_losses(const Program& program, const Network& network,
                                  const Data& data) {
  Runner runner(program);
  const auto optimizer = sgd({.learning_rate = rate, .momentum = momentum});
  std::vector<double> losses;
  for (int step = 0; step < compared; ++step) {
    const LabelledImages part = data.training.slice(step * batch, batch);
    runner.bind(network.images, part.images);
    runner.bind(network.labels, part.labels);
    runner.run();
    const Gradients gradients = runner.gradients();
    losses.push_back(gradients.loss().item<double>());
    optimizer->step(gradients);
  }
  return losses;
}

/// Bytes of .bss of the device's files, as `size` counts them.
Bytes bss_of(const std::string& compiler, const std::string& size, const std::string& at) {
  Bytes total = 0;
  for (const std::string name : {"digits", "digits_classify", "digits_device"}) {
    const std::string object = "'" + at + name + ".o'";
    output_of(compiler + " -std=c99 -Os -ffunction-sections -c -o " + object + " '" + at + name +
              ".c'");
    // The second line has text, data, bss.
    std::istringstream lines(output_of(size + " " + object));
    std::string header;
    std::getline(lines, header);
    Bytes text = 0;
    Bytes initialised = 0;
    Bytes bss = 0;
    lines >> text >> initialised >> bss;
    std::printf("  %-16s code %6lld, data %lld, bss %lld bytes\n", name.c_str(),
                static_cast<long long>(text), static_cast<long long>(initialised),
                static_cast<long long>(bss));
    total += initialised + bss;
  }
  return total;
}

bool run(const Arguments& arguments) {
  const std::string at = arguments.output + "/";
  Network network;
  const Data data = read_data(arguments.quick);

  // The classifier writes to `labels`. Its arena and a batch are left out of the budget of the
  // training step.
  const Program classifying = network.classifying();
  const ExportedC classify =
      export_c(classifying, {.memory_budget = mark / 2,
                             .name = "digits_classify",
                             .arguments = {{"images", network.images}},
                             .results = {{"classes", classifying.outputs()[0]}}});
  const Program training = network.training();
  const Bytes batch_bytes = network.images.type().bytes() + network.labels.type().bytes();
  const ExportedC train =
      export_c(training, {.memory_budget = mark - classify.arena_bytes - batch_bytes - 64,
                          .name = "digits",
                          .arguments = {{"images", network.images}, {"labels", network.labels}},
                          .optimizer = SgdOptions{.learning_rate = rate, .momentum = momentum}});
  write_files(classify, arguments.output);
  write_files(train, arguments.output);
  write_file(at + "digits_device.c", device_text(network));
  const int epochs = 3;
  write_file(at + "digits_main.c", main_text(network, data, epochs));
  const Bytes total = train.total_bytes() + classify.arena_bytes + batch_bytes;
  std::printf("parameters %lld, momenta %lld, arenas %lld + %lld, a batch %lld: %lld bytes\n",
              static_cast<long long>(train.parameter_bytes),
              static_cast<long long>(train.state_bytes), static_cast<long long>(train.arena_bytes),
              static_cast<long long>(classify.arena_bytes), static_cast<long long>(batch_bytes),
              static_cast<long long>(total));
  std::vector<Claim> claims{{total <= mark, "training fits into 256 KiB"}};
  if (!has_command("cc")) {
    std::printf("there is no C compiler, so the C files are not run\n");
    return all_hold(claims);
  }

  if (has_command("size")) {
    std::printf("compiled for this computer:\n");
    const Bytes bss = bss_of("cc", "size", at);
    claims.push_back(
        {bss <= mark, format("data and .bss take %lld bytes here", static_cast<long long>(bss))});
  }
  if (has_command("arm-none-eabi-gcc")) {
    std::printf("compiled for a Cortex-M4:\n");
    const Bytes bss = bss_of(
        "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard "
        "-mfpu=fpv4-sp-d16",
        "arm-none-eabi-size", at);
    claims.push_back({bss <= mark, format("data and .bss take %lld bytes on a Cortex-M4",
                                          static_cast<long long>(bss))});
  }

  write_data(at + "digits.bin", network, data);
  output_of("cc -std=c99 -pedantic -Wall -Wextra -Werror -O2 -o '" + at + "digits' '" + at +
            "digits.c' '" + at + "digits_classify.c' '" + at + "digits_device.c' '" + at +
            "digits_main.c' -lm");
  std::istringstream printed(output_of("'" + at + "digits' '" + at + "digits.bin'"));
  double difference = 0;
  for (const double expected : engine_losses(training, network, data)) {
    double loss = 0;
    printed >> loss;
    difference = std::max(difference, std::abs(loss - expected) / expected);
  }
  double accuracy = 0;
  printed >> accuracy;
  std::printf("%s: test accuracy %.1f %% after %d epochs\n", data.name, 100 * accuracy, epochs);
  claims.push_back(
      {difference < 1e-4, format("losses of the first %d steps differ from the engine's by %.1e",
                                 compared, difference)});
  claims.push_back({accuracy > (arguments.quick ? 0.3 : 0.75), "the network has learned"});
  return all_hold(claims);
}

}  // namespace

int main(int argc, char** argv) { return program_main(argc, argv, run); }
