package kept

// Index is a file with its results by what they are of. A nil one has none and keeps none.
type Index[T any] struct {
	*File[T]
	Left map[string][]T // not taken yet
}

// OpenIndex opens a file as Open does.
func OpenIndex[T any](r *Run, key func(T) string, depends ...string) (*Index[T], error) {
	file, results, err := Open[T](r, depends...)
	if err != nil {
		return nil, err
	}
	x := &Index[T]{File: file, Left: map[string][]T{}}
	for _, result := range results {
		x.Left[key(result)] = append(x.Left[key(result)], result)
	}
	return x, nil
}

// Take gives the first result of a key that was not taken yet.
func (x *Index[T]) Take(key string) (result T, found bool) {
	if x == nil || len(x.Left[key]) == 0 {
		return result, false
	}
	result, x.Left[key] = x.Left[key][0], x.Left[key][1:]
	return result, true
}

// Add keeps a result.
func (x *Index[T]) Add(result T) error {
	if x == nil {
		return nil
	}
	return x.File.Add(result)
}
