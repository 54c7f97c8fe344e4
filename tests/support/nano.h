#pragma once

#include "coordinator/engine/loaded_model.h"

namespace tandem::test {

/// The bundled model, loaded once for all tests of a program.
const LoadedModel& loaded_nano();

}  // namespace tandem::test
