#pragma once

#import <Metal/Metal.h>

typedef NS_OPTIONS(NSUInteger, MPSKernelOptions) {
  MPSKernelOptionsNone = 0,
  MPSKernelOptionsSkipAPIValidation = 1,
  MPSKernelOptionsAllowReducedPrecision = 2,
  MPSKernelOptionsDisableInternalTiling = 4,
  MPSKernelOptionsInsertDebugGroups = 8,
  MPSKernelOptionsVerbose = 16,
};

// The base of all MPS kernels. Its instances, too, are not to be used by two threads at a time.
@interface MPSKernel : NSObject <NSCopying>
@property(readwrite, nonatomic) MPSKernelOptions options;
@property(readonly, retain, nonatomic) id<MTLDevice> device;
@property(copy, atomic) NSString* label;
- (instancetype)initWithDevice:(id<MTLDevice>)device;
- (instancetype)copyWithZone:(NSZone*)zone device:(id<MTLDevice>)device;
@end

BOOL MPSSupportsMTLDevice(id<MTLDevice> device) __attribute__((weak));
