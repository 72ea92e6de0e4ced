package run

import "syscall"

// endWithParent has the kernel end a program, as the end of a context would, when mpsforge is killed. git then removes its locks, and ninja
// ends its compilers; a program that hangs would stay forever.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGTERM }
