package build

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkOverhead builds 24 sources by mpsforge and by ninja alone. What mpsforge takes itself is distinguished from its own
// processor time and that of what it starts, which other work on the machine does not disturb: at most 1 %. The
// clock's ratio is beside it. Updates are at most ten a second.
func BenchmarkOverhead(b *testing.B) {
	p := newProject(b)
	list := ""
	for i := range 24 {
		name := fmt.Sprintf("aten/many/%d.cpp", i)
		p.write(name, fmt.Sprintf("#include <iostream>\n#include <map>\nstd::map<int, int> map%d;\n", i))
		list += " " + name
	}
	p.write("CMakeLists.txt", strings.Replace(standIn["CMakeLists.txt"], " aten/Context.cpp", " aten/Context.cpp"+list, 1))
	p.options.Targets = []string{mpsTarget}
	p.mustBuild()
	clean := func() {
		if output, err := exec.Command("ninja", "-C", p.path("build"), "-t", "clean").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, output)
		}
	}
	var own, children, ours, bare time.Duration
	updates := 0
	for b.Loop() {
		clean()
		log := &eventLog{}
		p.sink = log
		self, others, started := processorTime(b, syscall.RUSAGE_SELF), processorTime(b, syscall.RUSAGE_CHILDREN), time.Now()
		p.mustBuild()
		ours += time.Since(started)
		own, children = own+processorTime(b, syscall.RUSAGE_SELF)-self, children+processorTime(b, syscall.RUSAGE_CHILDREN)-others
		updates = max(updates, int(float64(len(log.at)-1)/ours.Seconds()))
		clean()
		started = time.Now()
		if output, err := exec.Command("ninja", "-C", p.path("build"), "-j", fmt.Sprint(p.machine.Processors), mpsTarget).CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, output)
		}
		bare += time.Since(started)
	}
	b.ReportMetric(100*own.Seconds()/children.Seconds(), "own-%")
	b.ReportMetric(ours.Seconds()/bare.Seconds(), "clock/ninja")
	b.ReportMetric(float64(updates), "updates/s")
}
