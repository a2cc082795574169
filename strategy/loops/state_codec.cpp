#include "strategy/loops/state_codec.h"

namespace palimpsest {
namespace {

std::vector<ValueType> encoded(std::span<const ValueType> types, Codec codec) {
  std::vector<ValueType> made(types.begin(), types.end());
  for (ValueType& type : made) type.dtype = stored_dtype(type.dtype, codec);
  return made;
}

}  // namespace

StateCodec::StateCodec(std::span<const ValueType> types, Codec codec)
    : codec_(codec), state_(types), block_(encoded(types, codec)) {
  for (const ValueType& type : types) {
    const DType kept = stored_dtype(type.dtype, codec);
    dtypes_.push_back(type.dtype);
    record_.push_back({type.shape.elements() * size_of(kept), kept});
  }
}

void StateCodec::encode(const Addresses& state, const Addresses& held) const {
  if (is_exact()) return state_.copy(state, held);
  for (std::size_t i = 0; i < dtypes_.size(); ++i) {
    palimpsest::encode({state[i], static_cast<std::size_t>(state_.sizes[i])}, dtypes_[i], codec_,
                       {held[i], static_cast<std::size_t>(block_.sizes[i])});
  }
}

void StateCodec::decode(const Addresses& held, const Addresses& state) const {
  if (is_exact()) return state_.copy(held, state);
  for (std::size_t i = 0; i < dtypes_.size(); ++i) {
    palimpsest::decode({held[i], static_cast<std::size_t>(block_.sizes[i])}, dtypes_[i], codec_,
                       {state[i], static_cast<std::size_t>(state_.sizes[i])});
  }
}

}  // namespace palimpsest
