package simulate

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir"
)

// ErrShare is returned when processes cannot share a limit, for example because it has fewer units than processes.
var ErrShare = errors.New("processes cannot share")

// share returns the part of a limit that process i of n holds alone.
func share(limit weir.Limit, i, n int) (weir.Limit, error) {
	part, err := weir.Kit.Share(limit, i, n)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShare, err)
	}
	return part, nil
}

// capacity returns the units that processes share, or 0 for a limit that shares a rate alone, or none.
func capacity(limit weir.Limit) int64 {
	d := weir.Describe(limit)
	if d.Owes || d.Stateless {
		return 0
	}
	return d.Capacity
}
