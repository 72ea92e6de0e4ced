#ifndef MPSFORGE_NATIVE_OBJC_TESTS_SHADERS_BENCH_H
#define MPSFORGE_NATIVE_OBJC_TESTS_SHADERS_BENCH_H

// Prints, as one JSON object, what a dispatch of a translated kernel costs, and how many times as long as loops in C++
// element-wise ones take.
void measure_translated_kernels();

#endif
