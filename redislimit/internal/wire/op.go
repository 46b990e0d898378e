// Package wire implements the protocol of the script, which the opening comment of script/call.lua defines: decisions, the
// bytes of a call (Batch), and those of its answer (Reply).
package wire

import (
	"errors"

	"github.com/weirflow/weir"
)

// Op is an operation of the script.
type Op uint8

const (
	OpPeek Op = iota
	OpTake
	OpRecord
	OpReset
	OpUndo
	OpUpTo     // takes as often as it fits; once answered, it is a take
	OpRenew    // renews the lease of slots
	OpBook     // takes for a later instant
	OpWithdraw // gives units of a booking back
)

var opNames = [...]string{OpPeek: "peek", OpTake: "take", OpRecord: "record", OpReset: "reset", OpUndo: "undo", OpUpTo: "take", OpRenew: "renew", OpBook: "reserve ahead", OpWithdraw: "settle"}

func (o Op) String() string { return opNames[o] }

// Verb returns the operation that a caller asks for.
func (o Op) Verb() weir.Op {
	switch o {
	case OpPeek:
		return weir.OpPeek
	case OpRecord:
		return weir.OpRecord
	case OpReset:
		return weir.OpReset
	}
	return weir.OpTake
}

// opWords are the script's names for them. The script also has words for other things that precede a decision.
var opWords = [...]string{OpPeek: "peek", OpTake: "take", OpRecord: "record", OpReset: "reset", OpUndo: "undo", OpUpTo: "upto", OpRenew: "renew", OpBook: "book", OpWithdraw: "withdraw"}

// flags of a decision in the reply.
const (
	flagRefused = iota
	FlagAdmitted
	flagUnreadable
)

// foreignByte is, in the script, the value of a key that holds another type than a string.
const foreignByte = 0xff

// ReplyLater is the end of a reply that does not have all answers.
const ReplyLater = "\x03"

var errReply = errors.New("the script's reply does not match the call")
