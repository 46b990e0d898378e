package redislimit

import (
	"encoding/binary"
	"math"

	"github.com/weirflow/weir"
)

// The files named wire implement the protocol of the script, which the opening comment of script/call.lua defines. Here
// are its words. A call is in wire_call.go, the parameters of a limit in wire_part.go, and a reply in wire_reply.go.

// op is an operation of the script.
type op uint8

const (
	opPeek op = iota
	opTake
	opRecord
	opReset
	opUndo
	opUpTo     // takes as often as it fits; once answered, it is a take
	opRenew    // renews the lease of slots
	opBook     // takes for a later instant
	opWithdraw // gives units of a booking back
)

var opNames = [...]string{opPeek: "peek", opTake: "take", opRecord: "record", opReset: "reset", opUndo: "undo", opUpTo: "take", opRenew: "renew", opBook: "reserve ahead", opWithdraw: "settle"}

func (o op) String() string { return opNames[o] }

// verb returns the operation that a caller asks for.
func (o op) verb() weir.Op {
	switch o {
	case opPeek:
		return weir.OpPeek
	case opRecord:
		return weir.OpRecord
	case opReset:
		return weir.OpReset
	}
	return weir.OpTake
}

// opWords are what the script calls them. It calls more of what precedes a decision by words.
var opWords = [...]string{opPeek: "peek", opTake: "take", opRecord: "record", opReset: "reset", opUndo: "undo", opUpTo: "upto", opRenew: "renew", opBook: "book", opWithdraw: "withdraw"}

// flags of a decision in the reply.
const (
	flagRefused = iota
	flagAdmitted
	flagUnreadable
)

// foreignByte is, in the script, the value of a key that holds another type than a string.
const foreignByte = 0xff

// replyLater is the end of a reply that does not have all answers.
const replyLater = "\x03"

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func doubles(to []byte, values ...float64) []byte {
	for _, v := range values {
		to = binary.LittleEndian.AppendUint64(to, math.Float64bits(v))
	}
	return to
}
