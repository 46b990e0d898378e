package simulate

// agenda holds what is still to happen, the earliest event first. Events of one instant happen in the order in which
// they were added.
type agenda struct {
	events []event
	added  uint64
}

// event is a request that comes back, a look at a line of waiting callers, or the loss of a process.
type event struct {
	at     int64
	order  uint64
	kind   eventKind
	line   int // for checkLine
	caller caller
}

type eventKind uint8

const (
	comeBack eventKind = iota
	checkLine
	loseProcess
)

func (a *agenda) empty() bool { return len(a.events) == 0 }

func (a *agenda) next() int64 { return a.events[0].at }

func before(a, b *event) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

func (a *agenda) add(e event) {
	a.added++
	e.order = a.added
	a.events = append(a.events, e)
	for i := len(a.events) - 1; i > 0; {
		up := (i - 1) / 2
		if !before(&a.events[i], &a.events[up]) {
			break
		}
		a.events[i], a.events[up] = a.events[up], a.events[i]
		i = up
	}
}

// pop removes the earliest event.
func (a *agenda) pop() event {
	first, last := a.events[0], len(a.events)-1
	a.events[0] = a.events[last]
	a.events = a.events[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if before(&a.events[child], &a.events[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		a.events[i], a.events[least] = a.events[least], a.events[i]
		i = least
	}
}
