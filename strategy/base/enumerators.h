#pragma once

#include <initializer_list>

#include "strategy/base/execution_strategy.h"
#include "strategy/base/model.h"

namespace palimpsest {

/// All enumerators of an option of runs, in their order.
template <class E>
inline constexpr std::initializer_list<E> enumerators = {};

template <>
inline constexpr std::initializer_list<ExecutionMode> enumerators<ExecutionMode> = {
    ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid};
template <>
inline constexpr std::initializer_list<GradientMode> enumerators<GradientMode> = {
    GradientMode::none, GradientMode::automatic, GradientMode::full, GradientMode::checkpointed};
template <>
inline constexpr std::initializer_list<ParallelMode> enumerators<ParallelMode> = {
    ParallelMode::none, ParallelMode::automatic, ParallelMode::data_parallel,
    ParallelMode::pipeline, ParallelMode::model_parallel};
template <>
inline constexpr std::initializer_list<AllocationPolicy> enumerators<AllocationPolicy> = {
    AllocationPolicy::minimal_peak, AllocationPolicy::pooled, AllocationPolicy::standard,
    AllocationPolicy::cached};
template <>
inline constexpr std::initializer_list<NativeCode> enumerators<NativeCode> = {
    NativeCode::off, NativeCode::automatic, NativeCode::at_once};
template <>
inline constexpr std::initializer_list<LossReduction> enumerators<LossReduction> = {
    LossReduction::mean, LossReduction::sum};
template <>
inline constexpr std::initializer_list<DType> enumerators<DType> = {
    DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64,
    DType::i32, DType::i16, DType::i8,   DType::u8,  DType::boolean};
template <>
inline constexpr std::initializer_list<PrecisionKind> enumerators<PrecisionKind> = {
    PrecisionKind::full, PrecisionKind::single, PrecisionKind::half, PrecisionKind::mixed};

}  // namespace palimpsest
