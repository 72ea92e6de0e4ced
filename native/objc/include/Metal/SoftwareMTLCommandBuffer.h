// The class of command buffers, for MPSCommandBuffer to inherit from.
#ifndef MPSFORGE_NATIVE_OBJC_METAL_SOFTWAREMTLCOMMANDBUFFER_H
#define MPSFORGE_NATIVE_OBJC_METAL_SOFTWAREMTLCOMMANDBUFFER_H

#import <Metal/MTLCommandBuffer.h>

struct mpsforge_metal_command_buffer;

@interface SoftwareMTLCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  struct mpsforge_metal_command_buffer* _engine;
  char _used;
  id<MTLCommandQueue> _queue;
  NSString* _label;
}
// Owns the engine's command buffer from now on.
- (instancetype)initWithEngine:(struct mpsforge_metal_command_buffer*)engine queue:(id<MTLCommandQueue>)queue;
@end

#endif
