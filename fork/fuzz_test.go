package fork

import (
	"strings"
	"testing"

	"mpsforge/patches"
)

const someCommit = "610e1c4c7c6c48dbf4d9a5922e3ece353390e06a"

// What a checkout's state says goes to git as arguments and names files: a hostile one must not be taken.
func TestHostileStateIsRefused(t *testing.T) {
	const whole = `{"schema":1,"worktree":"main","base":"` + someCommit + `","head":"` + someCommit + `","applied":[{"name":"a","commit":"` +
		someCommit + `","paths":["aten/a.mm"]}],
"entries":{"aten/b.mm":{"mode":"100644","id":"` + someCommit + `"}},"pending":{"command":"apply","to":"` + someCommit + `"},
"port":{"target":"` + someCommit + `"}}`
	if state, err := decodeState([]byte(whole), "main"); err != nil || state == nil {
		t.Fatalf("%v, %v", state, err)
	}
	for name, change := range map[string][2]string{
		"base is an option":      {`"base":"` + someCommit, `"base":"--output=/tmp/x`},
		"head is a name":         {`"head":"` + someCommit, `"head":"main`},
		"commit is short":        {`"commit":"` + someCommit, `"commit":"610e`},
		"entry's id":             {`"id":"` + someCommit, `"id":"@{-1}`},
		"pending's target":       {`"to":"` + someCommit, `"to":"HEAD~1`},
		"port's target":          {`"target":"` + someCommit, `"target":"-x`},
		"path leads out":         {"aten/a.mm", "../a.mm"},
		"path is absolute":       {"aten/b.mm", "/etc/passwd"},
		"path is in .git":        {"aten/a.mm", ".git/config"},
		"path has an escape":     {"aten/a.mm", `aten/\u001b[2J`},
		"schema of tomorrow":     {`"schema":1`, `"schema":2`},
		"it is no JSON":          {"{", "["},
		"entry is of wrong kind": {`"aten/b.mm":{`, `"aten/b.mm":{"mode":1,`},
	} {
		t.Run(name, func(t *testing.T) {
			if state, err := decodeState([]byte(strings.Replace(whole, change[0], change[1], 1)), "main"); err == nil {
				t.Errorf("accepted: %+v", state)
			}
		})
	}
}

// FuzzState: a state that is accepted has ids and paths that can be given to git.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"schema":1,"worktree":"main","base":"` + someCommit + `","applied":[{"name":"a","sha256":"","commit":"` + someCommit +
		`","paths":["aten/a.mm"]}],"head":"` + someCommit + `"}`))
	f.Add([]byte(`{"schema":1,"worktree":"main","pending":{"command":"apply","to":"HEAD"},"entries":{"a":{"id":"x"}},"port":{"done":[{"commit":"-"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := decodeState(data, "main")
		if err != nil || state == nil {
			return
		}
		ids := []string{state.Base, state.Head}
		if state.Pending != nil {
			ids = append(ids, state.Pending.To)
		}
		if state.Port != nil {
			ids = append(ids, state.Port.head())
		}
		for _, applied := range state.Applied {
			ids = append(ids, applied.Commit)
			for _, path := range applied.Paths {
				if err := patches.CheckPath(path); err != nil {
					t.Error(err)
				}
			}
		}
		for _, id := range ids {
			if id != "" && (len(id) != 40 || strings.Trim(id, "0123456789abcdef") != "") {
				t.Errorf("id %q", id)
			}
		}
	})
}
