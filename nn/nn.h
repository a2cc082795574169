#pragma once

/// Models: named parameters, initializers and layers.

#include "nn/attention.h"
#include "nn/composition.h"
#include "nn/convolution.h"
#include "nn/embedding.h"
#include "nn/initializers.h"
#include "nn/linear.h"
#include "nn/normalization.h"
#include "nn/parameters.h"
#include "nn/recurrent.h"
