#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>

#include "autodiff/error.h"
#include "checkpoint/reverse/snapshot_codec.h"

#ifdef PALIMPSEST_ZFP
#include <zfp.h>
#endif

namespace palimpsest {

#ifdef PALIMPSEST_ZFP
namespace {

std::size_t count_in(std::span<const std::size_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

/// Arrays of one shape, each compressed with a fixed accuracy (Lindstrom, 2014).
class ZfpCodec final : public SnapshotCodec {
 public:
  ZfpCodec(const ReverseOptions& options, DType dtype, Bytes header, Where where)
      : shape_(options.codec_shape),
        tolerance_(options.tolerance),
        type_(dtype == DType::f64 ? zfp_type_double : zfp_type_float),
        width_(size_of(dtype)),
        header_(header),
        where_(where),
        stream_(zfp_stream_open(nullptr)),
        field_(zfp_field_alloc()) {
    zfp_field_set_type(field_, type_);
    zfp_stream_set_accuracy(stream_, tolerance_);
  }
  ~ZfpCodec() override {
    zfp_field_free(field_);
    zfp_stream_close(stream_);
  }
  ZfpCodec(const ZfpCodec&) = delete;
  ZfpCodec& operator=(const ZfpCodec&) = delete;

  Bytes most(Bytes bytes) const override {
    const std::size_t arrays = lay_out(bytes);
    const std::size_t each = arrays == 0 ? 0 : zfp_stream_maximum_size(stream_, field_);
    const auto compressed = static_cast<Bytes>(arrays * round_up(each));
    return Bytes{sizeof bytes} + header_ + std::max(compressed, bytes - header_);
  }
  bool is_fixed() const override { return false; }
  bool is_exact() const override { return false; }
  Bytes memory_bytes() const override { return 4_KiB; }

  Bytes encode(std::span<const std::byte> state, std::span<std::byte> to) override {
    const Bytes bytes = std::ssize(state);
    const std::size_t header = sizeof bytes + static_cast<std::size_t>(header_);
    const std::size_t arrays = lay_out(bytes);
    const auto numbers = state.subspan(static_cast<std::size_t>(header_));
    const bool is_plain = !can_keep(largest_of(numbers));
    const Bytes marked = bytes | (is_plain ? plain : 0);
    std::memcpy(to.data(), &marked, sizeof marked);
    std::memcpy(to.data() + sizeof bytes, state.data(), static_cast<std::size_t>(header_));
    if (is_plain) {
      std::ranges::copy(numbers, to.data() + header);
      return static_cast<Bytes>(header + numbers.size());
    }
    std::size_t used = header;
    each_array(arrays, const_cast<std::byte*>(state.data()) + header_,
               [&] { used += round_up(run(to.subspan(used), zfp_compress)); });
    return static_cast<Bytes>(used);
  }
  Bytes decoded_bytes(std::span<const std::byte> from) const override {
    return marked_bytes(from) & ~plain;
  }
  bool decode(std::span<const std::byte> from, std::span<std::byte> state) override {
    std::memcpy(state.data(), from.data() + sizeof(Bytes), static_cast<std::size_t>(header_));
    std::size_t used = sizeof(Bytes) + static_cast<std::size_t>(header_);
    if ((marked_bytes(from) & plain) != 0) {
      const auto numbers = state.subspan(static_cast<std::size_t>(header_));
      if (from.size() != used + numbers.size()) return false;
      std::ranges::copy(from.subspan(used), numbers.data());
      return true;
    }
    bool is_whole = true;
    each_array(lay_out(std::ssize(state)), state.data() + header_, [&] {
      const std::size_t size =
          run({const_cast<std::byte*>(from.data()) + used, from.size() - used}, zfp_decompress);
      is_whole = is_whole && size > 0;
      used += round_up(size);
    });
    return is_whole && used == from.size();
  }

 private:
  /// zfp reads and writes words.
  static std::size_t round_up(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

  /// Sets the shape of the arrays, and returns how many there are.
  std::size_t lay_out(Bytes bytes) const {
    const auto numbers = static_cast<std::size_t>((bytes - header_) / width_);
    const std::size_t in_array = shape_.empty() ? numbers : count_in(shape_);
    if (numbers == 0) return 0;
    if (numbers % in_array != 0) {
      reject_reverse_codec("a state of " + std::to_string(numbers) +
                               " numbers does not consist of arrays with the " +
                               std::to_string(in_array) +
                               " numbers of codec_shape; give the shape of its arrays",
                           where_);
    }
    switch (shape_.size()) {
      case 0:
        zfp_field_set_size_1d(field_, numbers);
        break;
      case 1:
        zfp_field_set_size_1d(field_, shape_[0]);
        break;
      case 2:
        zfp_field_set_size_2d(field_, shape_[1], shape_[0]);
        break;
      case 3:
        zfp_field_set_size_3d(field_, shape_[2], shape_[1], shape_[0]);
        break;
      default:
        zfp_field_set_size_4d(field_, shape_[3], shape_[2], shape_[1], shape_[0]);
    }
    return numbers / in_array;
  }

  template <class F>
  void each_array(std::size_t arrays, std::byte* first, const F& f) {
    const std::size_t bytes = zfp_field_size(field_, nullptr) * static_cast<std::size_t>(width_);
    for (std::size_t i = 0; i < arrays; ++i) {
      zfp_field_set_pointer(field_, first + i * bytes);
      f();
    }
  }

  std::size_t run(std::span<std::byte> buffer,
                  std::size_t (*convert)(zfp_stream*, const zfp_field*)) {
    bitstream* const bits = stream_open(buffer.data(), buffer.size());
    zfp_stream_set_bit_stream(stream_, bits);
    zfp_stream_rewind(stream_);
    const std::size_t size = convert(stream_, field_);
    stream_close(bits);
    return size;
  }
  std::size_t run(std::span<std::byte> buffer, std::size_t (*convert)(zfp_stream*, zfp_field*)) {
    bitstream* const bits = stream_open(buffer.data(), buffer.size());
    zfp_stream_set_bit_stream(stream_, bits);
    zfp_stream_rewind(stream_);
    const std::size_t size = convert(stream_, field_);
    stream_close(bits);
    return size;
  }

  static Bytes marked_bytes(std::span<const std::byte> from) {
    Bytes bytes = 0;
    if (from.size() >= sizeof bytes) std::memcpy(&bytes, from.data(), sizeof bytes);
    return bytes;
  }

  /// Whether zfp keeps to the tolerance. It works on whole numbers of 62 or 30 bits for each block
  /// and loses some of the bits. It keeps about the digits of one number.
  bool can_keep(double largest) const {
    constexpr double most_of_f64 = 0x1p52;
    constexpr double most_of_f32 = 0x1p22;
    return largest <= tolerance_ * (type_ == zfp_type_double ? most_of_f64 : most_of_f32);
  }

  /// The largest magnitude. Throws `ArgumentError` unless all numbers are finite.
  double largest_of(std::span<const std::byte> numbers) const {
    const auto count = numbers.size() / static_cast<std::size_t>(width_);
    double largest = 0;
    double sum = 0;  // 0 · x is NaN for infinities and NaN
    const auto look = [&]<class T>(T number) {
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(&number, numbers.data() + i * sizeof number, sizeof number);
        sum += 0 * static_cast<double>(number);
        largest = std::max(largest, std::abs(static_cast<double>(number)));
      }
    };
    type_ == zfp_type_double ? look(double{}) : look(float{});
    if (sum == 0) return largest;
    reject_reverse_codec(
        "a state contains NaN or infinity, which zfp cannot keep; use another codec", where_);
  }

  /// Marks the size of a state whose numbers are kept as they are.
  static constexpr Bytes plain = Bytes{1} << 62;

  std::vector<std::size_t> shape_;
  double tolerance_;
  zfp_type type_;
  Bytes width_;
  Bytes header_;
  Where where_;
  zfp_stream* stream_;
  zfp_field* field_;
};

}  // namespace

std::unique_ptr<SnapshotCodec> make_zfp_codec(const ReverseOptions& options, DType dtype,
                                              Bytes header, const Where& where) {
  if (!(options.tolerance > 0) || !std::isfinite(options.tolerance)) {
    reject_reverse_codec("ReverseCodec::zfp needs a positive tolerance; set it", where);
  }
  if (options.codec_shape.size() > 4 ||
      (!options.codec_shape.empty() && count_in(options.codec_shape) == 0)) {
    reject_reverse_codec("codec_shape has at most four dimensions, none of them 0", where);
  }
  return std::make_unique<ZfpCodec>(options, dtype, header, where);
}
#else
std::unique_ptr<SnapshotCodec> make_zfp_codec(const ReverseOptions&, DType, Bytes,
                                              const Where& where) {
  reject_reverse_codec(
      "this library was built without zfp; install libzfp-dev and build it in a new folder, or use "
      "another codec",
      where);
}
#endif

}  // namespace palimpsest
