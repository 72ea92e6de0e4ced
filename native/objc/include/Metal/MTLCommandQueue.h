#pragma once

#import <Foundation/Foundation.h>

@protocol MTLCommandBuffer;
@protocol MTLDevice;

@protocol MTLCommandQueue <NSObject>
@property(copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
- (id<MTLCommandBuffer>)commandBuffer;
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
@end
