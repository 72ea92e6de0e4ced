package apple

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// Every method and class that the table has as newer than macOS 13.0, and that our headers declare, is marked in them.
func TestEveryNewerDeclarationIsMarked(t *testing.T) {
	table := require.One(Load())(t)
	oldest := Version{13, 0}
	var marked []string
	headers := os.DirFS("../objc/include")
	err := fs.WalkDir(headers, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(headers, path)
		if err != nil {
			return err
		}
		_, names, err := table.MarkAvailability(string(text), oldest)
		marked = append(marked, names...)
		return err
	})
	require.NoError(t, err)
	want := require.One(table.Newer(oldest))(t)
	if len(want) < 50 {
		t.Fatalf("the table has only %d", len(want))
	}
	undeclared := map[string]string{
		"MPSNDArrayIdentity -initWithDevice:":              "inherited, and its class is marked",
		"MTLCompileOptions -maxTotalThreadsPerThreadgroup": "only other classes of ours have it",
	}
	for _, name := range want {
		if undeclared[name] == "" && !slices.Contains(marked, name) {
			t.Errorf("%s is not marked", name)
		}
	}
}

func TestMarkAvailability(t *testing.T) {
	table := require.One(parseTable("T\tclass\tMPSThing\tNSObject\t\t14.0\nM\t-old\tv\t\t\nM\t-do:with:\tv\ti32 " +
		"i32\t15.0\nM\t-size\tu64\t\t13.3\nM\t-setSize:\tv\tu64\t13.3\nM\t+make\tv\t\t14.0\n"))(t)
	text := "@class MPSThing;\n@interface MPSThing : NSObject\n- (void)old;\n- (void)do:(int (^)(int a))a  // a block\n    " +
		"with:(int)b;\n@property(readwrite) NSUInteger size;\n+ (void)make;\n- (void)make;\n@end\n"
	marked, names, err := table.MarkAvailability(text, Version{13, 0})
	require.NoError(t, err)
	require.Equal(t, strings.Join(names, ", "), "MPSThing, MPSThing -do:with:, MPSThing -size, MPSThing -setSize:, MPSThing +make")
	for _, want := range []string{"with:(int)b __attribute__((availability(macos,introduced=15.0)));",
		"size __attribute__((availability(macos,introduced=13.3)));",
		"__attribute__((availability(macos,introduced=14.0)))\n@interface MPSThing", "- (void)old;\n", "- (void)make;\n"} {
		require.Contains(t, marked, want)
	}
	require.Equal(t, strings.Count(marked, "availability("), 4, "marks")
}
