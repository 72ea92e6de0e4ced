#pragma once

#import <Metal/MTLBuffer.h>
#import <Metal/MTLCommandEncoder.h>

@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value;
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)fromOffset
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)toOffset
                  size:(NSUInteger)size;
- (void)synchronizeResource:(id<MTLResource>)resource;
@end
