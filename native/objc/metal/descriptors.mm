// The classes that only hold what a program sets, and the base class of kernels.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MPSKernel.h>

#include "../engine.h"

@implementation MTLHeapDescriptor {
  MTLResourceOptions _resourceOptions;
}

// Apple's page of storageMode: "The default value is MTLStorageMode.private."
- (instancetype)init {
  self = [super init];
  if (self) _resourceOptions = MTLResourceStorageModePrivate;
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  MTLHeapDescriptor* made = [[MTLHeapDescriptor alloc] init];
  made.size = self.size;
  made.resourceOptions = self.resourceOptions;
  made.type = self.type;
  return made;
}

- (void)put:(NSUInteger)mode shift:(NSUInteger)shift mask:(NSUInteger)mask {
  _resourceOptions = (_resourceOptions & ~mask) | (mode << shift);
}

- (MTLStorageMode)storageMode {
  return static_cast<MTLStorageMode>((_resourceOptions & MTLResourceStorageModeMask) >> MTLResourceStorageModeShift);
}

- (void)setStorageMode:(MTLStorageMode)mode {
  [self put:mode shift:MTLResourceStorageModeShift mask:MTLResourceStorageModeMask];
}

- (MTLCPUCacheMode)cpuCacheMode {
  return static_cast<MTLCPUCacheMode>((_resourceOptions & MTLResourceCPUCacheModeMask) >> MTLResourceCPUCacheModeShift);
}

- (void)setCpuCacheMode:(MTLCPUCacheMode)mode {
  [self put:mode shift:MTLResourceCPUCacheModeShift mask:MTLResourceCPUCacheModeMask];
}

- (MTLHazardTrackingMode)hazardTrackingMode {
  return static_cast<MTLHazardTrackingMode>((_resourceOptions & MTLResourceHazardTrackingModeMask) >>
                                            MTLResourceHazardTrackingModeShift);
}

- (void)setHazardTrackingMode:(MTLHazardTrackingMode)mode {
  [self put:mode shift:MTLResourceHazardTrackingModeShift mask:MTLResourceHazardTrackingModeMask];
}

- (MTLResourceOptions)resourceOptions {
  return _resourceOptions;
}

- (void)setResourceOptions:(MTLResourceOptions)options {
  _resourceOptions = options;
}

@end

@implementation MTLCompileOptions

- (instancetype)init {
  self = [super init];
  if (self) {
    self.languageVersion = MTLLanguageVersion3_1;
    self.fastMathEnabled = YES;
    _mathMode = MTLMathModeFast;  // not every macOS has the property
  }
  return self;
}

- (void)dealloc {
  self.preprocessorMacros = nil;
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  MTLCompileOptions* made = [[MTLCompileOptions alloc] init];
  made.preprocessorMacros = self.preprocessorMacros;
  made.languageVersion = self.languageVersion;
  made.fastMathEnabled = self.fastMathEnabled;
  made->_mathMode = _mathMode;
  made->_mathFloatingPointFunctions = _mathFloatingPointFunctions;
  return made;
}

@end

@implementation MTLFunctionConstantValues

- (id)copyWithZone:(NSZone*)zone {
  return [[MTLFunctionConstantValues alloc] init];
}

@end

@implementation MTLComputePipelineDescriptor

- (void)dealloc {
  self.label = nil;
  self.computeFunction = nil;
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  MTLComputePipelineDescriptor* made = [[MTLComputePipelineDescriptor alloc] init];
  made.label = self.label;
  made.computeFunction = self.computeFunction;
  made.threadGroupSizeIsMultipleOfThreadExecutionWidth = self.threadGroupSizeIsMultipleOfThreadExecutionWidth;
  made.maxTotalThreadsPerThreadgroup = self.maxTotalThreadsPerThreadgroup;
  return made;
}

@end

@implementation MTLComputePipelineReflection
@end

@implementation MPSKernel {
  id<MTLDevice> _device;
}

- (instancetype)initWithDevice:(id<MTLDevice>)device {
  self = [super init];
  if (self) _device = [device retain];
  return self;
}

- (void)dealloc {
  self.label = nil;
  [_device release];
  [super dealloc];
}

- (id<MTLDevice>)device {
  return _device;
}

- (id)copyWithZone:(NSZone*)zone {
  return [self copyWithZone:zone device:_device];
}

- (instancetype)copyWithZone:(NSZone*)zone device:(id<MTLDevice>)device {
  if ([self class] != [MPSKernel class]) {
    mpsforge::objc::fail("-[%s copyWithZone:device:] is not implemented", [NSStringFromClass([self class]) UTF8String]);
  }
  return [[MPSKernel alloc] initWithDevice:device];
}

@end

BOOL MPSSupportsMTLDevice(id<MTLDevice> device) { return [device supportsFamily:MTLGPUFamilyMac2]; }
