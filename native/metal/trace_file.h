// The file of a trace: lines, each of one thread.
#pragma once

#include <mutex>

namespace mpsforge::metal::trace {

// Closes the file and opens another one, or, with NULL, none; mpsforge_metal_trace in metal.h has the rest.
int open(const char* path);
bool is_open();
void flush();

// Of the file, and of what the recorder remembers.
std::mutex& mutex();

// Writes the calling thread's number and the words, if a file is open. The second is for those who hold the mutex.
__attribute__((format(printf, 1, 2))) void line(const char* format, ...);
__attribute__((format(printf, 1, 2))) void line_locked(const char* format, ...);

}  // namespace mpsforge::metal::trace
