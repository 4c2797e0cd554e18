/* What mlx-c expects of the platform and a Linux x86-64 with GCC 12 does not have. Included before every file of mlx-c. */
#pragma once
#include <stdint.h>
#if !defined(__ARM_FEATURE_FP16_SCALAR_ARITHMETIC) && !defined(__aarch64__)
/* The accessors of half values only move the bits, so sixteen unsigned bits will do. */
#define HAS_FLOAT16
#define HAS_BFLOAT16
typedef uint16_t float16_t;
typedef uint16_t bfloat16_t;
#endif
#ifdef __cplusplus
#include <version>
#ifndef __cpp_lib_format
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>
namespace std {
using fmt::format;
}
#endif
#endif
