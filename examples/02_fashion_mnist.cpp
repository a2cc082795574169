// Trains a residual network on Fashion-MNIST at several memory budgets. Shows that a budget changes
// bytes and time only, never a bit of the weights.
//
//   02_fashion_mnist [--quick] [--data FOLDER] [--output FOLDER]
#include <palimpsest.h>
#include <palimpsest/data/data.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>

#include "examples/support/idx.h"
#include "examples/support/resident.h"
#include "examples/support/residual_network.h"

using namespace palimpsest;
using namespace examples;

namespace {

struct Settings {
  std::string data = fashion_mnist_folder;
  std::string output = ".";
  std::int64_t batch = 128;
  std::int64_t training_steps = 468;  ///< of the rows that train to the end: one epoch
  std::int64_t compared_steps = 24;   ///< of the other rows
  std::int64_t test_images = 10'000;
  ResidualNetwork::Options network;
  std::vector<double> budgets = {1.0, 0.6, 0.4, 0.3};
};

/// One row of the printed table.
struct Row {
  double fraction = 1;
  Bytes budget = 0;
  Bytes predicted_peak = 0;
  Bytes measured_peak = 0;
  Bytes resident_growth = 0;
  double seconds_per_step = 0;
  double relative_time = 1;
  double max_weight_difference = 0;
  std::optional<double> test_accuracy;
  Report report;          ///< of the last step
  NamedTensors compared;  ///< weights after the steps that all rows take
};

NamedTensors copy(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) copies[name] = tensor.clone();
  return copies;
}

double largest_difference(const NamedTensors& a, const NamedTensors& b) {
  double largest = 0;
  for (const auto& [name, tensor] : a) {
    const auto x = tensor.data<float>();
    const auto y = b.at(name).data<float>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double difference = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
      // A NaN must not count as equal.
      if (!(difference <= largest)) largest = difference;
    }
  }
  return largest;
}

/// Batches in an order that is shuffled for each epoch, identical in every run.
class Batches {
 public:
  Batches(const LabelledImages& data, std::int64_t size) : data_(data), size_(size) {
    order_.resize(static_cast<std::size_t>(data.size()));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    std::shuffle(order_.begin(), order_.end(), random_);
  }
  LabelledImages next() {
    if (first_ + size_ > data_.size()) {
      std::shuffle(order_.begin(), order_.end(), random_);
      first_ = 0;
    }
    first_ += size_;
    return data_.gather(std::span(order_).subspan(static_cast<std::size_t>(first_ - size_),
                                                  static_cast<std::size_t>(size_)));
  }

 private:
  const LabelledImages& data_;
  std::int64_t size_;
  std::int64_t first_ = 0;
  std::mt19937_64 random_{7};
  std::vector<std::int64_t> order_;
};

Var record_loss(Tape& tape, const ResidualNetwork& network, const LabelledImages& batch) {
  const Var logits = network.logits(tape, tape.constant(batch.images));
  return cross_entropy(logits, tape.constant(batch.labels));
}

double accuracy(const ResidualNetwork& network, const LabelledImages& test, std::int64_t images) {
  std::int64_t right = 0;
  Tape tape;
  for (std::int64_t first = 0; first < images; first += 500) {
    tape.clear();
    const LabelledImages part = test.slice(first, std::min<std::int64_t>(500, images - first));
    const Var answer = argmax(network.logits(tape, tape.constant(part.images)), {1});
    const Tensor answers = answer.value();
    for (std::int64_t i = 0; i < part.size(); ++i) right += answers.at(i) == part.labels.at(i);
  }
  return static_cast<double>(right) / static_cast<double>(images);
}

/// Trains from the same initial weights within `budget` and measures the steps.
Row train(const Settings& settings, const LabelledImages& images, const LabelledImages& test,
          double fraction, Bytes budget, std::int64_t steps) {
  using Clock = std::chrono::steady_clock;
  Row row;
  row.fraction = fraction;
  row.budget = budget;
  const ResidualNetwork network(settings.network);
  const auto optimizer = adam();
  Batches batches(images, settings.batch);
  char label[16];
  std::snprintf(label, sizeof label, "%.0f %%", 100 * fraction);
  ProgressBar progress(label, steps);
  std::vector<double> seconds;
  restart_peak_resident();
  const Bytes resident_before = resident_size();
  {
    Tape tape;
    for (std::int64_t step = 1; step <= steps; ++step) {
      const LabelledImages batch = batches.next();
      const Clock::time_point start = Clock::now();
      tape.clear();
      optimizer->set_learning_rate(6e-3 * static_cast<double>(settings.training_steps + 1 - step) /
                                   static_cast<double>(settings.training_steps));
      const Var loss = record_loss(tape, network, batch);
      const Gradients gradients = backward(loss, {.memory_budget = budget, .profile = true});
      optimizer->step(gradients);
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      row.report = gradients.report();
      row.measured_peak = std::max(row.measured_peak, row.report.measured_peak);
      row.predicted_peak = std::max(row.predicted_peak, row.report.predicted_peak);
      if (step == settings.compared_steps) row.compared = copy(network.weights());
      char text[80];
      std::snprintf(text, sizeof text, "loss %.3f, %5.0f images/s, %s", gradients.loss().item(),
                    static_cast<double>(settings.batch) / seconds.back(),
                    format_bytes(row.report.measured_peak).c_str());
      progress.show(step, text);
    }
  }
  row.resident_growth = std::max<Bytes>(0, peak_resident() - resident_before);
  std::nth_element(seconds.begin(),
                   seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                   seconds.end());
  row.seconds_per_step = seconds[seconds.size() / 2];
  if (steps == settings.training_steps) {
    row.test_accuracy = accuracy(network, test, settings.test_images);
  }
  return row;
}

void print(const std::vector<Row>& rows) {
  std::printf("\n%8s %11s %11s %11s %11s %8s %10s %9s\n", "budget", "bytes", "predicted",
              "measured", "resident", "time", "weights", "accuracy");
  for (const Row& row : rows) {
    const std::string reached =
        row.test_accuracy ? std::to_string(100 * *row.test_accuracy).substr(0, 5) + " %" : "-";
    std::printf("%6.0f %% %11s %11s %11s %11s %7.2fx %10g %9s\n", 100 * row.fraction,
                format_bytes(row.budget).c_str(), format_bytes(row.predicted_peak).c_str(),
                format_bytes(row.measured_peak).c_str(), format_bytes(row.resident_growth).c_str(),
                row.relative_time, row.max_weight_difference, reached.c_str());
  }
  std::printf(
      "resident: growth of the process; time: of a step, against 100 %%; weights: largest "
      "difference from 100 %%\n");
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) throw FileError("cannot write " + path + "; is the folder there, the disk full?");
  std::printf("wrote %s\n", path.c_str());
}

/// Formats a number as JSON, which has no infinities or NaN: these become null.
std::string to_json(double number) {
  std::ostringstream text;
  text.precision(10);
  if (std::isfinite(number)) {
    text << number;
  } else {
    text << "null";
  }
  return text.str();
}

std::string to_json(const std::vector<Row>& rows) {
  std::ostringstream text;
  text << "{\n \"rows\": [";
  for (const Row& row : rows) {
    text << (&row == rows.data() ? "\n" : ",\n")
         << "  {\"budget_fraction\": " << to_json(row.fraction)
         << ", \"budget_bytes\": " << row.budget << ", \"predicted_peak\": " << row.predicted_peak
         << ", \"measured_peak\": " << row.measured_peak
         << ", \"resident_growth\": " << row.resident_growth
         << ", \"relative_time\": " << to_json(row.relative_time)
         << ", \"max_weight_difference\": " << to_json(row.max_weight_difference)
         << ", \"test_accuracy\": " << (row.test_accuracy ? to_json(*row.test_accuracy) : "null")
         << '}';
  }
  text << "\n ]\n}\n";
  return text.str();
}

void write_files(const Settings& settings, const std::vector<Row>& rows) {
  Chart chart{.title = "One training step of a residual network on Fashion-MNIST, by memory budget",
              .x_label = "milliseconds",
              .y_label = "MiB live",
              .curves = {},
              .lines = {}};
  for (const Row& row : rows) {
    Chart::Curve curve = row.report.live_bytes_curve();
    curve.label =
        std::to_string(std::lround(100 * row.fraction)) + " % = " + format_bytes(row.budget);
    chart.curves.push_back(std::move(curve));
  }
  write_file(settings.output + "/demo.json", to_json(rows));
  write_file(settings.output + "/demo.svg", render(chart));
  // What is live in a step within the smallest budget, and why.
  const std::string page = settings.output + "/demo.html";
  rows.back().report.write_html(page);
  std::printf("wrote %s\n", page.c_str());
}

/// True when every row keeps the promises of the library.
bool holds(const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.measured_peak <= row.predicted_peak && row.predicted_peak <= row.budget &&
           row.max_weight_difference == 0;
  });
}

int run(const Settings& settings) {
  const LabelledImages images = read_fashion_mnist(settings.data, "train");
  const LabelledImages test = read_fashion_mnist(settings.data, "t10k");
  Bytes everything = 0;
  {
    Tape tape;
    const ResidualNetwork network(settings.network);
    everything =
        plan_backward(record_loss(tape, network, images.slice(0, settings.batch))).keep_all_peak;
  }
  std::printf("Keeping everything, a step takes %s.\n", format_bytes(everything).c_str());
  std::vector<Row> rows;
  for (const double fraction : settings.budgets) {
    const auto budget = static_cast<Bytes>(fraction * static_cast<double>(everything));
    const bool ends = fraction == settings.budgets.front() || fraction == settings.budgets.back();
    rows.push_back(train(settings, images, test, fraction, budget,
                         ends ? settings.training_steps : settings.compared_steps));
    Row& row = rows.back();
    row.relative_time = row.seconds_per_step / rows.front().seconds_per_step;
    row.max_weight_difference = largest_difference(row.compared, rows.front().compared);
  }
  print(rows);
  write_files(settings, rows);
  return holds(rows) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--quick") {
      settings.batch = 32;
      settings.training_steps = 4;
      settings.compared_steps = 2;
      settings.test_images = 200;
      settings.network.channels = 8;
    } else if (flag == "--data" && i + 1 < argc) {
      settings.data = argv[++i];
    } else if (flag == "--output" && i + 1 < argc) {
      settings.output = argv[++i];
    } else {
      std::cerr << "usage: 02_fashion_mnist [--quick] [--data FOLDER] [--output FOLDER]\n";
      return 2;
    }
  }
  try {
    return run(settings);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
