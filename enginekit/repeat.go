package enginekit

import "github.com/weirflow/weir/internal/repeat"

// Repeater repeats calls that failed until each is answered or can no longer matter: releases, undos, settlements. A call that
// waits for its next try costs a timer, and no goroutine. It is safe for concurrent use.
type Repeater = repeat.Repeater

// RepeaterOptions bound the calls that a Repeater repeats at a time, and name its pauses.
type RepeaterOptions = repeat.Options

// Repeated is how the repetitions of a call ended.
type Repeated = repeat.Outcome

// RepeatedDone is the end of a call that was answered. Any other end left it undone.
const RepeatedDone = repeat.Done

// NewRepeater returns a Repeater.
func NewRepeater(o RepeaterOptions) *Repeater { return repeat.New(o) }
