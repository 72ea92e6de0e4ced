// The descriptors of operations: plain properties, and what Apple presets.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include "../runtime/runtime.h"

// Of a descriptor with numbers alone.
static id copy_of(id descriptor) {
  return (id)mpsforge::objc::copy_plain(reinterpret_cast<const mpsforge::objc::Object*>(descriptor));
}

@implementation MPSGraphConvolution2DOpDescriptor
- (instancetype)init {
  if ((self = [super init])) {
    _strideInX = 1;
    _strideInY = 1;
    _dilationRateInX = 1;
    _dilationRateInY = 1;
    _groups = 1;
    _weightsLayout = MPSGraphTensorNamedDataLayoutOIHW;
  }
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  return copy_of(self);
}
@end

@implementation MPSGraphConvolution3DOpDescriptor
- (instancetype)init {
  if ((self = [super init])) {
    _strideInX = 1;
    _strideInY = 1;
    _strideInZ = 1;
    _dilationRateInX = 1;
    _dilationRateInY = 1;
    _dilationRateInZ = 1;
    _groups = 1;
    _dataLayout = MPSGraphTensorNamedDataLayoutNCDHW;
    _weightsLayout = MPSGraphTensorNamedDataLayoutOIDHW;
  }
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  return copy_of(self);
}
@end

@implementation MPSGraphDepthwiseConvolution3DOpDescriptor
- (instancetype)init {
  if ((self = [super init])) {
    _channelDimensionIndex = -4;
  }
  return self;
}

- (void)dealloc {
  [_strides release];
  [_dilationRates release];
  [_paddingValues release];
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  MPSGraphDepthwiseConvolution3DOpDescriptor* copy = [[MPSGraphDepthwiseConvolution3DOpDescriptor alloc] init];
  copy.strides = _strides;
  copy.dilationRates = _dilationRates;
  copy.paddingValues = _paddingValues;
  copy.paddingStyle = _paddingStyle;
  copy.channelDimensionIndex = _channelDimensionIndex;
  return copy;
}
@end

@implementation MPSGraphPooling2DOpDescriptor
- (instancetype)init {
  if ((self = [super init])) {
    _returnIndicesDataType = MPSDataTypeInt32;
  }
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  return copy_of(self);
}

+ (instancetype)descriptorWithKernelWidth:(NSUInteger)kernelWidth
                             kernelHeight:(NSUInteger)kernelHeight
                                strideInX:(NSUInteger)strideInX
                                strideInY:(NSUInteger)strideInY
                          dilationRateInX:(NSUInteger)dilationRateInX
                          dilationRateInY:(NSUInteger)dilationRateInY
                              paddingLeft:(NSUInteger)paddingLeft
                             paddingRight:(NSUInteger)paddingRight
                               paddingTop:(NSUInteger)paddingTop
                            paddingBottom:(NSUInteger)paddingBottom
                             paddingStyle:(MPSGraphPaddingStyle)paddingStyle
                               dataLayout:(MPSGraphTensorNamedDataLayout)dataLayout {
  MPSGraphPooling2DOpDescriptor* made = [[[self alloc] init] autorelease];
  made.kernelWidth = kernelWidth;
  made.kernelHeight = kernelHeight;
  made.strideInX = strideInX;
  made.strideInY = strideInY;
  made.dilationRateInX = dilationRateInX;
  made.dilationRateInY = dilationRateInY;
  made.paddingLeft = paddingLeft;
  made.paddingRight = paddingRight;
  made.paddingTop = paddingTop;
  made.paddingBottom = paddingBottom;
  made.paddingStyle = paddingStyle;
  made.dataLayout = dataLayout;
  return made;
}
@end

@implementation MPSGraphRandomOpDescriptor
- (instancetype)init {
  if ((self = [super init])) {
    _max = 1;
    _standardDeviation = 1;
  }
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  return copy_of(self);
}

+ (instancetype)descriptorWithDistribution:(MPSGraphRandomDistribution)distribution dataType:(MPSDataType)dataType {
  MPSGraphRandomOpDescriptor* made = [[[self alloc] init] autorelease];
  made.distribution = distribution;
  made.dataType = dataType;
  return made;
}
@end

@implementation MPSGraphFFTDescriptor
- (id)copyWithZone:(NSZone*)zone {
  return copy_of(self);
}

+ (instancetype)descriptor {
  return [[[self alloc] init] autorelease];
}
@end

@implementation MPSGraphLSTMDescriptor
- (id)copyWithZone:(NSZone*)zone {
  return copy_of(self);
}

+ (instancetype)descriptor {
  return [[[self alloc] init] autorelease];
}
@end
