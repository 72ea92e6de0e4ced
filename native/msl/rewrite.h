// Makes C++ of a shader's source, which the preprocessor has been through. The rule:
//  - [[...]] with Metal's attributes only is taken out. [[host_name("x")]] names the kernel, [[kernel]] is as the word,
//    and those of a kernel's parameters become template arguments of the kernel's entry (mpsforge/kernel.h). What else
//    a parameter is comes from its type, which the compiler knows.
//  - The word kernel is taken out. After a kernel's body, and after an explicit instantiation of one that is a
//    template, its entry is put in, on the same line. A template's attributes are those of its definition.
//  - The word threadgroup is taken out; of a variable in a function, which all threads of a threadgroup share, it
//    becomes static thread_local: these threads take turns on one thread of the CPU.
// device and thread are macros of nothing, and constant is one of const. Lines stay what they are.
#pragma once

#include <string>

namespace mpsforge::msl {

struct Rewritten {
  std::string text;
  std::string error;  // with its line, as the compiler would write it; empty: none
};

// What comes from files below headers is left alone; other files' text is refused.
Rewritten rewrite(const std::string& preprocessed, const std::string& headers);

}  // namespace mpsforge::msl
