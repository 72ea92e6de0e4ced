package script_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/native/script"
)

// A finding has the same kind whether a program prints the word or the number that metal.h gives it.
func TestKindsByNumber(t *testing.T) {
	header := require.One(os.ReadFile("../metal/metal.h"))(t)
	kinds := map[string]string{"5": "finding"} // of an engine that knows more
	for _, match := range regexp.MustCompile(`(?m)^  MPSFORGE_METAL_(VIOLATION|RACE|DEADLOCK|LIFETIME|MODEL) = (\d)`).FindAllSubmatch(header, -1) {
		kinds[string(match[2])] = strings.ToLower(string(match[1]))
	}
	if len(kinds) != 6 {
		t.Fatalf("native/metal/metal.h: kinds of findings: %v", kinds)
	}
	for number, word := range kinds {
		for _, text := range []string{number, strconv.Quote(word)} {
			var found script.Finding
			if err := json.Unmarshal([]byte(`{"kind":`+text+`}`), &found); err != nil || found.Kind != script.Kind(word) {
				t.Errorf("kind %s: got %q, %v, want %q", text, found.Kind, err, word)
			}
		}
	}
	if err := json.Unmarshal([]byte(`{"kind":{}}`), new(script.Finding)); err == nil {
		t.Error("an object is no kind")
	}
}
