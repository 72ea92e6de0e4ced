package host

import (
	"context"

	"mpsforge/internal/events"
)

// Generate runs torchgen and gives the folder with the registration, for tests outside this package.
func Generate(ctx context.Context, root *Root, torch *Torch, checkout, cache string, sink events.Sink) (string, error) {
	made, err := generate(ctx, root, torch, checkout, cache, sink)
	if err != nil {
		return "", err
	}
	return made.registration, nil
}
