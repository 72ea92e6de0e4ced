// Captures: Metal's states of them are kept, and no document is ever written.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "../engine.h"

using namespace mpsforge::objc;

NSString* const MTLCaptureErrorDomain = @"MTLCaptureErrorDomain";

namespace {

std::mutex& capture_mutex() {
  static std::mutex* const made = new std::mutex();
  return *made;
}

BOOL refuse(NSError** error, MTLCaptureError code, NSString* message) {
  if (error) {
    *error = [NSError errorWithDomain:MTLCaptureErrorDomain
                                 code:code
                             userInfo:[NSDictionary dictionaryWithObject:message forKey:NSLocalizedDescriptionKey]];
  }
  return NO;
}

}  // namespace

@implementation MTLCaptureDescriptor

- (instancetype)init {
  self = [super init];
  if (self) self.destination = MTLCaptureDestinationDeveloperTools;
  return self;
}

- (void)dealloc {
  self.captureObject = nil;
  self.outputURL = nil;
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  MTLCaptureDescriptor* made = [[MTLCaptureDescriptor alloc] init];
  made.captureObject = self.captureObject;
  made.destination = self.destination;
  made.outputURL = self.outputURL;
  return made;
}

@end

@interface SoftwareMTLCaptureScope : NSObject <MTLCaptureScope>
@end

@implementation SoftwareMTLCaptureScope
@synthesize label = _label;

- (void)dealloc {
  self.label = nil;
  [super dealloc];
}

- (void)beginScope {
}

- (void)endScope {
}

@end

@implementation MTLCaptureManager {
  BOOL _capturing;
}

+ (MTLCaptureManager*)sharedCaptureManager {
  static MTLCaptureManager* const made = [[MTLCaptureManager alloc] init];
  return made;
}

- (BOOL)isCapturing {
  EngineCall guard;
  std::lock_guard<std::mutex> lock(capture_mutex());
  return _capturing;
}

// Documents are supported where the variable of the real framework says so.
- (BOOL)supportsDestination:(MTLCaptureDestination)destination {
  const char* enabled = std::getenv("MTL_CAPTURE_ENABLED");
  return destination == MTLCaptureDestinationGPUTraceDocument && enabled && std::strcmp(enabled, "1") == 0;
}

- (BOOL)startCaptureWithDescriptor:(MTLCaptureDescriptor*)descriptor error:(NSError**)error {
  if (error) *error = nil;
  if (!descriptor || !descriptor.captureObject) {
    return refuse(error, MTLCaptureErrorInvalidDescriptor, @"a capture needs an object to capture");
  }
  if (![self supportsDestination:descriptor.destination]) {
    return refuse(error, MTLCaptureErrorNotSupported, @"captures are off: set MTL_CAPTURE_ENABLED=1");
  }
  bool started;
  {
    EngineCall guard;
    std::lock_guard<std::mutex> lock(capture_mutex());
    started = !_capturing;
    _capturing = YES;
  }
  return started || refuse(error, MTLCaptureErrorAlreadyCapturing, @"a capture is under way");
}

- (void)stopCapture {
  EngineCall guard;
  std::lock_guard<std::mutex> lock(capture_mutex());
  _capturing = NO;
}

- (id<MTLCaptureScope>)newCaptureScopeWithCommandQueue:(id<MTLCommandQueue>)queue {
  return [[SoftwareMTLCaptureScope alloc] init];
}

- (id<MTLCaptureScope>)newCaptureScopeWithDevice:(id<MTLDevice>)device {
  return [[SoftwareMTLCaptureScope alloc] init];
}

@end
