package words

import "slices"

// Groups are names by reason, in the order in which the reasons were first seen.
type Groups []Group

// Group is a reason and the names that have it.
type Group struct {
	Reason string
	Names  []string
}

// Add puts a name to those with the same reason.
func (g *Groups) Add(reason, name string) {
	i := slices.IndexFunc(*g, func(one Group) bool { return one.Reason == reason })
	if i < 0 {
		*g, i = append(*g, Group{Reason: reason}), len(*g)
	}
	(*g)[i].Names = append((*g)[i].Names, name)
}
