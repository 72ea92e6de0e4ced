package validate

import "time"

// stockOutcome is what stock does in a scenario.
type stockOutcome string

const (
	stockFails stockOutcome = "must fail"
	// One queue orders everything on stock: what can go wrong there comes with several streams.
	stockLives stockOutcome = "must live"
	// A race that shows now and then, or in the sanitizer alone.
	stockMay stockOutcome = "may fail"
)

// patient is how long a run may take of which a hang is bad news; where it is expected, less is enough.
const (
	patient   = 3 * time.Minute
	impatient = 20 * time.Second
)
