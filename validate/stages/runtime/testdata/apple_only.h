// What the backend on Apple's Metal uses and the headers of host builds do not have: declared here alone, for the check
// that the backend compiles.
#import <Foundation/Foundation.h>

@interface NSCondition : NSObject
- (void)lock;
- (void)unlock;
- (void)wait;
- (void)signal;
- (void)broadcast;
@end

int pthread_setname_np(const char* name);
