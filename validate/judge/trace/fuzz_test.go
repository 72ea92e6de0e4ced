package trace

import (
	"strings"
	"testing"
)

// Whatever a file holds, it is judged or refused.
func FuzzJudge(f *testing.F) {
	for _, text := range []string{
		"queue q\nqueue r\nbuffer b 64\nshared_event e\nmps k graph\nmps_cb c q\nwork c set b 0 64 1\nsignal c e 1\ncontinue c\n" +
			"encode k c set b 0 8 1\ncommit c\ncb d r\nwait d e 1\nwork d copy b 0 b 8 8\non_completed d look\ncommit d\nawait seen\nevent.set e 0\n" +
			"block look\npeek b 0 64\npost seen\n",
		"buffer b 64\nserial s\nshared_event e\nnotify e 1 look\nasync s look\nsync s look\nevent.set e 1\nawait seen 3\n" +
			"block look\npoke b 0 64 1\npost seen\n",
	} {
		f.Add(traced(f, text, 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		runs, err := Judge(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, run := range runs {
			run.Verdict()
		}
	})
}
