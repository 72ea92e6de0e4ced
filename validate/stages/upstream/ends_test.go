package upstream

import (
	"encoding/json"
	"reflect"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/native/script"
	"mpsforge/patches"
	"mpsforge/validate/judge/nativefunctions"
)

// What PyTorch and the host build say, and the cause that is made of it.
func TestCausesAreNamedByWhatWasSaid(t *testing.T) {
	onMac := map[string]bool{"aten::dot": true}
	for _, c := range []struct {
		said  ended
		cause end
	}{
		{ended{Outcome: "error", Type: "RuntimeError", Text: "Failed to create function state object for: kernel_index_offsets_32"},
			end{raised, "missing kernel: kernel_index_offsets_32"}},
		{ended{Outcome: "error", Type: "NotImplementedError", Text: "The operator 'aten::dot' is not currently implemented for the MPS device. If"},
			end{raised, "not implemented on the host build's MPS: aten::dot"}},
		{ended{Outcome: "error", Type: "NotImplementedError", Text: "The operator 'aten::vdot' is not currently implemented for the MPS device. If"},
			end{raised, "not implemented for MPS, on a Mac neither: aten::vdot"}},
		{ended{Outcome: "error", Type: "RuntimeError",
			Text: `false INTERNAL ASSERT FAILED at "./aten/src/ATen/native/DispatchStub.cpp":208, please report a bug to PyTorch. An unexpected ` +
				`device type was provided mps`},
			end{raised, "not implemented on the host build's MPS: a kernel of a dispatch stub"}},
		{ended{Outcome: "error", Type: "NotImplementedError", Text: "host build: backward of a transposed convolution"},
			end{raised, "not implemented on the host build's MPS: backward of a transposed convolution"}},
		{ended{Outcome: "error", Type: "ModuleNotFoundError", Text: "No module named 'scipy.special'"}, end{raised, "missing Python package: scipy.special"}},
		{ended{Outcome: "failed", Type: "AssertionError", Text: "Tensor-likes are not close!\n\nMismatched elements: 1 / 320"},
			end{failed, "differs from expected values"}},
		{ended{Outcome: "failed", Type: "AssertionError",
			Text: "The values for attribute 'shape' do not match: torch.Size([4, 0, 5]) != torch.Size([4, 1, 5])."},
			end{failed, "differs from expected values"}},
		{ended{Outcome: "error", Type: "RuntimeError", Text: "a size of 17 at 0x7f00\nmore"}, end{raised, "RuntimeError: a size of N at N"}},
		{ended{Outcome: "skipped", Text: "not_implemented: The operator 'aten::dot' is not currently implemented for the MPS device.", Own: true},
			end{foreignSkip, "not implemented on the host build's MPS: aten::dot"}},
		{ended{Outcome: "skipped", Text: "not_implemented: The operator 'aten::vdot' is not currently implemented for the MPS device.", Own: true},
			end{kind: skipped}},
		{ended{Outcome: "crash", Text: "died by signal SIGABRT",
			Output: "mpsforge: MPSGraph: a target tensor of type Int32[?] has data of type Int64[1]\nFatal Python error: Aborted\n"},
			end{crashed, "crash: mpsforge: MPSGraph: a target tensor of type IntN[?] has data of type IntN[N]"}},
		{ended{Outcome: "crash", Text: "died by signal SIGABRT",
			Output: "mpsforge: MPSGraph execution failed: too few\nException raised from meta at ./aten/a.cpp:3 (most recent call first):\nframe " +
				"#0: f() + 0x9 (0x7f in /cache/4f/libc10.so)\nframe #1: _start + 0x1 (0x2 in /cache/4f/python3)\nFatal Python error: Aborted\n"},
			end{crashed, "crash: mpsforge: MPSGraph execution failed: too few"}},
		{ended{Outcome: "crash", Text: "died by signal SIGABRT",
			Output: "terminate called after throwing an instance of 'c10::Error'\n  what():  Failed to create function state object for: " +
				"repeat_interleave_int64_t\nframe #0: f() + 0x9 (0x7f in /cache/4f/libc10.so)\nFatal Python error: Aborted\n"},
			end{crashed, "missing kernel: repeat_interleave_int64_t"}},
		{ended{Outcome: "crash", Text: "died by signal SIGSEGV"}, end{crashed, "crash: died by signal SIGSEGV"}},
		{ended{Outcome: "passed", Findings: []script.Finding{{Kind: script.Race, Message: "race on bytes 0 to 64 of buffer 7"}}},
			end{found, "race: race on bytes N to N of buffer N"}},
		{ended{Outcome: "perhaps"}, end{raised, "suite.py reported an outcome that this mpsforge does not know: perhaps"}},
	} {
		require.Equal(t, judge(c.said, onMac), c.cause, c.said)
	}
}

func TestOperatorsOfAMacAreThoseThatPyTorchRegistersForMPS(t *testing.T) {
	const yaml = `
- func: dot(Tensor self, Tensor tensor) -> Tensor
  variants: function, method
  dispatch:
    CPU: dot
    # MPS: not this one
    CUDA, MPS: dot_device

- func: exp(Tensor self) -> Tensor
  structured_delegate: exp.out
  tags: pointwise

- func: exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, CUDA: exp_out
    MPS: exp_out_mps
  tags: pointwise

- func: vdot(Tensor self, Tensor other) -> Tensor
  dispatch:
    CPU: vdot
    MPSish: no
`
	const python = `    _lib.impl("native_group_norm", native_group_norm, "MPS")`
	want := map[string]bool{"aten::dot": true, "aten::exp": true, "aten::exp.out": true, "aten::native_group_norm": true}
	operators := require.One(nativefunctions.Parse([]byte(yaml)))(t)
	require.Equal(t, operatorsOnMac(operators, python), want)
}

// A list is written in one form, which reads back as it was.
func TestAListOfFailuresReadsBack(t *testing.T) {
	facts := patches.UpstreamFacts{Schema: 1, Failures: map[string][]string{"crash: <a & \"b\">": {"f:A.b", "f:A.c"}, "a": {"f:A.d"}},
		Flaky: map[string][]string{}, LeftOut: map[string][]string{"two devices": {"g:A.e"}}, UnexpectedSuccesses: map[string][]string{"why": {"f:B.a"}}}
	text := require.One(written(facts))(t)
	var back patches.UpstreamFacts
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, facts) {
		t.Errorf("%v, %v in %s", back, err, text)
	}
}
