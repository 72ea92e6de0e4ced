package reports_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"mpsforge/internal/require"
	"mpsforge/reports"
)

// pageProblems opens everything that is folded and gives what a reader could not read: text that is too pale (less than
// the 4.5 to 1 of WCAG 2.2, 1.4.3), and what makes the page wider than the window; and what a screen reader lacks: a language, one
// main part, names of the regions by which they differ, and heads of tables that say what they are heads of.
const pageProblems = `(() => {
  const problems = [];
  const tooWide = how => {
    if (document.documentElement.scrollWidth > window.innerWidth)
      problems.push("the " + how + " page is " + document.documentElement.scrollWidth + " wide, the window " + window.innerWidth);
  };
  tooWide("folded");
  const answer = document.querySelector(".answer li");
  if (answer && answer.getBoundingClientRect().bottom > 640) problems.push("the answer is not on the first screen of a phone");
  document.querySelectorAll("details").forEach(d => d.open = true);
  tooWide("open");
  const channels = text => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = element => {
    for (; element; element = element.parentElement) {
      const colour = channels(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
      if (colour[3] > 0) throw new Error("a half transparent ground");
    }
    throw new Error("no ground");
  };
  if (!document.documentElement.lang || document.querySelectorAll("main").length !== 1) problems.push("no language, or not one main part");
  const names = new Set([""]);
  document.querySelectorAll("[role=region]").forEach(region => {
    const name = region.getAttribute("aria-label") || "";
    if (names.has(name)) problems.push("no name of its own has the region " + name);
    names.add(name);
  });
  document.querySelectorAll("th").forEach(head => {
    if (!head.scope || !head.textContent.trim()) problems.push("a head of a table without scope or text: " + head.outerHTML.slice(0, 60));
  });
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let checked = 0;
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const colour = element.closest("svg") ? style.fill : style.color;
    const pair = [light(channels(colour)), light(ground(element))].sort((a, b) => b - a);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    checked++;
    if (contrast < 4.5) problems.push(contrast.toFixed(2) + ": " + texts.currentNode.data.trim().slice(0, 60));
  }
  if (checked < 50) problems.push("only " + checked + " texts were looked at");
  return problems;
})()`

// chromium starts the browser, or skips the test where there is none.
func chromium(t *testing.T) context.Context {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("there is no Chromium: apt-get install chromium")
	}
	// a busy machine takes its time
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(3*time.Minute))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	browser, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	limited, cancel := context.WithTimeout(browser, 15*time.Minute)
	t.Cleanup(cancel)
	return limited
}

// The page of each report can be read on a phone and on a desk, in light and dark: no script fails, nothing is fetched,
// nothing sticks out, no text is pale.
func TestPageInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: a browser opens each report; go test -run '^TestPageInBrowser$' ./reports")
	}
	browser := chromium(t)
	for _, path := range realReports(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		report := require.One(reports.ReadFile(path))(t)
		file := filepath.Join(t.TempDir(), name+".html")
		var text strings.Builder
		require.NoError(t, errors.Join(report.WriteHTML(&text), os.WriteFile(file, []byte(text.String()), 0o644)))
		for _, width := range []int64{360, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s, %d wide, %s", name, width, scheme), func(t *testing.T) {
					for _, problem := range look(t, browser, file, width, scheme) {
						t.Error(problem)
					}
				})
			}
		}
	}
}

// green is a report as large as that of a whole run in which nothing failed.
func green() *reports.Report {
	report := &reports.Report{Command: "mpsforge verify --checkout pytorch --seed 7", Machine: reports.Machine{System: "linux/amd64", Cores: 2},
		Identity: reports.Identity{Baseline: "v2.9.1", Patches: make([]string, 16), BaseProof: "45 files are the release's, byte for byte"},
		Limits:   []string{"The software Metal cannot show what Apple's frameworks do.", "Nothing in this report was run on a Mac."}}
	names := []string{"series", "checkout", "reference", "conformance", "mac", "runtime", "device", "python", "bench", "operators", "upstream", "one-thread",
		"overlay"}
	for _, name := range names {
		stage := reports.Stage{Name: name, Question: "is " + name + " right?", Verdict: reports.Passed, Seconds: 100,
			Counts: map[string]int64{"operations": 1000, "values compared": 123456}}
		var cells []reports.Cell
		if slices.Contains([]string{"runtime", "python", "bench", "overlay"}, name) { // as it is of a whole run
			cells = []reports.Cell{{Threads: 2, Outcome: reports.OutcomePassed, Of: 1}, {Threads: 4, Outcome: reports.OutcomePassed, Of: 1}}
		}
		for i := range 100 {
			for _, subject := range []string{"stock", "patched"} {
				stage.Add(reports.Check{Name: fmt.Sprint("check ", i), Subject: subject, Verdict: reports.Passed, Detail: "right values: 5", Cells: cells})
			}
		}
		report.Stages = append(report.Stages, stage)
	}
	report.Conclude(nil)
	return report
}

// Where nothing failed, the page is short: on a screen, on a phone, and on paper, where what is folded is left out.
func TestGreenPageIsShort(t *testing.T) {
	browser := chromium(t)
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(file, []byte(rendered(t, green(), "html")), 0o644))
	tab, closeTab := chromedp.NewContext(browser)
	defer closeTab()
	for _, window := range []struct{ width, height int64 }{{1280, 800}, {390, 844}} {
		require.NoError(t, chromedp.Do(tab, chromedp.EmulateViewport(window.width, window.height), chromedp.Navigate("file://"+file)))
		tall := require.One(chromedp.Run(tab, chromedp.Evaluate[int64]("document.documentElement.scrollHeight")))(t)
		if tall >= 4*window.height {
			t.Errorf("at %d by %d it is %d tall", window.width, window.height, tall)
		}
	}
	printed := require.One(chromedp.Call(tab, page.PrintToPDF, page.PrintToPDFParams{}))(t)
	if pages := bytes.Count(printed.Data, []byte("/Type /Page\n")); pages < 1 || pages > 2 {
		t.Errorf("it prints on %d pages", pages)
	}
}

// The check itself finds what it is there for.
func TestPlantedFaultsAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: a browser opens a page for each fault; go test -run '^TestPlantedFaultsAreSeen$' ./reports")
	}
	browser := chromium(t)
	sentence := strings.Repeat("<p>enough to look at</p>", 100)
	for name, c := range map[string]struct{ page, want string }{
		"pale text":           {"<p style='color:#999'>pale</p>" + sentence, "2.85: pale"},
		"too wide":            {"<p style='width:500px'>wide</p>" + sentence, "page is 5"},
		"wide when opened":    {"<details><summary>more</summary><p style='width:500px'>wide</p></details>" + sentence, "the open page is 5"},
		"asks for a picture":  {"<img src='http://127.0.0.1:9/picture.png'>" + sentence, "it asks for http://127.0.0.1:9/picture.png"},
		"talks":               {"<script>console.log('hello')</script>" + sentence, "console: log"},
		"throws":              {"<script>throw new Error('no')</script>" + sentence, "exception"},
		"regions alike":       {"<p role=region aria-label=a>one</p><p role=region aria-label=a>two</p>" + sentence, "no name of its own has the region a"},
		"a head of nothing":   {"<table><tr><th>head</th></tr></table>" + sentence, "a head of a table without scope"},
		"a late answer":       {"<p style='height:640px'>first</p><ul class=answer><li>failed</li></ul>" + sentence, "the answer is not on the first screen"},
		"two main parts":      {"</main><main>" + sentence, "not one main part"},
		"hardly any text":     {"<p>short</p>", "only 1 texts"},
		"nothing of the sort": {sentence, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "page.html")
			page := "<!DOCTYPE html><html lang=en><head><meta name=viewport " +
				"content='width=device-width'><style>body{background:#fff;color:#000}</style></head><body><main>" + c.page
			require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
			found := strings.Join(look(t, browser, file, 390, "light"), "; ")
			if !strings.Contains(found, c.want) || c.want == "" && found != "" {
				t.Errorf("found %q, not %q", found, c.want)
			}
		})
	}
}

// look opens the page and gives what is wrong with it.
func look(t *testing.T, browser context.Context, file string, width int64, scheme string) []string {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	defer closeTab()
	var mutex sync.Mutex
	var all []string
	hear := func(format string, args ...any) {
		mutex.Lock()
		defer mutex.Unlock()
		all = append(all, fmt.Sprintf(format, args...))
	}
	err := chromedp.Listen(tab, func(event any) {
		switch event := event.(type) {
		case *network.EventRequestWillBeSent:
			if event.Request.URL != "file://"+file && event.Request.URL != "data:," {
				hear("it asks for %s", event.Request.URL)
			}
		case *runtime.EventConsoleAPICalled:
			hear("console: %s", event.Type)
		case *runtime.EventExceptionThrown:
			hear("exception: %v", event.ExceptionDetails)
		case *log.EventEntryAdded:
			hear("log: %s", event.Entry.Text)
		}
	})
	require.NoError(t, err)
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(tab, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, dark); return err },
		func() error {
			return chromedp.Do(tab, chromedp.EmulateViewport(width, 844), chromedp.Navigate("file://"+file))
		},
	} {
		require.NoError(t, enable())
	}
	problems := require.One(chromedp.Run(tab, chromedp.Evaluate[[]string](pageProblems)))(t)
	mutex.Lock()
	defer mutex.Unlock()
	return append(problems, all...)
}

// realReports are copies of reports of real runs.
func realReports(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no reports in testdata: %v", err)
	}
	return paths
}
