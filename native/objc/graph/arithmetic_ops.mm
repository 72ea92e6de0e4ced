#import <MetalPerformanceShadersGraph/MPSGraphArithmeticOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphArithmeticOps)
UNARY(identityWithTensor, "identity")
UNARY(exponentWithTensor, "exponent")
UNARY(exponentBase2WithTensor, "exponentBase2")
UNARY(exponentBase10WithTensor, "exponentBase10")
UNARY(logarithmWithTensor, "logarithm")
UNARY(logarithmBase2WithTensor, "logarithmBase2")
UNARY(logarithmBase10WithTensor, "logarithmBase10")
UNARY(squareWithTensor, "square")
UNARY(squareRootWithTensor, "squareRoot")
UNARY(reciprocalWithTensor, "reciprocal")
UNARY(absoluteWithTensor, "absolute")
UNARY(negativeWithTensor, "negative")
UNARY(signWithTensor, "sign")
UNARY(signbitWithTensor, "signbit")
UNARY(ceilWithTensor, "ceil")
UNARY(floorWithTensor, "floor")
UNARY(roundWithTensor, "round")
UNARY(rintWithTensor, "rint")
UNARY(sinWithTensor, "sin")
UNARY(cosWithTensor, "cos")
UNARY(tanWithTensor, "tan")
UNARY(sinhWithTensor, "sinh")
UNARY(coshWithTensor, "cosh")
UNARY(tanhWithTensor, "tanh")
UNARY(asinWithTensor, "asin")
UNARY(acosWithTensor, "acos")
UNARY(atanWithTensor, "atan")
UNARY(asinhWithTensor, "asinh")
UNARY(acoshWithTensor, "acosh")
UNARY(atanhWithTensor, "atanh")
UNARY(notWithTensor, "not")
UNARY(isInfiniteWithTensor, "isInfinite")
UNARY(isFiniteWithTensor, "isFinite")
UNARY(isNaNWithTensor, "isNaN")
UNARY(erfWithTensor, "erf")
UNARY(truncateWithTensor, "truncate")
UNARY(bitwiseNOTWithTensor, "bitwiseNOT")
UNARY(conjugateWithTensor, "conjugate")
UNARY(reverseSquareRootWithTensor, "reciprocalSquareRoot")
UNARY(reciprocalSquareRootWithTensor, "reciprocalSquareRoot")
UNARY(realPartOfTensor, "realPart")
UNARY(imaginaryPartOfTensor, "imaginaryPart")

- (MPSGraphTensor*)complexTensorWithRealTensor:(MPSGraphTensor*)realTensor
                               imaginaryTensor:(MPSGraphTensor*)imaginaryTensor
                                          name:(NSString*)name {
  return record(self, "complex", {realTensor, imaginaryTensor});
}

BINARY(additionWithPrimaryTensor, "addition")
BINARY(subtractionWithPrimaryTensor, "subtraction")
BINARY(multiplicationWithPrimaryTensor, "multiplication")
BINARY(divisionWithPrimaryTensor, "division")
BINARY(moduloWithPrimaryTensor, "modulo")
BINARY(powerWithPrimaryTensor, "power")
BINARY(minimumWithPrimaryTensor, "minimum")
BINARY(maximumWithPrimaryTensor, "maximum")
BINARY(minimumWithNaNPropagationWithPrimaryTensor, "minimumWithNaNPropagation")
BINARY(maximumWithNaNPropagationWithPrimaryTensor, "maximumWithNaNPropagation")
BINARY(equalWithPrimaryTensor, "equal")
BINARY(notEqualWithPrimaryTensor, "notEqual")
BINARY(atan2WithPrimaryTensor, "atan2")
BINARY(floorModuloWithPrimaryTensor, "floorModulo")
BINARY(divisionNoNaNWithPrimaryTensor, "divisionNoNaN")
BINARY(bitwiseANDWithPrimaryTensor, "bitwiseAND")
BINARY(bitwiseORWithPrimaryTensor, "bitwiseOR")
BINARY(bitwiseXORWithPrimaryTensor, "bitwiseXOR")
BINARY(bitwiseLeftShiftWithPrimaryTensor, "bitwiseLeftShift")
BINARY(bitwiseRightShiftWithPrimaryTensor, "bitwiseRightShift")
BINARY(logicalANDWithPrimaryTensor, "logicalAND")
BINARY(logicalORWithPrimaryTensor, "logicalOR")
BINARY(logicalNANDWithPrimaryTensor, "logicalNAND")
BINARY(logicalNORWithPrimaryTensor, "logicalNOR")
BINARY(logicalXORWithPrimaryTensor, "logicalXOR")
BINARY(logicalXNORWithPrimaryTensor, "logicalXNOR")
BINARY(lessThanWithPrimaryTensor, "lessThan")
BINARY(lessThanOrEqualToWithPrimaryTensor, "lessThanOrEqualTo")
BINARY(greaterThanWithPrimaryTensor, "greaterThan")
BINARY(greaterThanOrEqualToWithPrimaryTensor, "greaterThanOrEqualTo")

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
