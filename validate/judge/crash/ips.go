package crash

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// ipsHeader and ipsBody are the parts of Apple's JSON crash reports that matter here. The format is described at
// https://developer.apple.com/documentation/xcode/interpreting-the-json-format-of-a-crash-report
type ipsHeader struct {
	BugType any `json:"bug_type"` // a text, in some versions a number
}

// crashBugType is that of crash reports; hangs, kernel panics and others are reported in other formats.
const crashBugType = "309"

type ipsBody struct {
	Exception struct {
		Type    string `json:"type"`
		Signal  string `json:"signal"`
		Codes   string `json:"codes"`
		Subtype string `json:"subtype"`
		Message string `json:"message"`
	} `json:"exception"`
	Termination struct {
		Indicator string   `json:"indicator"`
		Details   []string `json:"details"`
		Reasons   []string `json:"reasons"`
	} `json:"termination"`
	ASI            map[string][]string `json:"asi"` // application specific information, by library
	FaultingThread *int                `json:"faultingThread"`
	Threads        []ipsThread         `json:"threads"`
	UsedImages     []struct {
		Name string `json:"name"`
	} `json:"usedImages"`
}

type ipsThread struct {
	Triggered bool   `json:"triggered"`
	Name      string `json:"name"`
	Queue     string `json:"queue"`
	Frames    []struct {
		ImageIndex     int    `json:"imageIndex"`
		ImageOffset    int64  `json:"imageOffset"`
		Symbol         string `json:"symbol"`
		SymbolLocation int    `json:"symbolLocation"`
	} `json:"frames"`
}

// parseIPS reads a report: a line with a JSON object about the report, then the report, which is one too.
func parseIPS(content []byte) (crashReport, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	var header ipsHeader
	if err := decoder.Decode(&header); err != nil {
		return crashReport{}, ipsError("its first line", err)
	}
	if kind := fmt.Sprint(header.BugType); header.BugType != nil && kind != crashBugType {
		return crashReport{}, fmt.Errorf("an .ips report of bug type %s; only crash reports, %s, can be classified", Shorten(kind), crashBugType)
	}
	var body ipsBody
	if err := decoder.Decode(&body); err != nil {
		return crashReport{}, ipsError("the report after its first line", err)
	}
	return body.report()
}

func ipsError(part string, err error) error {
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("not a whole .ips report: %s is missing or cut off", part)
	case errors.As(err, &wrongType):
		return fmt.Errorf("not an .ips report: in %s, %q is a JSON %s", part, Shorten(wrongType.Field), wrongType.Value)
	}
	return fmt.Errorf("not an .ips report: %s is no JSON object: %s", part, Shorten(err.Error()))
}

func (b *ipsBody) report() (crashReport, error) {
	exception := b.Exception
	report := crashReport{exception: strings.Join([]string{exception.Type, exception.Signal, exception.Subtype, "Codes: " + exception.Codes}, "\n")}
	for _, library := range slices.Sorted(maps.Keys(b.ASI)) {
		for _, text := range b.ASI[library] {
			report.messages = append(report.messages, fieldText{"application specific information of " + library, text})
		}
	}
	for _, text := range append(append([]string{b.Termination.Indicator}, b.Termination.Details...), b.Termination.Reasons...) {
		report.messages = append(report.messages, fieldText{"termination", text})
	}
	report.messages = append(report.messages, fieldText{"exception", exception.Message})

	crashed := slices.IndexFunc(b.Threads, func(thread ipsThread) bool { return thread.Triggered })
	if b.FaultingThread != nil {
		crashed = *b.FaultingThread
		if crashed < 0 || crashed >= len(b.Threads) {
			return crashReport{}, fmt.Errorf("not an .ips report: faultingThread is %d, but threads are %d", crashed, len(b.Threads))
		}
	}
	if crashed < 0 {
		return report, nil // a report without threads still has its messages
	}
	thread := b.Threads[crashed]
	report.thread = strings.TrimSpace(fmt.Sprintf("thread %d %s", crashed, cmp.Or(thread.Name, thread.Queue)))
	for _, frame := range thread.Frames {
		image := "an image that the report does not name"
		if frame.ImageIndex >= 0 && frame.ImageIndex < len(b.UsedImages) && b.UsedImages[frame.ImageIndex].Name != "" {
			image = b.UsedImages[frame.ImageIndex].Name
		}
		symbol, offset := frame.Symbol, frame.SymbolLocation
		if symbol == "" {
			symbol = fmt.Sprintf("%#x", frame.ImageOffset)
		}
		report.frames = append(report.frames, crashFrame{image, symbol, offset})
	}
	return report, nil
}
