// Libraries, functions and pipelines. Nothing is compiled: a function is a name. Its work is done by the translated
// kernel (translated.h), in a library that was compiled beforehand and translated, else by the host kernel that is
// registered for it (host_kernel.h).
#import <Foundation/Foundation.h>

#include <atomic>
#include <cctype>
#include <set>
#include <string>

#include "../engine.h"
#include "host_kernel.h"
#include "metal_objects.h"
#include "translated.h"

using namespace mpsforge::objc;

NSString* const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";

namespace {

std::string text(NSString* string) { return string ? [string UTF8String] : ""; }

void set_error(NSError** error, MTLLibraryError code, const std::string& message) {
  if (!error) return;
  NSDictionary* info = [NSDictionary dictionaryWithObject:[NSString stringWithUTF8String:message.c_str()]
                                                   forKey:NSLocalizedDescriptionKey];
  *error = [NSError errorWithDomain:MTLLibraryErrorDomain code:code userInfo:info];
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether the source has the name as a word.
bool has_word(const std::string& source, const std::string& name) {
  for (size_t at = source.find(name); at != std::string::npos; at = source.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_word(source[at - 1])) && (end == source.size() || !is_word(source[end]))) return true;
  }
  return false;
}

// The names in "kernel void NAME" and in [[host_name("NAME")]], which is how templates are instantiated.
std::set<std::string> kernels_of(const std::string& source) {
  std::set<std::string> names;
  const auto add_word = [&](size_t at) {
    while (at < source.size() && std::isspace(static_cast<unsigned char>(source[at]))) ++at;
    size_t end = at;
    while (end < source.size() && is_word(source[end])) ++end;
    if (end > at) names.insert(source.substr(at, end - at));
  };
  const std::string kernel = "kernel void ", host = "host_name(\"";
  for (size_t at = source.find(kernel); at != std::string::npos; at = source.find(kernel, at + 1)) {
    add_word(at + kernel.size());
  }
  for (size_t at = source.find(host); at != std::string::npos; at = source.find(host, at + 1)) {
    add_word(at + host.size());
  }
  return names;
}

}  // namespace

@interface SoftwareMTLFunction : NSObject <MTLFunction> {
 @public
  SoftwareMTLLibrary* _library;
}
- (instancetype)initWithLibrary:(SoftwareMTLLibrary*)library name:(NSString*)name;
@end

@interface SoftwareMTLLibrary ()
@property(readonly) NSString* source;
@property(readonly) uint64_t number;
@property(readonly) const mpsforge::shaders::Library* translated;
@end

@implementation SoftwareMTLLibrary {
  NSString* _source;
  uint64_t _number;
  const mpsforge::shaders::Library* _translated;
  NSString* _label;
}

- (instancetype)initWithSource:(NSString*)source {
  static std::atomic<uint64_t> made{0};
  self = [super init];
  if (!self) return nil;
  _source = [source copy];
  _number = ++made;
  return self;
}

- (instancetype)initWithSection:(const std::string&)section {
  self = [self initWithSource:nil];
  if (self) _translated = translated_library(section);
  return self;
}

- (void)dealloc {
  [_source release];
  [_label release];
  [super dealloc];
}

- (NSString*)source {
  return _source;
}

- (uint64_t)number {
  return _number;
}

- (const mpsforge::shaders::Library*)translated {
  return _translated;
}

- (id<MTLDevice>)device {
  return [SoftwareMTLDevice shared];
}

- (NSString*)label {
  EngineCall guard;
  return _label;
}

- (void)setLabel:(NSString*)label {
  NSString* made = [label copy];
  EngineCall guard;
  _label = made;
}

- (NSArray<NSString*>*)functionNames {
  NSMutableArray* names = [NSMutableArray array];
  if (_translated) {
    for (uint32_t i = 0; i < _translated->kernel_count; ++i) {
      [names addObject:[NSString stringWithUTF8String:_translated->kernels[i].name]];
    }
  } else if (_source) {
    for (const std::string& name : kernels_of(text(_source))) {
      [names addObject:[NSString stringWithUTF8String:name.c_str()]];
    }
  } else {
    for (const std::string& name : host_kernel_names()) {
      [names addObject:[NSString stringWithUTF8String:name.c_str()]];
    }
  }
  return names;
}

- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
  if (!name) fail("-[SoftwareMTLLibrary newFunctionWithName:] with nil");
  const std::string wanted = text(name);
  if (_translated) {
    return translated_kernel(*_translated, wanted) ? [[SoftwareMTLFunction alloc] initWithLibrary:self name:name] : nil;
  }
  // A name put together by the preprocessor is not in the source as a word; then the host kernel's is believed.
  const bool known = (_source && has_word(text(_source), wanted)) || find_host_kernel(wanted);
  return known ? [[SoftwareMTLFunction alloc] initWithLibrary:self name:name] : nil;
}

- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError**)error {
  if (values) fail("-[SoftwareMTLLibrary newFunctionWithName:constantValues:error:] with constant values");
  if (error) *error = nil;
  id<MTLFunction> made = [self newFunctionWithName:name];
  if (!made) {
    set_error(error, MTLLibraryErrorFunctionNotFound, "the library has no Metal function " + text(name));
  }
  return made;
}

@end

@implementation SoftwareMTLFunction {
  NSString* _name;
  NSString* _label;
}

- (instancetype)initWithLibrary:(SoftwareMTLLibrary*)library name:(NSString*)name {
  self = [super init];
  if (!self) return nil;
  _library = [library retain];
  _name = [name copy];
  return self;
}

- (void)dealloc {
  [_library release];
  [_name release];
  [_label release];
  [super dealloc];
}

- (id<MTLDevice>)device {
  return [SoftwareMTLDevice shared];
}

- (MTLFunctionType)functionType {
  return MTLFunctionTypeKernel;
}

- (NSString*)name {
  return _name;
}

- (NSString*)label {
  EngineCall guard;
  return _label;
}

- (void)setLabel:(NSString*)label {
  NSString* made = [label copy];
  EngineCall guard;
  _label = made;
}

- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index {
  (void)index;
  return [[SoftwareMTLArgumentEncoder alloc] init];
}

@end

@implementation SoftwareMTLComputePipelineState {
  NSString* _label;
}

+ (instancetype)newWithFunction:(id<MTLFunction>)function error:(NSError**)error {
  if (!function) fail("a pipeline state is made without a function");
  if (error) *error = nil;
  SoftwareMTLLibrary* library = ((SoftwareMTLFunction*)function)->_library;
  const std::string name = text(function.name);
  const mpsforge::shaders::Kernel* translated =
      library.translated ? translated_kernel(*library.translated, name) : nullptr;
  const char* kernel = engine_kernel(library.number, text(library.source), name, translated);
  if (!kernel) {
    set_error(error, MTLLibraryErrorUnsupported, "mpsforge has no host kernel for the Metal function " + name);
    return nil;
  }
  SoftwareMTLComputePipelineState* made = [[self alloc] init];
  made->_kernel = kernel;
  made->_label = [function.name copy];
  return made;
}

- (void)dealloc {
  [_label release];
  [super dealloc];
}

- (NSString*)label {
  return _label;
}

- (id<MTLDevice>)device {
  return [SoftwareMTLDevice shared];
}

// As of a simple kernel on any of Apple's GPUs.
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return 1024;
}

- (NSUInteger)threadExecutionWidth {
  return 32;
}

- (NSUInteger)staticThreadgroupMemoryLength {
  return 0;
}

@end
