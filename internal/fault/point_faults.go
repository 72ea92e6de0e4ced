//go:build faults

package fault

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

var passed atomic.Int64

// Point is such a moment. The one whose number is in MPSFORGE_FAULT_AT kills the program; the file that MPSFORGE_FAULT_COUNT names
// gets a byte for each.
func Point() {
	number := strconv.FormatInt(passed.Add(1), 10)
	if path := os.Getenv("MPSFORGE_FAULT_COUNT"); path != "" {
		if file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err == nil {
			_, _ = file.WriteString(".")
			file.Close()
		}
	}
	if os.Getenv("MPSFORGE_FAULT_AT") == number {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
