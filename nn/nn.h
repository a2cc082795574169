#pragma once

/// Models: named parameters, initializers and layers.

#include "nn/initializers.h"
#include "nn/layers/attention.h"
#include "nn/layers/composition.h"
#include "nn/layers/convolution.h"
#include "nn/layers/embedding.h"
#include "nn/layers/linear.h"
#include "nn/layers/normalization.h"
#include "nn/layers/recurrent.h"
#include "nn/parameters.h"
