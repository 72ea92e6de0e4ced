#pragma once

// Prints, as one JSON object, what a dispatch of a translated kernel costs, and how many times as long as loops in C++
// element-wise ones take.
void measure_translated_kernels();
