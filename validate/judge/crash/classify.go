// Package crash has the texts and stacks with which Metal and PyTorch crash: it explains one, and finds them in logs and in Apple's
// crash reports. It reads text only; how a process under test ended is in package process.
package crash

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mpsforge/internal/words"
)

// Limits of what Classify reads and keeps. Crash reports have some megabytes at most; a longer log is cut by its owner,
// who knows which end matters.
const (
	classifyBytes   = 64 << 20
	classifyMatches = 100 // of one file
	matchedText     = 300 // bytes
)

// Match is one place of a file that shows a signature.
type Match struct {
	Signature string `json:"signature"` // its name
	Class     Class  `json:"class"`
	Line      int    `json:"line,omitempty"`   // of a text file
	Thread    string `json:"thread,omitempty"` // of a crash report or a sample, with its name or queue
	Field     string `json:"field,omitempty"`  // of a crash report in JSON
	Text      string `json:"text"`
}

// Where says the place in words.
func (m Match) Where() string {
	var parts []string
	if m.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", m.Line))
	}
	if m.Field != "" {
		parts = append(parts, m.Field)
	}
	if m.Thread != "" {
		parts = append(parts, m.Thread)
	}
	return strings.Join(parts, ", ")
}

// Classification is what one file shows.
type Classification struct {
	File    string  `json:"file"`
	Kind    string  `json:"kind,omitempty"` // what the file is, in words
	Verdict Class   `json:"verdict,omitempty"`
	Matches []Match `json:"matches"`
	More    int     `json:"more,omitempty"`  // matches that are not listed
	Error   string  `json:"error,omitempty"` // why it could not be read or understood; then there is no verdict
}

// add keeps a match and lets it count for the verdict: one place of the thread class decides.
func (c *Classification) add(m Match) {
	if c.Verdict != ThreadClass && m.Class != UnknownClass {
		c.Verdict = m.Class
	}
	m.Thread, m.Field, m.Text = Shorten(m.Thread), Shorten(m.Field), Shorten(m.Text)
	if len(c.Matches) == classifyMatches {
		c.More++
		return
	}
	c.Matches = append(c.Matches, m)
}

// found makes a match of a signature by its own class.
func found(signature *Signature, text string) Match {
	return Match{Signature: signature.Name(), Class: signature.Class, Text: text}
}

// Classify reads each file, a log, an Apple crash report (.crash or .ips), or a sample of a hung process, and reports which
// crash signatures it shows. A file that cannot be read or understood has an Error.
func Classify(paths []string) []Classification {
	results := make([]Classification, 0, len(paths))
	for _, path := range paths {
		content, err := ReadLimited(path)
		if err == nil {
			var result Classification
			if result, err = Read(path, content); err == nil {
				results = append(results, result)
				continue
			}
		}
		results = append(results, Classification{File: path, Matches: []Match{}, Error: err.Error()})
	}
	return results
}

// Tally counts the verdicts in one sentence.
func Tally(results []Classification) string {
	counts := map[Class]int{}
	for _, result := range results {
		counts[result.Verdict]++
	}
	return fmt.Sprintf("%s: %d, %s: %d, %s: %d, not read: %d", ThreadClass, counts[ThreadClass], NotThreadClass, counts[NotThreadClass],
		UnknownClass, counts[UnknownClass], counts[""])
}

// Unreadable is the error of the files that could not be read or understood, or nil.
func Unreadable(results []Classification) error {
	var reasons []string
	for _, result := range results {
		if result.Error != "" {
			reasons = append(reasons, result.Error)
		}
	}
	if reasons == nil {
		return nil
	}
	return fmt.Errorf("%d of %d files cannot be classified: %s", len(reasons), len(results), strings.Join(reasons, "; "))
}

func ReadLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, classifyBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > classifyBytes {
		return nil, fmt.Errorf("%s: larger than %d MiB; give the part with the crash", path, classifyBytes>>20)
	}
	return content, nil
}

var (
	crashHeader  = regexp.MustCompile(`(?m)^(Incident Identifier|Exception Type):`)
	sampleHeader = regexp.MustCompile(`(?m)^(Analysis of sampling |Call graph:|Date/Time:.*\n.*End time:)`)
)

// Read is Classify for one file's content.
func Read(name string, content []byte) (Classification, error) {
	result := Classification{File: name, Verdict: UnknownClass, Matches: []Match{}}
	ips := strings.EqualFold(filepath.Ext(name), ".ips")
	if !ips {
		first, _, _ := bytes.Cut(bytes.TrimLeft(content, " \t\r\n"), []byte("\n"))
		ips = bytes.HasPrefix(first, []byte("{")) && bytes.Contains(first, []byte(`"bug_type"`))
	}
	if ips {
		result.Kind = "Apple crash report in JSON"
		report, err := parseIPS(content)
		if err != nil {
			return result, fmt.Errorf("%s: %w", name, err)
		}
		classifyReport(&result, report)
		return result, nil
	}
	result.Kind = "log"
	sample := false
	if crashHeader.Match(content) {
		result.Kind = "Apple crash report"
	} else if sampleHeader.Match(content) {
		result.Kind, sample = "sample of a process", true
	}
	err := classifyText(&result, content, sample)
	return result, err
}

// classifyText goes through a text line by line: messages are looked for everywhere, stacks where their kind of file has
// them.
func classifyText(result *Classification, content []byte, sample bool) error {
	var crash textCrash
	var hang hangFinder
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, len(content)+1)
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if signature, phrase := signatureIn(line); signature != nil {
			match := found(signature, excerpt(line, phrase))
			match.Line = number
			result.add(match)
		}
		crash.line(number, line)
		if sample {
			hang.line(number, line)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", result.File, err)
	}
	if crash.report.exception != "" {
		for _, match := range crash.report.stackMatches() {
			result.add(match)
		}
	}
	hang.finish(result)
	return nil
}

// crashReport is what a crash report says about the crashed thread, in either format.
type crashReport struct {
	exception string // type, signal, codes and subtype
	thread    string
	line      int // of the crashed thread's heading in a text
	frames    []crashFrame
	messages  []fieldText // of the JSON format
}

type crashFrame struct {
	image, symbol string
	offset        int
}

func (f crashFrame) String() string { return fmt.Sprintf("%s + %d (%s)", f.symbol, f.offset, f.image) }

type fieldText struct{ field, text string }

// classifyReport looks at the messages of a report in JSON and at its crashed thread.
func classifyReport(result *Classification, report crashReport) {
	for _, message := range report.messages {
		for line := range strings.Lines(message.text) {
			if signature, phrase := signatureIn(line); signature != nil {
				match := found(signature, excerpt(line, phrase))
				match.Field = message.field
				result.add(match)
			}
		}
	}
	for _, match := range report.stackMatches() {
		result.add(match)
	}
}

var (
	// An address as "KERN_INVALID_ADDRESS at 0x98", or as the second of the exception's codes.
	faultAddress = regexp.MustCompile(`(?i)KERN_[A-Z_]+ at 0x([0-9a-f]{1,16})|Codes: 0x0*[12], 0x([0-9a-f]{1,16})`)
	encoderFrame = regexp.MustCompile(`AGX.*ComputeContext`)
	// A frame of the graphics frameworks or of PyTorch; other programs' bad pointers are none of this table's business.
	graphicsFrame = regexp.MustCompile(`Metal|MPS|MTL|AGX|torch|\bat::|\bc10::`)
)

// encoderOffsets are the small addresses of signature 14: fields of the driver's object behind a null pointer.
var encoderOffsets = []uint64{0x98, 0x184, 0x5c8, 0x5f4}

// stackMatches finds the signatures that have no message: 13, 14 and 15.
func (r *crashReport) stackMatches() []Match {
	if !strings.Contains(r.exception, "EXC_BAD_ACCESS") && !strings.Contains(r.exception, "SIGSEGV") {
		return nil
	}
	var matches []Match
	add := func(number int, text string) {
		match := found(numbered(number), text)
		match.Line, match.Thread = r.line, r.thread
		matches = append(matches, match)
	}
	first := func(holds func(crashFrame) bool) *crashFrame {
		if i := slices.IndexFunc(r.frames, holds); i >= 0 {
			return &r.frames[i]
		}
		return nil
	}
	graphics := first(func(f crashFrame) bool { return graphicsFrame.MatchString(f.image + " " + f.symbol) })
	if graphics == nil {
		return nil
	}
	hashTable := first(func(f crashFrame) bool { return holds(f.symbol, "__hash_table…__emplace_unique_key_args") })
	if hashTable != nil {
		add(13, hashTable.String())
	}
	encoder := first(func(f crashFrame) bool { return encoderFrame.MatchString(f.symbol) })
	address, known := r.address()
	if encoder != nil && known && slices.Contains(encoderOffsets, address) {
		add(14, fmt.Sprintf("address %#x in %s", address, encoder))
	}
	top := r.frames[0]
	switch {
	case top.symbol == "objc_msgSend" && top.offset == 32, top.symbol == "objc_retain" && top.offset == 16:
		add(15, fmt.Sprintf("%s, below it %s", top, graphics))
	case strings.Contains(r.exception, "possible pointer authentication failure"):
		add(15, fmt.Sprintf("possible pointer authentication failure in %s, below it %s", top, graphics))
	}
	return matches
}

func (r *crashReport) address() (uint64, bool) {
	groups := faultAddress.FindStringSubmatch(r.exception)
	if groups == nil {
		return 0, false
	}
	address, err := strconv.ParseUint(groups[1]+groups[2], 16, 64)
	return address, err == nil
}

// textCrash gathers a crashReport from the lines of the text format.
type textCrash struct {
	report crashReport
	inside bool // of the crashed thread's frames
}

var (
	exceptionLine = regexp.MustCompile(`^Exception (Type|Codes|Subtype|Message):`)
	crashedLine   = regexp.MustCompile(`^(Thread \d+.*?) Crashed\b:*\s*(.*)`)
	frameLine     = regexp.MustCompile(`^\d+\s+(\S.*?)\s+0x[0-9a-f]+ (.*?)(?: \+ (\d+))?$`)
)

func (c *textCrash) line(number int, line string) {
	line = strings.TrimRight(line, " \t\r")
	if exceptionLine.MatchString(line) {
		c.report.exception += strings.TrimPrefix(line, "Exception ") + "\n"
		return
	}
	if groups := crashedLine.FindStringSubmatch(line); groups != nil && c.report.thread == "" {
		c.report.thread = strings.TrimSpace(groups[1] + " " + groups[2])
		c.report.line, c.inside = number, true
		return
	}
	if !c.inside {
		return
	}
	groups := frameLine.FindStringSubmatch(line)
	if groups == nil {
		c.inside = false
		return
	}
	offset, _ := strconv.Atoi(groups[3]) // none, or one too large to be of interest, is 0
	c.report.frames = append(c.report.frames, crashFrame{image: groups[1], symbol: groups[2], offset: offset})
}

// hangFinder finds signature 17 in the output of sample or spindump: threads that wait in dispatch_sync or for the GPU.
type hangFinder struct {
	thread   string
	graphics bool // a frame of the thread is of Metal or PyTorch
	wait     *Match
	waits    []Match
	queue    bool // one of them waits in dispatch_sync
}

var (
	threadLine = regexp.MustCompile(`\bThread[_ ](0x)?[0-9a-f]+\b.*`)
	// What dispatch_sync runs inline leaves a frame too; these two are on the stack only of one that waits.
	queueWait = regexp.MustCompile(`__DISPATCH_WAIT_FOR_QUEUE__|_dispatch_sync_f_slow`)
	gpuWait   = regexp.MustCompile(`waitUntilCompleted`)
)

func (h *hangFinder) line(number int, line string) {
	if heading := threadLine.FindString(line); heading != "" {
		h.endThread()
		h.thread = heading
		return
	}
	h.graphics = h.graphics || graphicsFrame.MatchString(line)
	if isQueue := queueWait.MatchString(line); isQueue || gpuWait.MatchString(line) {
		if h.wait == nil {
			match := found(numbered(17), strings.TrimLeft(line, " +!:|"))
			match.Line, match.Thread = number, h.thread
			h.wait = &match
			h.queue = h.queue || isQueue
		}
	}
}

func (h *hangFinder) endThread() {
	if h.wait != nil && h.graphics {
		h.waits = append(h.waits, *h.wait)
	}
	h.wait, h.graphics = nil, false
}

// finish adds the threads that wait. If none of them waits for another, the wait for the GPU may be an ordinary one.
func (h *hangFinder) finish(result *Classification) {
	h.endThread()
	for _, match := range h.waits {
		if !h.queue {
			match.Class = UnknownClass
		}
		result.add(match)
	}
}

// excerpt gives the part of a long line that holds a phrase.
func excerpt(line, phrase string) string {
	part, _, _ := strings.Cut(phrase, "…")
	if at := strings.Index(line, part); len(line) > matchedText && at > matchedText/2 {
		line = "…" + line[at-matchedText/2:]
	}
	return line
}

// Shorten makes a text of a file fit to be shown: one line, of printable characters, not too long.
func Shorten(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return '?'
	}, words.Shorten(strings.TrimSpace(text), matchedText, "…"))
}
