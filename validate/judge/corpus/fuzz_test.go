package corpus

import (
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// FuzzProgram: a file is a program with all that its front matter must say, or refused with its line.
func FuzzProgram(f *testing.F) {
	programs := require.One(Programs())(f)
	for _, group := range []string{Order, Metal, Pool, Schedules} {
		first := Of(programs, group)[0]
		data := require.One(files.ReadFile(group + "/" + first.FileName() + ".txt"))(f)
		f.Add(string(data))
	}
	f.Add("# name: a\n# rules: none\n# finds: none\n# expect: \n")
	f.Fuzz(func(t *testing.T, data string) {
		name := "x"
		if _, rest, found := strings.Cut(data, "# name: "); found {
			line, _, _ := strings.Cut(rest, "\n")
			name = fileName(line)
		}
		program, line, err := parse(Order+"/"+name+".txt", data)
		if err != nil {
			return
		}
		if program.Name == "" || strings.TrimSpace(program.Text) == "" || line < 1 {
			t.Errorf("%+v, line %d", program, line)
		}
	})
}
