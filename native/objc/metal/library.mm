// Libraries, functions and pipelines. A function is a name. Its work is done by the translated kernel (translated.h),
// in a library that was compiled beforehand and translated, or is compiled from source; else by the host kernel that is
// registered for it (host_kernel.h).
#import <Foundation/Foundation.h>

#include <atomic>
#include <string>

#include "../engine.h"
#include "../record.h"
#include "host_kernel.h"
#include "metal_objects.h"
#include "source_library.h"
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

}  // namespace

@interface SoftwareMTLFunction : SoftwareMTLSharedObject <MTLFunction> {
 @public
  SoftwareMTLLibrary* _library;
}
- (instancetype)initWithLibrary:(SoftwareMTLLibrary*)library name:(NSString*)name;
@end

@interface SoftwareMTLLibrary ()
@property(readonly) uint64_t number;
@property(readonly) Translated translated;
@end

@implementation SoftwareMTLLibrary {
  uint64_t _number;
  Translated _translated;
}

- (instancetype)init {
  static std::atomic<uint64_t> made{0};
  self = [super init];
  if (self) {
    _number = ++made;
    record("make library");
  }
  return self;
}

- (instancetype)initWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error {
  self = [self init];
  if (!self) return nil;
  mpsforge::msl::Macros macros;
  for (NSString* name in options.preprocessorMacros) {
    macros.push_back({text(name), text([[options.preprocessorMacros objectForKey:name] description])});
  }
  std::string problem;
  _translated = source_library(text(source), macros, problem);
  if (_translated.library) return self;
  set_error(error, MTLLibraryErrorCompileFailure, problem);
  [self release];
  return nil;
}

- (instancetype)initWithSection:(const std::string&)section {
  self = [self init];
  if (self) _translated = translated_library(section);
  return self;
}

- (uint64_t)number {
  return _number;
}

- (Translated)translated {
  return _translated;
}

- (NSArray<NSString*>*)functionNames {
  NSMutableArray* names = [NSMutableArray array];
  if (_translated.library) {
    for (uint32_t i = 0; i < _translated.library->kernel_count; ++i) {
      [names addObject:[NSString stringWithUTF8String:_translated.library->kernels[i].name]];
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
  const bool known = _translated.library ? translated_kernel(_translated, wanted).kernel != nullptr
                                         : find_host_kernel(wanted) != nullptr;
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
}

- (instancetype)initWithLibrary:(SoftwareMTLLibrary*)library name:(NSString*)name {
  self = [super init];
  if (!self) return nil;
  _library = [library retain];
  _name = [name copy];
  record("make function " + text(name));
  return self;
}

- (void)dealloc {
  [_library release];
  [_name release];
  [super dealloc];
}

- (MTLFunctionType)functionType {
  return MTLFunctionTypeKernel;
}

- (NSString*)name {
  return _name;
}

- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index {
  return [[SoftwareMTLArgumentEncoder alloc] init];
}

@end

@implementation SoftwareMTLComputePipelineState

+ (instancetype)newWithFunction:(id<MTLFunction>)function error:(NSError**)error {
  if (!function) fail("a pipeline state is made without a function");
  if (error) *error = nil;
  SoftwareMTLLibrary* library = ((SoftwareMTLFunction*)function)->_library;
  const std::string name = text(function.name);
  const TranslatedKernel translated =
      library.translated.library ? translated_kernel(library.translated, name) : TranslatedKernel{};
  const char* kernel = engine_kernel(library.number, name, translated);
  if (!kernel) {
    set_error(error, MTLLibraryErrorUnsupported, "mpsforge has no host kernel for the Metal function " + name);
    return nil;
  }
  SoftwareMTLComputePipelineState* made = [[self alloc] init];
  made->_kernel = kernel;
  made->_label = [function.name copy];
  record("make pipeline " + name);
  return made;
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
