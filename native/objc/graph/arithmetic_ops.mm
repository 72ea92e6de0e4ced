#import <MetalPerformanceShadersGraph/MPSGraphArithmeticOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphArithmeticOps)
- (MPSGraphTensor*)identityWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "identity", {tensor});
}

- (MPSGraphTensor*)exponentWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "exponent", {tensor});
}

- (MPSGraphTensor*)exponentBase2WithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "exponentBase2", {tensor});
}

- (MPSGraphTensor*)exponentBase10WithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "exponentBase10", {tensor});
}

- (MPSGraphTensor*)logarithmWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "logarithm", {tensor});
}

- (MPSGraphTensor*)logarithmBase2WithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "logarithmBase2", {tensor});
}

- (MPSGraphTensor*)logarithmBase10WithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "logarithmBase10", {tensor});
}

- (MPSGraphTensor*)squareWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "square", {tensor});
}

- (MPSGraphTensor*)squareRootWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "squareRoot", {tensor});
}

- (MPSGraphTensor*)reciprocalWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "reciprocal", {tensor});
}

- (MPSGraphTensor*)absoluteWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "absolute", {tensor});
}

- (MPSGraphTensor*)negativeWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "negative", {tensor});
}

- (MPSGraphTensor*)signWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "sign", {tensor});
}

- (MPSGraphTensor*)signbitWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "signbit", {tensor});
}

- (MPSGraphTensor*)ceilWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "ceil", {tensor});
}

- (MPSGraphTensor*)floorWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "floor", {tensor});
}

- (MPSGraphTensor*)roundWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "round", {tensor});
}

- (MPSGraphTensor*)rintWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "rint", {tensor});
}

- (MPSGraphTensor*)sinWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "sin", {tensor});
}

- (MPSGraphTensor*)cosWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "cos", {tensor});
}

- (MPSGraphTensor*)tanWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "tan", {tensor});
}

- (MPSGraphTensor*)sinhWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "sinh", {tensor});
}

- (MPSGraphTensor*)coshWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "cosh", {tensor});
}

- (MPSGraphTensor*)tanhWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "tanh", {tensor});
}

- (MPSGraphTensor*)asinWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "asin", {tensor});
}

- (MPSGraphTensor*)acosWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "acos", {tensor});
}

- (MPSGraphTensor*)atanWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "atan", {tensor});
}

- (MPSGraphTensor*)asinhWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "asinh", {tensor});
}

- (MPSGraphTensor*)acoshWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "acosh", {tensor});
}

- (MPSGraphTensor*)atanhWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "atanh", {tensor});
}

- (MPSGraphTensor*)notWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "not", {tensor});
}

- (MPSGraphTensor*)isInfiniteWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "isInfinite", {tensor});
}

- (MPSGraphTensor*)isFiniteWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "isFinite", {tensor});
}

- (MPSGraphTensor*)isNaNWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "isNaN", {tensor});
}

- (MPSGraphTensor*)erfWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "erf", {tensor});
}

- (MPSGraphTensor*)truncateWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "truncate", {tensor});
}

- (MPSGraphTensor*)bitwiseNOTWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "bitwiseNOT", {tensor});
}

- (MPSGraphTensor*)conjugateWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "conjugate", {tensor});
}

- (MPSGraphTensor*)reverseSquareRootWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "reciprocalSquareRoot", {tensor});
}

- (MPSGraphTensor*)reciprocalSquareRootWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "reciprocalSquareRoot", {tensor});
}

- (MPSGraphTensor*)realPartOfTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "realPart", {tensor});
}

- (MPSGraphTensor*)imaginaryPartOfTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return record(self, "imaginaryPart", {tensor});
}

- (MPSGraphTensor*)complexTensorWithRealTensor:(MPSGraphTensor*)realTensor
                               imaginaryTensor:(MPSGraphTensor*)imaginaryTensor
                                          name:(NSString*)name {
  return record(self, "complex", {realTensor, imaginaryTensor});
}

- (MPSGraphTensor*)additionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(NSString*)name {
  return record(self, "addition", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)subtractionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                           name:(NSString*)name {
  return record(self, "subtraction", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)multiplicationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                   secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                              name:(NSString*)name {
  return record(self, "multiplication", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)divisionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(NSString*)name {
  return record(self, "division", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)moduloWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                           secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                      name:(NSString*)name {
  return record(self, "modulo", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)powerWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                          secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                     name:(NSString*)name {
  return record(self, "power", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)minimumWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                            secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                       name:(NSString*)name {
  return record(self, "minimum", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)maximumWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                            secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                       name:(NSString*)name {
  return record(self, "maximum", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)minimumWithNaNPropagationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                              secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                         name:(NSString*)name {
  return record(self, "minimumWithNaNPropagation", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)maximumWithNaNPropagationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                              secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                         name:(NSString*)name {
  return record(self, "maximumWithNaNPropagation", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)equalWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                          secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                     name:(NSString*)name {
  return record(self, "equal", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)notEqualWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(NSString*)name {
  return record(self, "notEqual", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)atan2WithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                          secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                     name:(NSString*)name {
  return record(self, "atan2", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)floorModuloWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                           name:(NSString*)name {
  return record(self, "floorModulo", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)divisionNoNaNWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                  secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                             name:(NSString*)name {
  return record(self, "divisionNoNaN", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)bitwiseANDWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                               secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                          name:(NSString*)name {
  return record(self, "bitwiseAND", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)bitwiseORWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                              secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                         name:(NSString*)name {
  return record(self, "bitwiseOR", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)bitwiseXORWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                               secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                          name:(NSString*)name {
  return record(self, "bitwiseXOR", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)bitwiseLeftShiftWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                     secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                name:(NSString*)name {
  return record(self, "bitwiseLeftShift", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)bitwiseRightShiftWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                      secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                 name:(NSString*)name {
  return record(self, "bitwiseRightShift", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)logicalANDWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                               secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                          name:(NSString*)name {
  return record(self, "logicalAND", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)logicalORWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                              secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                         name:(NSString*)name {
  return record(self, "logicalOR", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)logicalNANDWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                           name:(NSString*)name {
  return record(self, "logicalNAND", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)logicalNORWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                               secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                          name:(NSString*)name {
  return record(self, "logicalNOR", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)logicalXORWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                               secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                          name:(NSString*)name {
  return record(self, "logicalXOR", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)logicalXNORWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                           name:(NSString*)name {
  return record(self, "logicalXNOR", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)lessThanWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(NSString*)name {
  return record(self, "lessThan", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)lessThanOrEqualToWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                      secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                 name:(NSString*)name {
  return record(self, "lessThanOrEqualTo", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)greaterThanWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                           name:(NSString*)name {
  return record(self, "greaterThan", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)greaterThanOrEqualToWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                         secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                    name:(NSString*)name {
  return record(self, "greaterThanOrEqualTo", {primaryTensor, secondaryTensor});
}

- (MPSGraphTensor*)selectWithPredicateTensor:(MPSGraphTensor*)predicateTensor
                         truePredicateTensor:(MPSGraphTensor*)truePredicateTensor
                        falsePredicateTensor:(MPSGraphTensor*)falsePredicateTensor
                                        name:(NSString*)name {
  return record(self, "select", {predicateTensor, truePredicateTensor, falsePredicateTensor});
}

- (MPSGraphTensor*)clampWithTensor:(MPSGraphTensor*)tensor
                    minValueTensor:(MPSGraphTensor*)minValueTensor
                    maxValueTensor:(MPSGraphTensor*)maxValueTensor
                              name:(NSString*)name {
  return record(self, "clamp", {tensor, minValueTensor, maxValueTensor});
}

@end
