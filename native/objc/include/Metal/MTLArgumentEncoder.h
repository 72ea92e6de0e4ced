#ifndef MPSFORGE_NATIVE_OBJC_METAL_MTLARGUMENTENCODER_H
#define MPSFORGE_NATIVE_OBJC_METAL_MTLARGUMENTENCODER_H

#import <Metal/MTLBuffer.h>

@protocol MTLArgumentEncoder <NSObject>
@property(copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSUInteger encodedLength;
@property(readonly) NSUInteger alignment;
- (void)setArgumentBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
@end

#endif
