// Objective-C exceptions are C++ exceptions of a type of ours, as they are on macOS: catch (...),
// std::current_exception and destructors treat them like any other.
//
// The objfw ABI names this personality for every function of an Objective-C++ file. Frames without @catch are handed to
// the C++ one. In a table with @catch clauses some entries are the names of classes, which C++ would take for
// type_info: those frames are matched here.
#include <cxxabi.h>
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

#include "runtime.h"

extern "C" {
mpsforge_imp objc_msg_lookup(mpsforge::objc::Object* receiver, mpsforge::objc::Selector* selector);
_Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
                                         _Unwind_Exception* exception, _Unwind_Context* context);
void objc_exception_throw(mpsforge::objc::Object* object);
}

namespace mpsforge::objc {
namespace {

Object* send(Object* receiver, const char* name) {
  Selector selector{{intern(name)}, nullptr};
  return reinterpret_cast<Object* (*)(Object*, Selector*)>(objc_msg_lookup(receiver, &selector))(receiver, &selector);
}

// What is thrown in C++ terms.
struct Thrown {
  explicit Thrown(Object* object) : object(object) { send(object, "retain"); }
  Thrown(const Thrown& other) : Thrown(other.object) {}
  Thrown& operator=(const Thrown&) = delete;
  ~Thrown() { send(object, "release"); }
  Object* object;
};

constexpr _Unwind_Exception_Class kCxxClass = 0x474e5543432b2b00;  // "GNUCC++\0"

// std::rethrow_exception throws a stand-in, whose class differs in the last byte.
bool is_stand_in(const _Unwind_Exception* exception) { return exception->exception_class & 1; }
bool is_cxx(_Unwind_Exception_Class exception_class) {
  return (exception_class & ~_Unwind_Exception_Class{1}) == kCxxClass;
}

// The Itanium C++ ABI puts a header before the unwinder's, whose first member, ten pointers away, is the type, or the
// true object if it is a stand-in; its last is the pointer to the object as the handler sees it. The object follows.
void* first_member(_Unwind_Exception* exception) { return reinterpret_cast<void**>(exception)[-10]; }

void* thrown_object(_Unwind_Exception* exception) {
  return is_stand_in(exception) ? first_member(exception) : exception + 1;
}

const std::type_info* thrown_type(_Unwind_Exception* exception) {
  auto* original = static_cast<_Unwind_Exception*>(thrown_object(exception)) - 1;
  return static_cast<const std::type_info*>(first_member(original));
}

void set_adjusted_pointer(_Unwind_Exception* exception, void* pointer) {
  reinterpret_cast<void**>(exception)[-1] = pointer;
}

uint64_t read_uleb(const unsigned char*& at) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const unsigned char byte = *at++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
}

int64_t read_sleb(const unsigned char*& at) {
  uint64_t value = 0;
  unsigned shift = 0;
  unsigned char byte = 0;
  do {
    byte = *at++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
  } while (byte & 0x80);
  if (shift < 64 && (byte & 0x40)) value |= ~uint64_t{0} << shift;
  return static_cast<int64_t>(value);
}

template <typename T>
T read_raw(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A pointer in one of DWARF's encodings (DW_EH_PE): the low bits its form, the next what it is relative to.
uintptr_t read_encoded(const unsigned char*& at, unsigned char encoding) {
  if (encoding == 0xff) return 0;
  const unsigned char* start = at;
  uintptr_t value = 0;
  switch (encoding & 0x0f) {
    case 0x01:
      value = read_uleb(at);
      break;
    case 0x00:
    case 0x04:
    case 0x0c:
      value = read_raw<uint64_t>(at);
      at += 8;
      break;
    case 0x03:
      value = read_raw<uint32_t>(at);
      at += 4;
      break;
    case 0x0b:
      value = static_cast<uintptr_t>(static_cast<intptr_t>(read_raw<int32_t>(at)));
      at += 4;
      break;
    default:
      std::fprintf(stderr, "mpsforge: unknown pointer encoding 0x%x in an exception table\n", encoding);
      std::abort();
  }
  if (value != 0 && (encoding & 0x70) == 0x10) value += reinterpret_cast<uintptr_t>(start);
  if (value != 0 && (encoding & 0x80)) value = *reinterpret_cast<uintptr_t*>(value);
  return value;
}

size_t encoded_size(unsigned char encoding) {
  const unsigned form = encoding & 0x07;
  return form == 0x03 ? 4 : 8;
}

// One frame's part of the table: where its landing pad is and which clauses it has.
struct Frame {
  uintptr_t landing_pad = 0;
  const unsigned char* action = nullptr;  // NULL: only a cleanup
  const unsigned char* types = nullptr;
  unsigned char type_encoding = 0xff;
};

Frame find_frame(_Unwind_Context* context) {
  Frame frame;
  auto* at = reinterpret_cast<const unsigned char*>(_Unwind_GetLanguageSpecificData(context));
  if (!at) return frame;
  const uintptr_t function = _Unwind_GetRegionStart(context);
  int before = 0;
  uintptr_t instruction = _Unwind_GetIPInfo(context, &before);
  if (!before) --instruction;
  const unsigned char start_encoding = *at++;
  const uintptr_t start = start_encoding == 0xff ? function : read_encoded(at, start_encoding);
  frame.type_encoding = *at++;
  if (frame.type_encoding != 0xff) {
    const uint64_t distance = read_uleb(at);
    frame.types = at + distance;
  }
  const unsigned char call_encoding = *at++;
  const uint64_t length = read_uleb(at);
  const unsigned char* actions = at + length;
  while (at < actions) {
    const uintptr_t begin = read_encoded(at, call_encoding);
    const uintptr_t size = read_encoded(at, call_encoding);
    const uintptr_t pad = read_encoded(at, call_encoding);
    const uint64_t action = read_uleb(at);
    if (instruction < function + begin || instruction >= function + begin + size) continue;
    if (pad) frame.landing_pad = start + pad;
    if (action) frame.action = actions + action - 1;
    break;
  }
  return frame;
}

const void* clause(const Frame& frame, int64_t filter) {
  const unsigned char* at = frame.types - static_cast<size_t>(filter) * encoded_size(frame.type_encoding);
  return reinterpret_cast<const void*>(read_encoded(at, frame.type_encoding));
}

// A type_info begins with a pointer, whose upper bytes are those of an address of this process; a name of a class does
// not read like one.
bool is_class_name(const void* entry) {
  if (!entry) return false;
  const auto* name = static_cast<const char*>(entry);
  return std::strcmp(name, "@id") == 0 || find_class(name);
}

template <typename Function>
void each_clause(const Frame& frame, Function function) {
  for (const unsigned char* at = frame.action; at;) {
    const int64_t filter = read_sleb(at);
    const unsigned char* here = at;
    const int64_t distance = read_sleb(at);
    if (function(filter)) return;
    at = distance ? here + distance : nullptr;
  }
}

bool has_class_names(const Frame& frame) {
  bool found = false;
  each_clause(frame, [&](int64_t filter) { return found = filter > 0 && is_class_name(clause(frame, filter)); });
  return found;
}

struct Match {
  int64_t filter = 0;  // 0: none
  bool cleanup = false;
  Object* object = nullptr;  // of a clause with a class
  void* adjusted = nullptr;  // of a clause of C++
};

bool is_kind_of(Object* object, const char* name) {
  if (std::strcmp(name, "@id") == 0) return true;
  const Class* wanted = find_class(name);
  for (const Class* cls = object->isa; cls; cls = cls->superclass) {
    if (cls == wanted) return true;
  }
  return false;
}

Match match(const Frame& frame, _Unwind_Exception* exception) {
  Match result;
  const std::type_info* type = thrown_type(exception);
  Object* object = *type == typeid(Thrown) ? static_cast<Thrown*>(thrown_object(exception))->object : nullptr;
  each_clause(frame, [&](int64_t filter) {
    if (filter == 0) result.cleanup = true;
    if (filter <= 0) return false;
    const void* entry = clause(frame, filter);
    bool matches = false;
    if (!entry) {
      matches = true;
    } else if (is_class_name(entry)) {
      if ((matches = object && is_kind_of(object, static_cast<const char*>(entry)))) result.object = object;
    } else {
      void* adjusted = thrown_object(exception);
      // A pointer is caught by its value.
      if (dynamic_cast<const abi::__pointer_type_info*>(type)) adjusted = *static_cast<void**>(adjusted);
      matches = static_cast<const std::type_info*>(entry)->__do_catch(type, &adjusted, 1);
      if (matches) result.adjusted = adjusted;
    }
    if (matches) result.filter = filter;
    return matches;
  });
  return result;
}

_Unwind_Reason_Code install(_Unwind_Context* context, const Frame& frame, void* value, int64_t filter) {
  _Unwind_SetGR(context, __builtin_eh_return_data_regno(0), reinterpret_cast<_Unwind_Word>(value));
  _Unwind_SetGR(context, __builtin_eh_return_data_regno(1), static_cast<_Unwind_Word>(filter));
  _Unwind_SetIP(context, frame.landing_pad);
  return _URC_INSTALL_CONTEXT;
}

// The landing pad of a clause with a class wants the object; nothing ends the C++ exception later, so it ends now.
void* take_object(_Unwind_Exception* exception, Object* object) {
  send(send(object, "retain"), "autorelease");
  abi::__cxa_begin_catch(exception);
  abi::__cxa_end_catch();
  return object;
}

// Rethrows what is in flight: @finally and @throw; hand over the exception as C++ knows it.
[[noreturn]] void throw_again(_Unwind_Exception* exception) {
  struct End {
    ~End() { abi::__cxa_end_catch(); }
  } end;
  abi::__cxa_begin_catch(exception);
  throw;
}

std::terminate_handler previous_handler = nullptr;

const char* text_of(Object* object, const char* name) {
  Object* text = send(object, name);
  return text ? reinterpret_cast<const char*>(send(text, "UTF8String")) : "";
}

void terminated() {
  try {
    if (std::current_exception()) throw;
  } catch (const Thrown& thrown) {
    static const char* const kRespond[] = {"name", "reason"};
    const bool named =
        find_method(thrown.object->isa, intern(kRespond[0])) && find_method(thrown.object->isa, intern(kRespond[1]));
    std::fprintf(stderr, "*** Terminating process due to uncaught exception '%s', reason: '%s'\n",
                 named ? text_of(thrown.object, "name") : thrown.object->isa->name,
                 named ? text_of(thrown.object, "reason") : "");
    std::abort();
  } catch (...) {
  }
  if (previous_handler) previous_handler();
  std::abort();
}

__attribute__((constructor)) void watch_termination() { previous_handler = std::set_terminate(terminated); }

}  // namespace
}  // namespace mpsforge::objc

extern "C" {

void objc_exception_throw(mpsforge::objc::Object* object) {
  using namespace mpsforge::objc;
  if (!object) {
    std::fprintf(stderr, "mpsforge: nil is thrown\n");
    std::abort();
  }
  // An exception of C++ that @finally hands on begins with its class instead of an isa.
  auto* exception = reinterpret_cast<_Unwind_Exception*>(object);
  if (is_cxx(exception->exception_class)) throw_again(exception);
  throw Thrown(object);
}

_Unwind_Reason_Code __gnu_objc_personality_v0(int version, _Unwind_Action actions,
                                              _Unwind_Exception_Class exception_class, _Unwind_Exception* exception,
                                              _Unwind_Context* context) {
  using namespace mpsforge::objc;
  const Frame frame = find_frame(context);
  if (!is_cxx(exception_class) || !frame.action || !has_class_names(frame)) {
    return __gxx_personality_v0(version, actions, exception_class, exception, context);
  }
  Match found = match(frame, exception);
  if (actions & _UA_FORCE_UNWIND) found.filter = 0;
  if (actions & _UA_SEARCH_PHASE) return found.filter ? _URC_HANDLER_FOUND : _URC_CONTINUE_UNWIND;
  if (!(actions & _UA_HANDLER_FRAME)) found.filter = 0;
  if (found.filter == 0) {
    return found.cleanup ? install(context, frame, exception, 0) : _URC_CONTINUE_UNWIND;
  }
  if (found.object) return install(context, frame, take_object(exception, found.object), found.filter);
  set_adjusted_pointer(exception, found.adjusted ? found.adjusted : thrown_object(exception));
  return install(context, frame, exception, found.filter);
}

}  // extern "C"
