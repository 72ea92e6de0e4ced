// What all objects of the software Metal have in common.
#import <Foundation/Foundation.h>

#include "../engine.h"
#include "metal_objects.h"

using namespace mpsforge::objc;

@implementation SoftwareMTLObject

- (void)dealloc {
  [_label release];
  [super dealloc];
}

- (id<MTLDevice>)device {
  return [SoftwareMTLDevice shared];
}

- (NSString*)label {
  return _label;
}

- (void)setLabel:(NSString*)label {
  NSString* made = [label copy];
  [_label autorelease];
  _label = made;
}

@end

@implementation SoftwareMTLSharedObject

- (NSString*)label {
  EngineCall guard;
  return _label;
}

- (void)setLabel:(NSString*)label {
  NSString* made = [label copy];
  EngineCall guard;
  // The old one may be in another thread's hands: labels are few, so none is ever freed before its object.
  _label = made;
}

@end
