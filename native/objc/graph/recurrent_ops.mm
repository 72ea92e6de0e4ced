#import <MetalPerformanceShadersGraph/MPSGraphRNNOps.h>

#include "recorder.h"

#include <stdexcept>

using namespace mpsforge::graph;

namespace {

Attributes recurrence(MPSGraphLSTMDescriptor* descriptor, bool biased) {
  return {{"bidirectional", integer(descriptor.bidirectional)}, {"reverse", integer(descriptor.reverse)},
          {"forget_last", integer(descriptor.forgetGateLast)},  {"cell", integer(descriptor.produceCell)},
          {"training", integer(descriptor.training)},           {"bias", integer(biased)}};
}

}  // namespace

@implementation MPSGraph (MPSGraphRNNOps)
- (NSArray<MPSGraphTensor*>*)LSTMWithSourceTensor:(MPSGraphTensor*)source
                                  recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                      inputWeight:(MPSGraphTensor*)inputWeight
                                             bias:(MPSGraphTensor*)bias
                                        initState:(MPSGraphTensor*)initState
                                         initCell:(MPSGraphTensor*)initCell
                                       descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                             name:(NSString*)name {
  Tensors inputs = {source, recurrentWeight, inputWeight, initState, initCell};
  if (bias != nil) inputs.push_back(bias);
  return record_all(self, "LSTM", inputs, recurrence(descriptor, bias != nil),
                    1u + (descriptor.produceCell ? 1 : 0) + (descriptor.training ? 1 : 0));
}

- (NSArray<MPSGraphTensor*>*)LSTMGradientsWithSourceTensor:(MPSGraphTensor*)source
                                           recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                            sourceGradient:(MPSGraphTensor*)sourceGradient
                                                    zState:(MPSGraphTensor*)zState
                                             cellOutputFwd:(MPSGraphTensor*)cellOutputFwd
                                             stateGradient:(MPSGraphTensor*)stateGradient
                                              cellGradient:(MPSGraphTensor*)cellGradient
                                               inputWeight:(MPSGraphTensor*)inputWeight
                                                      bias:(MPSGraphTensor*)bias
                                                 initState:(MPSGraphTensor*)initState
                                                  initCell:(MPSGraphTensor*)initCell
                                                      mask:(MPSGraphTensor*)mask
                                                  peephole:(MPSGraphTensor*)peephole
                                                descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                                      name:(NSString*)name {
  if (mask != nil || peephole != nil) {
    throw std::runtime_error("MPSGraph operation LSTMGradients: mask and peephole are not implemented");
  }
  // The gradient of the bias does not need the bias.
  return record_all(self, "LSTMGradients",
                    {source, recurrentWeight, inputWeight, initState, initCell, sourceGradient, zState, cellOutputFwd,
                     stateGradient, cellGradient},
                    recurrence(descriptor, bias != nil), bias != nil ? 6 : 5);
}

@end
