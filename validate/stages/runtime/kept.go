package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/reports"
	"mpsforge/validate/judge/kept"
	"mpsforge/validate/judge/process"
)

// keptRuns are the ends of processes of a run that leaves patches out, which takes hours: a later run with the same seed goes on
// where it was stopped. Without a file, as nil, it keeps nothing.
type keptRuns struct {
	file *kept.File[keptRun]
	have map[string]process.Result
}

// keptRun is how one process ended.
type keptRun struct {
	Key string         `json:"key"` // of what it ran
	End process.Result `json:"end"`
}

// keep has the ends of processes kept, if patches are left out.
func (r *stageRun) keep() error {
	if len(r.env.Host.Ablate) == 0 {
		return nil
	}
	file, ends, err := kept.Open[keptRun](r.env.Kept, r.env.Series.Digest(), fmt.Sprint(r.env.Seed, r.env.Quick, r.env.Tool))
	if err != nil {
		return err
	}
	r.kept = &keptRuns{file: file, have: map[string]process.Result{}}
	for _, one := range ends {
		r.kept.have[one.Key] = one.End
	}
	if len(ends) > 0 {
		r.stage.Facts = append(r.stage.Facts, reports.Fact{Name: "processes of an earlier run that was stopped",
			Value: fmt.Sprintf("%d, from %s on; to run all again, delete %s", len(ends), file.Begun.Format("2006-01-02 15:04 MST"), file.Folder)})
	}
	return nil
}

// reached says how many scenarios have run, stock and patched and each without a patch, if that is kept.
func (r *stageRun) reached(more int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.rows += more
	if r.kept != nil {
		r.env.Kept.Reached("scenarios", int64(r.rows), int64(r.allRows))
	}
}

// once gives the kept end of what ran on a build, else lets it run and keeps its end.
func (k *keptRuns) once(built *host.Build, what string, do func() (process.Result, error)) (process.Result, error) {
	if k == nil {
		return do()
	}
	stamp, err := built.Stamp.Text()
	if err != nil {
		return process.Result{}, err
	}
	digest := sha256.Sum256([]byte(stamp + "\n" + what))
	key := hex.EncodeToString(digest[:12])
	if end, have := k.have[key]; have {
		return end, nil
	}
	end, err := do()
	if err == nil {
		err = k.file.Add(keptRun{key, end})
	}
	return end, err
}
