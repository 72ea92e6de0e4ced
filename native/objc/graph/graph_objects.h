// What the classes of this directory know of each other.
#pragma once

#include "arrays.h"
#include "recorder.h"

@interface MPSGraph (Recorder)
// The tensor lives as long as the graph.
- (MPSGraphTensor*)addTensor:(const mpsforge::graph::Input&)input;
@end

@interface MPSGraphTensorData (Memory)
- (const mpsforge::graph::Memory&)memory;
@end
