package checkout

import (
	"regexp"
	"slices"
	"strings"
)

// fault is a place in a function that may raise.
type fault struct {
	what string
	at   int // in the function's text
	line int
	fork bool // only in a forked child, where the lock may be another thread's for ever
}

// faultKind is a kind of what raises by itself: the first group of the expression is what it is.
type faultKind struct {
	says string
	is   *regexp.Regexp
}

var faultKinds = []faultKind{
	{"raises", regexp.MustCompile(`\b(TORCH_CHECK\w*|TORCH_INTERNAL_ASSERT|AT_ERROR|rethrow_exception)\s*\(`)},
	{"raises", regexp.MustCompile(`\b(throw)\b`)},
	{"raises", regexp.MustCompile(`(?:\.|->)(at|value)\s*\(`)},
	{"allocates", regexp.MustCompile(`\b(new)\s+[A-Za-z_:]`)},
	{"allocates", regexp.MustCompile(`\b(make_unique|make_shared|make_intrusive|allocate_shared|to_string|c10::str|getline|LOG|TORCH_WARN\w*)\s*[<(]`)},
	{"allocates", regexp.MustCompile(`(?:\.|->)(push_back|push_front|push|emplace|emplace_\w+|try_emplace|insert|insert_or_assign` +
		`|resize|reserve|assign|append|substr|str)\s*\(`)},
	{"allocates", regexp.MustCompile(`\b(std::(?:string|[io]?stringstream|function)\b(?:<[^;{}]*>)?)\s*(?:\w+\s*[;=({]|[({])`)},
	{"locks", regexp.MustCompile(`\b((?:scoped_lock|shared_lock|call_once)\b|std::lock\b)`)},
	{"locks", regexp.MustCompile(`\b((?:lock_guard|unique_lock)\b(?:<[^<>]*>)?)`)},
	{"starts a thread", regexp.MustCompile(`\b(std::thread\s+\w+\s*[({]|std::async)`)},
}

// plainLocks lock a std::mutex. The standard lets its lock() raise system_error for operation_not_permitted and resource_deadlock_would_occur, and
// libc++ (src/mutex.cpp) does so whenever pthread_mutex_lock gives an error. That of a normal mutex, which std::mutex is, gives none but EINVAL, for a
// destroyed one. So they count only if the mutex is destroyed at exit, or in a forked child. No other lock is exempt: pthread_mutex_lock of a
// recursive mutex and pthread_rwlock_rdlock give EAGAIN, and unique_lock::lock() raises by itself.
var plainLocks = regexp.MustCompile(`^(?:lock_guard|unique_lock)<std::mutex>$`)

// What the sources say of variables, which a place of use does not.
var (
	mapVariable    = regexp.MustCompile(`\b(?:unordered_map|map|flat_hash_map)<[^;(){}]*>\s+(\w+)\s*[;{=]`)
	stringVariable = regexp.MustCompile(`\bstd::string\s+(\w+)\s*[;{=]`)
	containerType  = regexp.MustCompile(`\b(?:using\s+(\w+)\s*=|struct\s+(\w+)\s*:)[^;{]*\b(?:vector|SmallVector|deque|list|map|set)<`)
	lockVariable   = regexp.MustCompile(
		`\b(?:condition_variable|condition_variable_any|\w*mutex|(?:unique_lock|shared_lock)(?:<[^<>]*>)?)\s*&?\s+(\w+)\s*[;{(),]`)
	dyingMutex = regexp.MustCompile(`(?m)(?:^|\bstatic\s+)std::mutex\s+(\w+)`)
)

// names are the variables and types that faults depend on, and what finds them.
type names struct {
	maps, strings, locks, dying, containers []string
	kinds                                   []faultKind // that they make
}

// read adds those of a text.
func (n *names) read(text string) {
	for _, found := range []struct {
		pattern *regexp.Regexp
		into    *[]string
	}{{mapVariable, &n.maps}, {stringVariable, &n.strings}, {lockVariable, &n.locks}, {dyingMutex, &n.dying}, {containerType, &n.containers}} {
		for _, at := range found.pattern.FindAllStringSubmatch(text, -1) {
			*found.into = append(slices.Clip(*found.into), strings.Join(at[1:], ""))
		}
	}
}

// and gives these with those of one more text, compiled.
func (n names) and(text string) *names {
	n.read(text)
	n.compile()
	return &n
}

// compile makes the expressions: a map's operator[], a string that is written, a container that is copied or filled, methods of locks and mutexes.
func (n *names) compile() {
	anyOf := func(words []string) string { return `(?:` + strings.Join(append(words, `[^\s\S]`), "|") + `)` }
	containers := append([]string{`(?:vector|SmallVector|deque|list|map|set)<[^;=]*>`}, n.containers...)
	n.kinds = []faultKind{
		{"allocates", regexp.MustCompile(`\b(` + anyOf(n.maps) + `\s*\[)`)},
		{"allocates", regexp.MustCompile(`(?:\.|->)(` + anyOf(n.strings) + `\s*\+?=)[^=]`)},
		{"allocates", regexp.MustCompile(`\b(` + anyOf(containers) + `\s+\w+\s*(?:=\s*[\w.>*:-]+\s*;|=?\s*\{\s*[^\s}]|\(\s*[^\s)]))`)},
		{"locks", regexp.MustCompile(`\b(` + anyOf(n.locks) + `\s*(?:\.|->)\s*(?:lock|unlock|try_lock|wait)\w*)\s*\(`)},
	}
}

// faultsIn finds the faults of a text that begins in a line of its file.
func faultsIn(text string, line int, n *names) (faults []fault) {
	for _, kind := range slices.Concat(faultKinds, n.kinds) {
		for _, at := range kind.is.FindAllStringSubmatchIndex(text, -1) {
			what := strings.Join(strings.Fields(text[at[2]:at[3]]), " ")
			faults = append(faults, fault{what: kind.says + ": " + what, at: at[2], line: line + strings.Count(text[:at[2]], "\n"),
				fork: plainLocks.MatchString(what) && !n.destroyed(text[at[3]:])})
		}
	}
	slices.SortFunc(faults, func(a, b fault) int { return a.at - b.at })
	return faults
}

// lockedMutex is what is behind the type of a lock: its name and the mutex.
var lockedMutex = regexp.MustCompile(`^\s*\w*\s*[({]([^;]*?)[)}]\s*;`)

// destroyed is whether the lock is of a mutex that the end of the process destroys, when other threads may still run.
func (n *names) destroyed(rest string) bool {
	locked := lockedMutex.FindStringSubmatch(rest)
	return locked != nil && slices.Contains(n.dying, locked[1])
}
