#pragma once

#import <MetalPerformanceShadersGraph/MPSGraphCore.h>

@class MPSGraph;

@interface MPSGraphObject : NSObject
@end

@interface MPSGraphType : MPSGraphObject <NSCopying>
@end

@interface MPSGraphShapedType : MPSGraphType
@property(readwrite, copy) MPSShape* shape;
@property(readwrite) MPSDataType dataType;
- (instancetype)initWithShape:(MPSShape*)shape dataType:(MPSDataType)dataType;
@end

// One value of a graph. Its graph keeps it alive; a caller need not retain it.
@interface MPSGraphTensor : MPSGraphObject <NSCopying>
@property(readonly) MPSShape* shape;  // nil: unknown until the graph runs
@property(readonly) MPSDataType dataType;
@end
