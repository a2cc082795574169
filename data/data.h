#pragma once

/// Everything for feeding data to training and for following it. Include it in addition to
/// `palimpsest.h`.
#include "data/batch.h"
#include "data/csv_dataset.h"
#include "data/data_loader.h"
#include "data/dataset.h"
#include "data/mapped_dataset.h"
#include "data/metrics.h"
#include "data/npy.h"
#include "data/progress_bar.h"
