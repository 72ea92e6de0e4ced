#pragma once

#import <Metal/MTLResource.h>

@protocol MTLBuffer <MTLResource>
@property(readonly) NSUInteger length;
@property(readonly) uint64_t gpuAddress;
- (void*)contents;
- (void)didModifyRange:(NSRange)range;
@end
