// The runtime as the rest of the Objective-C layer uses it.
#pragma once

#include "structures.h"

namespace mpsforge::objc {

// The one text of a selector's name.
const char* intern(const char* name);

// Puts superclass, sizes and offsets in place. Aborts if the superclass is not loaded.
void resolve(Class* cls);
// NULL if there is none of the name.
Class* find_class(const char* name);

// NULL if the class does not have the method.
mpsforge_imp find_method(Class* cls, const char* interned_name);

// The macOS, as 100 * major + minor, that first has a class, or a method of it, if that is newer than the one that the
// process finds (MPSFORGE_METAL_MACOS); else 0. Methods so new are in no table, and classes so new have none at all.
unsigned newer_class(const Class* cls);
unsigned newer_method(const Class* cls, const char* name);
// Says on standard error that the macOS is too old for the method, if it is.
void tell_version(const Class* cls, const char* name);

// The compiled types of a method, its result first; NULL if the class does not have it.
const char* method_types(Class* cls, const char* name);

// Zeroed memory with a header, the class in place and its C++ variables constructed.
Object* allocate(Class* cls, size_t extra_bytes);
// A new instance of the object's class with the same variables, none of which may be an object or C++.
Object* copy_plain(const Object* object);
// Destroys the C++ variables and frees the memory, or keeps it if MPSFORGE_OBJC_ZOMBIES=1. From then on a message to
// the object aborts with its class, unless the memory has been used again.
void destroy(Object* object);

// Atomic properties: the object, retained; the object that was there before; a structure.
Object* atomic_get(Object** at);
Object* atomic_exchange(Object** at, Object* value);
void atomic_copy(void* to, const void* from, size_t size, const void* property);

[[noreturn]] void unrecognized_selector(const Object* receiver, const char* selector);

// Held while classes are changed; recursive. Not a mutex of the system: ThreadSanitizer must not see it.
class RuntimeLock {
 public:
  RuntimeLock();
  ~RuntimeLock();
  RuntimeLock(const RuntimeLock&) = delete;
  RuntimeLock& operator=(const RuntimeLock&) = delete;
};

}  // namespace mpsforge::objc
