// The class of command buffers, for MPSCommandBuffer to inherit from, and what it has in common with all that Metal
// makes.
#pragma once

#import <Metal/MTLCommandBuffer.h>

struct mpsforge_metal_command_buffer;

// An object of the process's device, which one thread uses at a time: ThreadSanitizer sees its label.
@interface SoftwareMTLObject : NSObject {
 @protected
  NSString* _label;
}
- (id<MTLDevice>)device;
- (NSString*)label;
- (void)setLabel:(NSString*)label;
@end

@interface SoftwareMTLCommandBuffer : SoftwareMTLObject <MTLCommandBuffer> {
 @public
  struct mpsforge_metal_command_buffer* _engine;
  char _used;
  id<MTLCommandQueue> _queue;
}
// Owns the engine's command buffer from now on.
- (instancetype)initWithEngine:(struct mpsforge_metal_command_buffer*)engine queue:(id<MTLCommandQueue>)queue;
@end
