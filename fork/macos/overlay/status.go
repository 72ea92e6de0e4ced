package overlay

import (
	"encoding/json"
	"strings"
)

// Status is what "python -m mpsforge_overlay" says of its process.
type Status struct {
	Torch  string `json:"torch"`
	Git    string `json:"git"`
	Active bool   `json:"active"` // the overlay answers, and nothing of torch's copy
	Reason string `json:"reason"` // why the overlay was not loaded
	Stamp  *Stamp `json:"stamp"`
	// Patches of the series that the overlay has.
	Patches []string `json:"patches,omitempty"`
	// Paths of libraries; of an overlay that was not loaded there are none.
	Stock     string                    `json:"stock,omitempty"`
	Library   string                    `json:"library,omitempty"`
	Hooks     string                    `json:"hooks,omitempty"`
	Allocator string                    `json:"allocator,omitempty"`
	Guard     string                    `json:"guard,omitempty"`
	Fallback  string                    `json:"fallback,omitempty"`
	Kernels   map[string]map[string]int `json:"kernels,omitempty"` // by dispatch key, how many are in which library
	Symbols   int                       `json:"symbols,omitempty"` // of torch's copy that lead to the overlay for what is loaded later
	Rebound   map[string]int            `json:"rebound,omitempty"` // pointers by image that led to torch's copy
	Gone      []string                  `json:"gone,omitempty"`    // symbols of torch's copy that the overlay lacks: who needs one is refused
	Left      []string                  `json:"left,omitempty"`    // pointers to torch's copy in the data of other images
	Foreign   []string                  `json:"foreign,omitempty"` // what is not the overlay's and should be
}

// ReadStatus reads it.
func ReadStatus(text []byte) (Status, error) {
	var s Status
	err := json.Unmarshal(text, &s)
	return s, err
}

// Why says why the overlay does not answer.
func (s Status) Why() string {
	if s.Reason != "" {
		return s.Reason
	}
	return strings.Join(append(s.Foreign, s.Left...), ", ")
}
