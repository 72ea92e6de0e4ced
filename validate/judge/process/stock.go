package process

import "time"

// Stock is what stock does in a scenario.
type Stock string

const (
	StockFails Stock = "must fail"
	// One queue orders everything on stock: what can go wrong there comes with several streams.
	StockLives Stock = "must live"
	// A race that shows now and then, or in the sanitizer alone.
	StockMay Stock = "may fail"
)

// Patient is how long a run may take of which a hang is bad news; where it is expected, Impatient is enough.
const (
	Patient   = 3 * time.Minute
	Impatient = 20 * time.Second
)
