package native

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// Why each hand-written kernel is there. A build without the kernels of PyTorch's wheel (there is no network, or host.json does not know
// the version's wheel) has no others, and these are what a scenario or a test in Python calls of it. With the wheel none of them runs.
var handWritten = map[string]struct{ file, call string }{
	"abs":        {"torch/scenarios/operations.cc", "at::abs("},
	"add":        {"torch/scenarios/operations.cc", "at::add(in[0], in[1])"},
	"add_alpha":  {"torch/scenarios/operations.cc", "at::add(in[0], in[1], 3)"},
	"cos":        {"../validate/judge/pytests/python/test_reported.py", "angles.cos()"},
	"div_true":   {"torch/scenarios/operations.cc", "at::div("},
	"exp":        {"torch/scenarios/operations.cc", "at::exp("},
	"layer_norm": {"torch/scenarios/operations.cc", "at::layer_norm("},
	"mul":        {"torch/scenarios/operations.cc", "at::mul("},
	"neg":        {"torch/scenarios/operations.cc", "at::neg("},
	"renorm":     {"torch/scenarios/parallel.cc", "at::renorm("},
	"sigmoid":    {"torch/scenarios/operations.cc", "at::sigmoid("},
	"sin":        {"../validate/judge/pytests/python/test_reported.py", "angles.sin()"},
	"sqrt":       {"torch/scenarios/operations.cc", "at::sqrt("},
	"sub":        {"torch/scenarios/operations.cc", "at::sub("},
	"tanh":       {"torch/scenarios/operations.cc", "at::tanh("},
}

func TestHandWrittenKernelsHaveACaller(t *testing.T) {
	registered := regexp.MustCompile(`(?m)^    \{"(\w+?)(?:_(?:single_row|looped))?(?:_(?:float|half|bfloat))?", `)
	found := map[string]bool{}
	for _, file := range []string{"torch/kernels.cc", "torch/kernels_iterator.cc"} {
		text := require.One(fs.ReadFile(Torch, file))(t)
		for _, match := range registered.FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
		}
	}
	for name := range found {
		if _, listed := handWritten[name]; !listed {
			t.Errorf("the kernel %s is written by hand, and the list does not say why", name)
		}
	}
	for name, use := range handWritten {
		if !found[name] {
			t.Errorf("%s is listed, and is no hand-written kernel", name)
		}
		if text, err := os.ReadFile(use.file); err != nil || !strings.Contains(string(text), use.call) {
			t.Errorf("the kernel %s has no caller any more: %s is not in %s (%v)", name, use.call, use.file, err)
		}
	}
}
