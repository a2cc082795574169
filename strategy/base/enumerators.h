#pragma once

#include <initializer_list>

#include "autodiff/enumerators.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/base/model.h"

namespace palimpsest {

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
inline constexpr std::initializer_list<PrecisionKind> enumerators<PrecisionKind> = {
    PrecisionKind::full, PrecisionKind::single, PrecisionKind::half, PrecisionKind::mixed};

}  // namespace palimpsest
