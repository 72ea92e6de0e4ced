// The structures that clang lays out for the objfw ABI, and the object header that is ours.
//
// Everything in this folder is compiled without ThreadSanitizer: a message send neither is an access nor orders
// threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

extern "C" {
typedef void (*mpsforge_imp)(void);
}

namespace mpsforge::objc {

struct Class;
struct Table;

struct Object {
  Class* isa;
};

// A compiled selector. The runtime replaces the name by the one text that all selectors of that name share.
struct Selector {
  std::atomic<const char*> name;
  const char* types;
};

struct Method {
  const char* name;
  const char* types;
  mpsforge_imp function;
};

struct MethodList {
  MethodList* next;
  int count;
  Method methods[1];
};

struct Ivar {
  const char* name;
  const char* type;
  int offset;  // compiled: from the superclass's end
};

struct IvarList {
  int count;
  Ivar ivars[1];
};

struct ProtocolList;

struct Protocol {
  void* isa;
  const char* name;
  ProtocolList* protocols;
  void* unused[6];  // methods and properties: not looked at
};

struct ProtocolList {
  ProtocolList* next;
  long count;
  Protocol* protocols[1];
};

// Bits of Class::info. The compiler sets the first three, we the others.
enum : unsigned long {
  kClass = 0x1,
  kMetaclass = 0x2,
  kNewLayout = 0x10,
  kResolved = 0x100,     // superclass and offsets are in place
  kInitialized = 0x200,  // +initialize has begun
  kFreed = 0x400,        // the class of freed objects
  kConstructs = 0x800,   // it or a class above has C++ variables
};

struct Class {
  Class* isa;
  Class* superclass;  // compiled: its name
  const char* name;
  long version;
  std::atomic<unsigned long> info;
  long instance_size;  // compiled: minus the size of the own variables
  IvarList* ivars;
  MethodList* methods;
  std::atomic<const Table*> table;
  std::atomic<Class*> freed_twin;  // compiled as subclass_list, which we have no use for
  Class* sibling;
  ProtocolList* protocols;
  void* gc_object_type;
  long abi_version;
  int** ivar_offsets;
  void* properties;
  long strong_pointers;
  long weak_pointers;
};

struct Category {
  const char* name;
  const char* class_name;
  MethodList* instance_methods;
  MethodList* class_methods;
  ProtocolList* protocols;
};

struct SymbolTable {
  unsigned long selector_count;
  Selector* selectors;  // ends with a null name
  unsigned short class_count;
  unsigned short category_count;
  void* definitions[1];  // classes, then categories
};

struct Module {
  unsigned long version;
  unsigned long size;
  const char* name;
  SymbolTable* symbols;
};

struct Super {
  Object* self;
  Class* superclass;
};

// In front of every object that was allocated; constant strings and classes have none.
struct alignas(16) Header {
  std::atomic<long> extra_references;  // beyond the first
  unsigned long state;                 // of foundation's reference counting
};

inline Header* header(void* object) { return static_cast<Header*>(object) - 1; }

}  // namespace mpsforge::objc
