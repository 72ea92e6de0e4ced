#ifndef MPSFORGE_NATIVE_OBJC_METAL_MTLCOMMANDQUEUE_H
#define MPSFORGE_NATIVE_OBJC_METAL_MTLCOMMANDQUEUE_H

#import <Foundation/Foundation.h>

@protocol MTLCommandBuffer;
@protocol MTLDevice;

@protocol MTLCommandQueue <NSObject>
@property(copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
- (id<MTLCommandBuffer>)commandBuffer;
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
@end

#endif
