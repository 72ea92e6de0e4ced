#ifndef MPSFORGE_NATIVE_OBJC_METAL_MTLBUFFER_H
#define MPSFORGE_NATIVE_OBJC_METAL_MTLBUFFER_H

#import <Metal/MTLResource.h>

@protocol MTLBuffer <MTLResource>
@property(readonly) NSUInteger length;
@property(readonly) uint64_t gpuAddress;
- (void*)contents;
- (void)didModifyRange:(NSRange)range;
@end

#endif
