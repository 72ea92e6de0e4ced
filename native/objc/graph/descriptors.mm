// The descriptors of operations: plain properties, and what Apple presets.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

@implementation MPSGraphConvolution2DOpDescriptor
@synthesize strideInX = _strideInX;
@synthesize strideInY = _strideInY;
@synthesize dilationRateInX = _dilationRateInX;
@synthesize dilationRateInY = _dilationRateInY;
@synthesize paddingLeft = _paddingLeft;
@synthesize paddingRight = _paddingRight;
@synthesize paddingTop = _paddingTop;
@synthesize paddingBottom = _paddingBottom;
@synthesize paddingStyle = _paddingStyle;
@synthesize dataLayout = _dataLayout;
@synthesize weightsLayout = _weightsLayout;
@synthesize groups = _groups;

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
  MPSGraphConvolution2DOpDescriptor* copy = [[MPSGraphConvolution2DOpDescriptor alloc] init];
  copy.strideInX = _strideInX;
  copy.strideInY = _strideInY;
  copy.dilationRateInX = _dilationRateInX;
  copy.dilationRateInY = _dilationRateInY;
  copy.paddingLeft = _paddingLeft;
  copy.paddingRight = _paddingRight;
  copy.paddingTop = _paddingTop;
  copy.paddingBottom = _paddingBottom;
  copy.paddingStyle = _paddingStyle;
  copy.dataLayout = _dataLayout;
  copy.weightsLayout = _weightsLayout;
  copy.groups = _groups;
  return copy;
}
@end

@implementation MPSGraphConvolution3DOpDescriptor
@synthesize strideInX = _strideInX;
@synthesize strideInY = _strideInY;
@synthesize strideInZ = _strideInZ;
@synthesize dilationRateInX = _dilationRateInX;
@synthesize dilationRateInY = _dilationRateInY;
@synthesize dilationRateInZ = _dilationRateInZ;
@synthesize paddingLeft = _paddingLeft;
@synthesize paddingRight = _paddingRight;
@synthesize paddingTop = _paddingTop;
@synthesize paddingBottom = _paddingBottom;
@synthesize paddingFront = _paddingFront;
@synthesize paddingBack = _paddingBack;
@synthesize paddingStyle = _paddingStyle;
@synthesize dataLayout = _dataLayout;
@synthesize weightsLayout = _weightsLayout;
@synthesize groups = _groups;

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
  MPSGraphConvolution3DOpDescriptor* copy = [[MPSGraphConvolution3DOpDescriptor alloc] init];
  copy.strideInX = _strideInX;
  copy.strideInY = _strideInY;
  copy.strideInZ = _strideInZ;
  copy.dilationRateInX = _dilationRateInX;
  copy.dilationRateInY = _dilationRateInY;
  copy.dilationRateInZ = _dilationRateInZ;
  copy.paddingLeft = _paddingLeft;
  copy.paddingRight = _paddingRight;
  copy.paddingTop = _paddingTop;
  copy.paddingBottom = _paddingBottom;
  copy.paddingFront = _paddingFront;
  copy.paddingBack = _paddingBack;
  copy.paddingStyle = _paddingStyle;
  copy.dataLayout = _dataLayout;
  copy.weightsLayout = _weightsLayout;
  copy.groups = _groups;
  return copy;
}
@end

@implementation MPSGraphDepthwiseConvolution3DOpDescriptor
@synthesize strides = _strides;
@synthesize dilationRates = _dilationRates;
@synthesize paddingValues = _paddingValues;
@synthesize paddingStyle = _paddingStyle;
@synthesize channelDimensionIndex = _channelDimensionIndex;

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
@synthesize kernelWidth = _kernelWidth;
@synthesize kernelHeight = _kernelHeight;
@synthesize strideInX = _strideInX;
@synthesize strideInY = _strideInY;
@synthesize dilationRateInX = _dilationRateInX;
@synthesize dilationRateInY = _dilationRateInY;
@synthesize paddingLeft = _paddingLeft;
@synthesize paddingRight = _paddingRight;
@synthesize paddingTop = _paddingTop;
@synthesize paddingBottom = _paddingBottom;
@synthesize paddingStyle = _paddingStyle;
@synthesize dataLayout = _dataLayout;
@synthesize returnIndicesMode = _returnIndicesMode;
@synthesize returnIndicesDataType = _returnIndicesDataType;
@synthesize ceilMode = _ceilMode;
@synthesize includeZeroPadToAverage = _includeZeroPadToAverage;

- (instancetype)init {
  if ((self = [super init])) {
    _returnIndicesDataType = MPSDataTypeInt32;
  }
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  MPSGraphPooling2DOpDescriptor* copy = [[MPSGraphPooling2DOpDescriptor alloc] init];
  copy.kernelWidth = _kernelWidth;
  copy.kernelHeight = _kernelHeight;
  copy.strideInX = _strideInX;
  copy.strideInY = _strideInY;
  copy.dilationRateInX = _dilationRateInX;
  copy.dilationRateInY = _dilationRateInY;
  copy.paddingLeft = _paddingLeft;
  copy.paddingRight = _paddingRight;
  copy.paddingTop = _paddingTop;
  copy.paddingBottom = _paddingBottom;
  copy.paddingStyle = _paddingStyle;
  copy.dataLayout = _dataLayout;
  copy.returnIndicesMode = _returnIndicesMode;
  copy.returnIndicesDataType = _returnIndicesDataType;
  copy.ceilMode = _ceilMode;
  copy.includeZeroPadToAverage = _includeZeroPadToAverage;
  return copy;
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
@synthesize distribution = _distribution;
@synthesize dataType = _dataType;
@synthesize min = _min;
@synthesize max = _max;
@synthesize minInteger = _minInteger;
@synthesize maxInteger = _maxInteger;
@synthesize mean = _mean;
@synthesize standardDeviation = _standardDeviation;
@synthesize samplingMethod = _samplingMethod;

- (instancetype)init {
  if ((self = [super init])) {
    _max = 1;
    _standardDeviation = 1;
  }
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  MPSGraphRandomOpDescriptor* copy = [[MPSGraphRandomOpDescriptor alloc] init];
  copy.distribution = _distribution;
  copy.dataType = _dataType;
  copy.min = _min;
  copy.max = _max;
  copy.minInteger = _minInteger;
  copy.maxInteger = _maxInteger;
  copy.mean = _mean;
  copy.standardDeviation = _standardDeviation;
  copy.samplingMethod = _samplingMethod;
  return copy;
}

+ (instancetype)descriptorWithDistribution:(MPSGraphRandomDistribution)distribution dataType:(MPSDataType)dataType {
  MPSGraphRandomOpDescriptor* made = [[[self alloc] init] autorelease];
  made.distribution = distribution;
  made.dataType = dataType;
  return made;
}
@end

@implementation MPSGraphFFTDescriptor
@synthesize inverse = _inverse;
@synthesize scalingMode = _scalingMode;
@synthesize roundToOddHermitean = _roundToOddHermitean;

- (id)copyWithZone:(NSZone*)zone {
  MPSGraphFFTDescriptor* copy = [[MPSGraphFFTDescriptor alloc] init];
  copy.inverse = _inverse;
  copy.scalingMode = _scalingMode;
  copy.roundToOddHermitean = _roundToOddHermitean;
  return copy;
}

+ (instancetype)descriptor {
  return [[[self alloc] init] autorelease];
}
@end

@implementation MPSGraphLSTMDescriptor
@synthesize reverse = _reverse;
@synthesize bidirectional = _bidirectional;
@synthesize produceCell = _produceCell;
@synthesize training = _training;
@synthesize forgetGateLast = _forgetGateLast;

- (id)copyWithZone:(NSZone*)zone {
  MPSGraphLSTMDescriptor* copy = [[MPSGraphLSTMDescriptor alloc] init];
  copy.reverse = _reverse;
  copy.bidirectional = _bidirectional;
  copy.produceCell = _produceCell;
  copy.training = _training;
  copy.forgetGateLast = _forgetGateLast;
  return copy;
}

+ (instancetype)descriptor {
  return [[[self alloc] init] autorelease];
}
@end
