package main

import (
	"bufio"
	"encoding/gob"
	"io"
	"sync"
	"time"
)

// recordKind is what a record says.
type recordKind uint8

const (
	recordUsed         recordKind = iota // units were admitted
	recordReturned                       // units were given back, or may have been
	recordCancelled                      // a booking was cancelled, or may have been: its units were not used, and given back
	recordUnanswered                     // a take of units may have been counted, and its caller left
	recordReset                          // the subject was reset, or may have been
	recordHeld                           // slots are held from Answered on
	recordFreed                          // they are held no longer, from Sent on
	recordLate                           // a call took longer than its deadline
	recordCount                          // Units is how often What happened
	recordLeft                           // at the end, Units of What are left in the engine
	recordWaited                         // a caller stood in line for slots
	recordWaitedRate                     // a caller stood in line for slots and a rate
	recordTaken                          // slots were taken in the server, at most until Answered
	recordPerhapsTaken                   // they may have been, and the engine releases them after Answered
	recordBusy                           // a sleep of the process was late by Units us
)

// record is one line of a process's account. Instants are wall times in us since the epoch: a call left at Sent and
// was answered at Answered.
type record struct {
	Kind     recordKind
	World    int
	Subject  int
	Process  int
	Units    int64
	Sent     int64
	Answered int64  // never if the answer is unknown
	ID       uint64 // of slots, or of a booking of a queue
	What     string // a verb, a count
	Deadline int64  // us, of a late call
}

// never is an instant after all others.
const never = 1 << 62

func now() int64 { return time.Now().UnixMicro() }

// journal writes records. It is safe for concurrent use.
type journal struct {
	mu     sync.Mutex
	buffer *bufio.Writer
	out    *gob.Encoder
}

func newJournal(w io.Writer) *journal {
	buffer := bufio.NewWriterSize(w, 64<<10)
	return &journal{buffer: buffer, out: gob.NewEncoder(buffer)}
}

func (j *journal) write(r record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.out.Encode(&r) // the reader notices a pipe that ends early
}

func (j *journal) flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buffer.Flush()
}

// readJournal passes each record to keep until the writer has closed the pipe.
func readJournal(r io.Reader, keep func(record)) error {
	in := gob.NewDecoder(bufio.NewReaderSize(r, 64<<10))
	for {
		var next record
		if err := in.Decode(&next); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		keep(next)
	}
}
