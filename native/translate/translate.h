// Makes code for this machine of LLVM's code of Metal kernels: fork/hostbuild/shaders runs it on what PyTorch's wheel
// has. What is not understood is an error, never left as it is.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <stdexcept>

namespace mpsforge::translate {

struct Error : std::runtime_error {
  explicit Error(const llvm::Twine& what) : std::runtime_error(what.str()) {}
};

// Calls a function of access.cc or runtime.cc, or of C, which is declared as the values are. Of one that waits the
// compiler must know that it cannot be moved into a branch.
llvm::Value* call(llvm::IRBuilder<>& b, const llvm::Twine& name, llvm::Type* result,
                  llvm::ArrayRef<llvm::Value*> values, bool waits = false);

// A call of a function of Metal.
struct MetalCall {
  llvm::IRBuilder<>& b;  // where its code goes
  llvm::StringRef name;  // without "air."
  llvm::Type* result;
  llvm::SmallVector<llvm::Value*> values;
  llvm::Value* run;
  llvm::Value* place;  // a number that no other call has
};

// Whether a function of Metal has threads wait for others.
bool waits(llvm::StringRef name);

// Writes the code of a call and returns its value, which is nullptr of one that has none.
llvm::Value* metal_function(const MetalCall& call);

}  // namespace mpsforge::translate
