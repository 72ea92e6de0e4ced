// Package suggest finds what was meant by a name that does not exist.
package suggest

import "strings"

// few is how many names an error message lists.
const few = 24

// longest bounds what may be a name; a text from a log is none.
const longest = 64

// Names is what an error message says after a wrong name: a known one that is near it, and all of them where they are few.
func Names(wrong string, known []string) string {
	if len(known) == 0 || len(known) > few {
		return Meant(wrong, known)
	}
	return Meant(wrong, known) + "; there are: " + strings.Join(known, ", ")
}

// Meant is the first part of Names; it is empty where nothing is near.
func Meant(wrong string, known []string) string {
	if near := Nearest(wrong, known); near != "" {
		return ` (did you mean "` + near + `"?)`
	}
	return ""
}

// Nearest is the known name that takes the fewest edits to make of the wrong one, if they are few for its length (of several the one
// that begins most like it), or one that the wrong name is a part of; else it is empty.
func Nearest(wrong string, known []string) string {
	if len(wrong) > longest {
		return ""
	}
	wrong = strings.ToLower(wrong)
	nearest, least := "", max(1, len(wrong)/3)+1
	for _, name := range known {
		d := distance(wrong, strings.ToLower(name))
		if d < least || d == least && nearest != "" && beginning(wrong, name) > beginning(wrong, nearest) {
			nearest, least = name, d
		}
	}
	for _, name := range known {
		if nearest == "" && len(wrong) >= 3 && strings.Contains(strings.ToLower(name), wrong) {
			nearest = name
		}
	}
	return nearest
}

// beginning is how many letters two words have in common at their beginning.
func beginning(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// distance counts the edits between two words: a letter more, less, or another one, and two that changed places.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
