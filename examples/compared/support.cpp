#include "examples/compared/support.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

using namespace palimpsest;

namespace {

// FNV-1a (Fowler, Noll and Vo).
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// SplitMix64 (Steele, Lea and Flood, 2014).
std::uint64_t bits_at(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

bool ends_with_bias(const std::string& name) { return name == "bias" || name.ends_with("/bias"); }

std::size_t resident(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (std::size_t kilobytes = 0; word == field && status >> kilobytes) return 1024 * kilobytes;
  }
  return 0;
}

/// With COMPARED_MEASURE, prints how far the resident size grew at its peak, and the processor time
/// of a step. Output lines `step N ...` and `iteration N ...` tell when a step has ended; the first
/// one is not timed. Used by tools/compare_programs.py.
class Meter {
 public:
  Meter() {
    if (std::getenv("COMPARED_MEASURE") == nullptr) return;
    measures_ = true;
    before_ = resident("VmRSS:");
    stdout = fopencookie(this, "w",
                         {.read = nullptr, .write = write, .seek = nullptr, .close = nullptr});
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  }
  ~Meter() {
    if (!measures_) return;
    std::fflush(stdout);
    std::fprintf(stderr, "peak %zu\n", resident("VmHWM:") - before_);
    std::fprintf(stderr, "seconds %g\n", (last_time_ - first_time_) / (last_step_ - first_step_));
  }

 private:
  static ssize_t write(void* meter, const char* text, std::size_t size) {
    static_cast<Meter*>(meter)->note(std::string(text, size));
    return ::write(STDOUT_FILENO, text, size);
  }
  void note(const std::string& line) {
    int step = 0;
    if (std::sscanf(line.c_str(), "step %d", &step) != 1 &&
        std::sscanf(line.c_str(), "iteration %d", &step) != 1) {
      return;
    }
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    last_time_ = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    last_step_ = step;
    if (first_time_ == 0) {
      first_time_ = last_time_;
      first_step_ = step;
    }
  }

  bool measures_ = false;
  std::size_t before_ = 0;
  double first_time_ = 0, last_time_ = 0;
  int first_step_ = 0, last_step_ = 0;
};
const Meter meter;

}  // namespace

Tensor numbers(const Shape& shape, std::string_view name, DType dtype) {
  const Tensor result(shape, DType::f64);
  const std::uint64_t seed = hash_of(name);
  for (std::uint64_t i = 0; double& x : result.data<double>()) {
    x = static_cast<double>(bits_at(seed, i++) >> 40) * 0x1p-23 - 1;
  }
  return result.to(dtype);
}

Tensor normals(const Shape& shape, std::string_view name) {
  const Tensor uniform = numbers({shape.elements(), 12}, name, DType::f64);
  const Tensor result = Tensor::zeros(shape, DType::f64);
  for (std::size_t i = 0; const double x : uniform.data<double>()) {
    result.data<double>()[i++ / 12] += x / 2;
  }
  return result;
}

Tensor classes(const Shape& shape, std::string_view name, std::int64_t classes) {
  const Tensor result(shape, DType::i64);
  const std::uint64_t seed = hash_of(name);
  for (std::uint64_t i = 0; std::int64_t& x : result.data<std::int64_t>()) {
    x = static_cast<std::int64_t>((bits_at(seed, i++) >> 40) % static_cast<std::uint64_t>(classes));
  }
  return result;
}

Discs discs(std::int64_t count, std::int64_t size) {
  const Tensor places = numbers({count, 3}, "places");
  const Discs result{numbers({count, 1, size, size}, "noise"), Tensor({count, 1, size, size})};
  const double half = static_cast<double>(size) / 2;
  for (std::int64_t i = 0; i < count * size * size; ++i) {
    const std::int64_t image = i / (size * size);
    const double down =
        static_cast<double>(i / size % size) - half * (1 + places.at(3 * image) / 2);
    const double across = static_cast<double>(i % size) - half * (1 + places.at(3 * image + 1) / 2);
    const double radius = half * (0.5 + places.at(3 * image + 2) / 4);
    const bool inside = down * down + across * across < radius * radius;
    result.masks.data<float>()[static_cast<std::size_t>(i)] = inside ? 1 : 0;
    result.images.data<float>()[static_cast<std::size_t>(i)] += inside ? 1 : 0;
  }
  return result;
}

void same_parameters(const nn::Parameters& parameters) {
  for (const nn::Parameter& parameter : parameters.trainable()) {
    const Tensor& tensor = parameter.tensor();
    const Shape& shape = tensor.shape();
    if (shape.rank() == 1 && !ends_with_bias(parameter.name())) continue;
    // The weights of convolutions have the inputs after the first axis.
    const std::int64_t fan = shape.rank() == 2 ? shape[0] : tensor.elements() / shape[0];
    const double factor = shape.rank() == 1 ? 0 : std::sqrt(3 / static_cast<double>(fan));
    const Tensor values = numbers(shape, parameter.name(), DType::f64);
    for (double& value : values.data<double>()) value *= factor;
    const Tensor rounded = values.to(tensor.dtype());
    std::copy_n(rounded.raw(), rounded.bytes(), tensor.raw());
  }
}
