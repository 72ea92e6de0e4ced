// What the classes of this directory know of each other.
#ifndef MPSFORGE_NATIVE_OBJC_GRAPH_GRAPH_OBJECTS_H
#define MPSFORGE_NATIVE_OBJC_GRAPH_GRAPH_OBJECTS_H

#include "arrays.h"
#include "recorder.h"

@interface MPSGraph (Recorder)
// The tensor lives as long as the graph.
- (MPSGraphTensor*)addTensor:(const mpsforge::graph::Input&)input;
@end

@interface MPSGraphTensorData (Memory)
- (const mpsforge::graph::Memory&)memory;
@end

#endif
