package ci

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"mpsforge/fork"
	"mpsforge/patches"
)

// gate is upstream's check of a pull request's size, .github/scripts/pr-sanity-check.sh: lines added and removed, without
// files that .gitattributes marks as generated.
type gate struct {
	limit     int
	generated []string // patterns of paths
}

// defaultLimit is upstream's in 2026. An exception is a maintainer's to make (label skip-pr-sanity-checks).
const defaultLimit = 2000

var limitForm = regexp.MustCompile(`pr_size > ([0-9]{2,6})\b`)

// readGate takes the rule from the commit itself where it has it; source archives lack .github.
func readGate(ctx context.Context, checkout *fork.Checkout, commit string) (*gate, error) {
	script, err := checkout.File(ctx, commit, ".github/scripts/pr-sanity-check.sh")
	if err != nil {
		return nil, err
	}
	attributes, err := checkout.File(ctx, commit, ".gitattributes")
	if err != nil {
		return nil, err
	}
	g := &gate{limit: defaultLimit}
	if m := limitForm.FindSubmatch(script); m != nil {
		if g.limit, err = strconv.Atoi(string(m[1])); err != nil {
			return nil, fmt.Errorf("read upstream's size limit: %w", err)
		}
	}
	for line := range strings.Lines(string(attributes)) {
		if fields := strings.Fields(line); strings.Contains(line, "linguist-generated=true") {
			g.generated = append(g.generated, fields[0])
		}
	}
	return g, nil
}

func (g *gate) lines(patch *patches.Patch) int {
	n := 0
	for _, file := range patch.Files {
		if !g.isGenerated(file.Path()) {
			n += file.Changed()
		}
	}
	return n
}

// isGenerated matches as far as git's patterns are path.Match's; a pattern without a slash is one for names.
func (g *gate) isGenerated(name string) bool {
	for _, pattern := range g.generated {
		subject := name
		if !strings.Contains(pattern, "/") {
			subject = path.Base(name)
		}
		if matched, err := path.Match(strings.TrimPrefix(pattern, "/"), subject); err == nil && matched {
			return true
		}
	}
	return false
}

// measure notes the size of each request and refuses those that are too large.
func (g *gate) measure(requests []*Request) error {
	var large []string
	for _, request := range requests {
		if request.Lines = g.lines(request.layer.Patch); request.Lines > g.limit {
			large = append(large, fmt.Sprintf("%s with %d", request.Name, request.Lines))
		}
	}
	if len(large) > 0 {
		return fmt.Errorf("%w: at most %d changed lines, but %s; split it: put the series on the checkout (mpsforge apply), divide the commit (git "+
			"rebase -i), and take both parts up (mpsforge export)",
			ErrTooLarge, g.limit, strings.Join(large, ", "))
	}
	return nil
}
