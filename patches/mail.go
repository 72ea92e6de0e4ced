package patches

import (
	"fmt"
	"mime"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Header is what the mail around a diff says: who, when, and the commit message.
type Header struct {
	AuthorName, AuthorEmail string
	Date                    time.Time // in the zone the mail gives
	Subject                 string
	Body                    string // with its trailers, without a newline at its end
	Trailers                []Trailer
}

// Trailer is one "Key: value" line of the last paragraph of a message.
type Trailer struct {
	Key, Value string
	Line       int // in the patch file
}

// Message is the commit message that git am --keep-cr --keep-non-patch makes of the mail.
func (h Header) Message() string {
	if h.Body == "" {
		return h.Subject + "\n"
	}
	return h.Subject + "\n\n" + h.Body + "\n"
}

// Values lists the values of the trailers of that key, in order.
func (h Header) Values(key string) []string {
	var values []string
	for _, t := range h.Trailers {
		if t.Key == key {
			values = append(values, t.Value)
		}
	}
	return values
}

// maxHeader is the length at which a header is refused, so that a hostile one cannot take long to unfold and clean.
const maxHeader = 10000

// mailDate is how git writes a date in a mail.
const mailDate = "Mon, 2 Jan 2006 15:04:05 -0700"

var (
	fromLine  = lazy(`^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001\n$`)
	fromStart = lazy(`^From .*\d\d:\d\d`) // at least all that git mailsplit would split at
	headerRE  = lazy(`^([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)\n$`)
	inBody    = lazy(`(?i)^(from:|subject:|date:|>from |\[patch\])`)
	trailerRE = lazy(`^([A-Za-z0-9][A-Za-z0-9-]*): *(.*)$`)
	statLine  = lazy(`^ (.* \| +\S|\d+ files? changed|(create|delete) mode |mode change |rename |copy )`)
)

// parseMail reads the mail's lines up to the diff and returns the index of the diff's first line.
func parseMail(p *parser) (h Header, next int, err error) {
	if !fromLine().MatchString(p.line(0)) {
		return h, 0, p.fault(RuleParse, 0, "write it with git format-patch", "the first line is not the From line of git format-patch")
	}
	headers, at, next, err := mailHeaders(p)
	if err != nil {
		return h, 0, err
	}
	for _, key := range []string{"from", "date", "subject"} {
		if _, ok := headers[key]; !ok {
			return h, 0, p.fault(RuleParse, 0, "write it with git format-patch", "the mail has no %s header", key)
		}
	}
	if h.AuthorName, h.AuthorEmail, err = parseAuthor(headers["from"]); err != nil {
		return h, 0, p.fault(RuleParse, at["from"], "write it as Name <address>", "From header: %v", err)
	}
	date, err := mail.ParseDate(headers["date"])
	if err != nil {
		return h, 0, p.fault(RuleParse, at["date"], "write it like "+mailDate, "Date header: %v", err)
	}
	_, offset := date.Zone()
	h.Date = date.In(time.FixedZone("", offset)) // Parse may answer with the machine's own zone
	if h.Subject = cleanSubject(headers["subject"]); h.Subject == "" {
		return h, 0, p.fault(RuleParse, at["subject"], "write a subject", "the subject is empty")
	}
	if next, err = parseBody(p, next, &h); err != nil {
		return h, 0, err
	}
	return h, next, nil
}

// mailHeaders reads the headers, keys in small letters, unfolded and decoded, with the line each begins at.
func mailHeaders(p *parser) (headers map[string]string, at map[string]int, next int, err error) {
	headers, at = map[string]string{}, map[string]int{}
	key := ""
	for i := 1; i < len(p.lines); i++ {
		line := p.line(i)
		if line == "\n" {
			return headers, at, i + 1, p.decodeHeaders(headers, at)
		}
		if strings.HasSuffix(line, "\r\n") {
			return nil, nil, 0, p.fault(RuleParse, i, "write the header with LF only", "the line ends in CR LF")
		}
		if key != "" && (line[0] == ' ' || line[0] == '\t') {
			if headers[key] = strings.TrimRight(headers[key], " \t") + " " + strings.TrimSpace(line); len(headers[key]) > maxHeader {
				return nil, nil, 0, p.fault(RuleParse, i, "shorten it", "a header of over %d bytes", maxHeader)
			}
			continue
		}
		m := headerRE().FindStringSubmatch(line)
		if m == nil {
			return nil, nil, 0, p.fault(RuleParse, i, "write it with git format-patch", "not a mail header")
		}
		key = strings.ToLower(m[1])
		if _, twice := headers[key]; twice {
			return nil, nil, 0, p.fault(RuleParse, i, "keep one", "a second %s header", m[1])
		}
		if headers[key], at[key] = strings.TrimSpace(m[2]), i; len(headers[key]) > maxHeader {
			return nil, nil, 0, p.fault(RuleParse, i, "shorten it", "a header of over %d bytes", maxHeader)
		}
	}
	return nil, nil, 0, p.fault(RuleParse, len(p.lines)-1, "write it with git format-patch", "the mail ends within its headers")
}

// decodeHeaders undoes RFC 2047 in place and refuses an encoding of the body that git format-patch never writes.
func (p *parser) decodeHeaders(headers map[string]string, at map[string]int) error {
	for _, key := range []string{"from", "subject"} {
		text, err := new(mime.WordDecoder).DecodeHeader(headers[key])
		if err != nil || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\x00") {
			return p.fault(RuleParse, at[key], "write it in UTF-8, on one line", "the %s header cannot be decoded", key)
		}
		headers[key] = text
	}
	if v, ok := headers["content-type"]; ok {
		kind, params, err := mime.ParseMediaType(v)
		charset := strings.ToLower(params["charset"])
		if err != nil || kind != "text/plain" || charset != "utf-8" && charset != "us-ascii" && charset != "" {
			return p.fault(RuleParse, at["content-type"], "use text/plain; charset=UTF-8", "content type %q", v)
		}
	}
	switch v := headers["content-transfer-encoding"]; strings.ToLower(v) {
	case "", "7bit", "8bit":
		return nil
	default:
		return p.fault(RuleParse, at["content-transfer-encoding"], "use 8bit", "transfer encoding %q", v)
	}
}

// ParseAuthor splits "Name <address>" into what a commit and a mail carry alike. Control characters and marks that turn
// the direction of writing around are errors: they would start another header, or show another name than is there.
func ParseAuthor(text string) (name, email string, err error) {
	hostile := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, hostile) {
		return "", "", fmt.Errorf("%q has characters that a name cannot have", text)
	}
	if name, email, err = parseAuthor(text); err != nil {
		return "", "", err
	}
	if local, domain, _ := strings.Cut(email, "@"); local == "" || domain == "" {
		return "", "", fmt.Errorf("%q is not an address", email)
	}
	return name, email, nil
}

// parseAuthor splits a decoded From header. Names that git am would replace by the address are errors.
func parseAuthor(from string) (name, email string, err error) {
	i := strings.LastIndexByte(from, '<')
	if i < 0 || !strings.HasSuffix(from, ">") {
		return "", "", fmt.Errorf("no <address> at the end of %q", from)
	}
	name, email = strings.TrimSpace(from[:i]), from[i+1:len(from)-1]
	if len(name) > 1 && name[0] == '"' && name[len(name)-1] == '"' {
		var b strings.Builder
		for i := 1; i < len(name)-1; i++ {
			if name[i] == '\\' && i < len(name)-2 {
				i++
			}
			b.WriteByte(name[i])
		}
		name = b.String()
	}
	if name == "" || len(name) > 60 || strings.ContainsAny(name, "@<>") {
		return "", "", fmt.Errorf("git am would not keep the name %q (empty, over 60 bytes, or with one of @<>)", name)
	}
	if email == "" || strings.ContainsAny(email, " \t<>") {
		return "", "", fmt.Errorf("%q is not an address", email)
	}
	return name, email, nil
}

// cleanSubject does to a subject what git mailinfo -b does: reply marks and brackets around PATCH go, white space runs
// become one space.
func cleanSubject(s string) string {
	at := 0
	for at < len(s) {
		rest := s[at:]
		switch {
		case len(rest) > 3 && strings.EqualFold(rest[:3], "re:"):
			s = s[:at] + rest[3:]
			continue
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == ':':
			s = s[:at] + rest[1:]
			continue
		case rest[0] == '[':
			if end := strings.IndexByte(rest, ']') + 1; end >= 7 && strings.Contains(rest[:end], "PATCH") {
				s = s[:at] + rest[end:]
				continue
			} else if end > 0 {
				at += end
				if at < len(s) && (s[at] == ' ' || s[at] == '\t') {
					at++
				}
				continue
			}
		}
		break
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }), " ")
}

// parseBody reads the message's body from line i on, up to the diff.
func parseBody(p *parser, i int, h *Header) (next int, err error) {
	start, lines, first := i, []string{}, true // first: nothing but blank lines so far
	for ; i < len(p.lines) && !p.diffStart(i); i++ {
		line := p.line(i)
		text := strings.TrimRight(line, " \t\r\n") // what git's stripspace cuts
		switch {
		case !utf8.ValidString(line) || strings.ContainsRune(line, 0):
			return 0, p.fault(RuleMessage, i, "write it in UTF-8", "the message is not UTF-8 text")
		case fromStart().MatchString(line):
			return 0, p.fault(RuleParse, i, "keep one mail per file", "a second mail begins here")
		case text == "---":
			if next, err = skipStat(p, i+1); err != nil {
				return 0, err
			}
			h.setBody(lines, start)
			return next, nil
		case strings.HasPrefix(line, "diff -"), strings.HasPrefix(line, "Index: "),
			strings.HasPrefix(line, "--- ") && text != line[:3]:
			return 0, p.fault(RuleMessage, i, "indent or reword the line", "git am would take this line of the message for the start of a diff")
		case first && inBody().MatchString(line):
			return 0, p.fault(RuleMessage, i, "reword the line", "git am would take the first line of the body for a mail header")
		}
		lines = append(lines, text)
	}
	h.setBody(lines, start)
	return i, nil
}

// skipStat passes over the diffstat that git format-patch writes between --- and the diff. Prose there is an error,
// because git am drops it.
func skipStat(p *parser, i int) (next int, err error) {
	for ; i < len(p.lines) && !p.diffStart(i); i++ {
		if p.line(i) != "\n" && !statLine().MatchString(p.line(i)) {
			return 0, p.fault(RuleMessage, i, "move it above the --- line, and drop that line", "git am would drop this text after ---")
		}
	}
	return i, nil
}

// setBody does what git's stripspace does, and finds the trailers: the lines of the last paragraph, if it has nothing
// else but their continuations.
func (h *Header) setBody(lines []string, start int) {
	var body []string
	at := []int{} // the patch file's line of each line kept
	for i, line := range lines {
		if line == "" && (len(body) == 0 || body[len(body)-1] == "") {
			continue
		}
		body, at = append(body, line), append(at, start+i+1)
	}
	if n := len(body); n > 0 && body[n-1] == "" {
		body = body[:n-1]
	}
	h.Body = strings.Join(body, "\n")
	first := len(body)
	for first > 0 && body[first-1] != "" {
		first--
	}
	var found []Trailer
	for i, line := range body[first:] {
		if m := trailerRE().FindStringSubmatch(line); m != nil {
			found = append(found, Trailer{m[1], m[2], at[first+i]})
		} else if len(found) > 0 && (line[0] == ' ' || line[0] == '\t') {
			found[len(found)-1].Value += " " + strings.TrimSpace(line)
		} else {
			return
		}
	}
	h.Trailers = found
}
