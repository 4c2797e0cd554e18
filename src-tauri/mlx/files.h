// Tensors that lie in files: see `files.cpp`.
#pragma once
#include "kernel.h"

namespace ponder {

// Lets an array that joins such tensors read them into its own memory.
void merge_reads(mx::array array);

} // namespace ponder
