package crash_test

import (
	"fmt"
	"log"

	"mpsforge/patches"
	"mpsforge/validate/judge/crash"
)

// A text that a crash printed leads to its meaning and to the patches that address it.
func ExampleExplain() {
	series, err := patches.Load(patches.Embedded(), patches.DefaultBaseline)
	if err != nil {
		log.Fatal(err)
	}
	explained, err := crash.Explain("-[_MTLCommandBuffer commit]:683: commit an already committed command buffer", series)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(explained.Name())
	fmt.Println(explained.Class)
	// Output:
	// 3 double-commit
	// thread class
}
