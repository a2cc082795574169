#pragma once

#include <cstdint>
#include <vector>

#include "palimpsest.h"

namespace palimpsest::benchmarks {

/// Records a loop of `steps` steps as a user would. Returns its loss, and the parameters.
using RecordLoop = Var (*)(Tape& tape, std::int64_t steps, std::vector<Var>& parameters);
/// The gradients with respect to the same parameters, by an adjoint written by hand, with `states`
/// states held, including the first one.
using GradientByHand = std::vector<Tensor> (*)(std::uint32_t steps, std::uint32_t states);

/// The equations of Lorenz by the classical Runge-Kutta method, f64. A run of 20,000 steps is short
/// enough that rounding errors do not grow. The loss is Σ p² at the end.
namespace lorenz {

constexpr double step_length = 1e-4;
constexpr double sigma = 10;
constexpr double rho = 28;
constexpr double beta = 8. / 3;
constexpr double start[] = {1, 2, 20};

/// The parameters are the start, x, y and z, and σ, ρ and β.
Var record(Tape& tape, std::int64_t steps, std::vector<Var>& parameters);
std::vector<Tensor> gradient_by_hand(std::uint32_t steps, std::uint32_t states);

}  // namespace lorenz

/// Rotating shallow water with friction on a C-grid with periodic edges, f32. First the heights are
/// advanced, then the speeds through the east sides, then those through the north sides. The loss
/// is Σ h² at the end.
namespace shallow_water {

constexpr std::int64_t cells = 64;  ///< along each axis
constexpr float step_length = 0.25F;
constexpr float rotation = 0.1F;
constexpr float friction = 1e-4F;

Tensor start_heights();
/// The parameters are the first heights and the first speeds.
Var record(Tape& tape, std::int64_t steps, std::vector<Var>& parameters);
std::vector<Tensor> gradient_by_hand(std::uint32_t steps, std::uint32_t states);

}  // namespace shallow_water

/// Gray and Scott's reaction and diffusion of u and v with periodic edges, f64. The loss is Σ v² at
/// the end.
namespace gray_scott {

constexpr std::int64_t cells = 256;  ///< along each axis
constexpr double diffusion_u = 0.16;
constexpr double diffusion_v = 0.08;
constexpr double feed = 0.035;
constexpr double kill = 0.065;

Tensor start_u();
Tensor start_v();
/// The parameters are the first u and v, and the rates `feed` and `kill`.
Var record(Tape& tape, std::int64_t steps, std::vector<Var>& parameters);
std::vector<Tensor> gradient_by_hand(std::uint32_t steps, std::uint32_t states);

}  // namespace gray_scott

/// An LSTM cell, f32, that reads a sequence. The loss is the sum of h² of all steps.
namespace lstm {

constexpr std::int64_t width = 32;  ///< of x, h and c

Tensor sequence(std::int64_t steps);
Tensor input_weight();
Tensor hidden_weight();
Tensor bias();
/// The parameters are both weights and the bias.
Var record(Tape& tape, std::int64_t steps, std::vector<Var>& parameters);
std::vector<Tensor> gradient_by_hand(std::uint32_t steps, std::uint32_t states);

}  // namespace lstm

}  // namespace palimpsest::benchmarks
