package nginx

import "regexp/syntax"

// mayEnd reports whether a regular expression may fit a folder with a file name behind it, and need a part of the name.
func (p pattern) mayEnd(name string) bool {
	a := automaton{p.program}
	at := a.step(a.anywhere(), '/', false)
	for i, r := range name {
		if at = a.step(at, r, i == len(name)-1); a.matched(at) {
			return true
		}
	}
	return false
}

// fitsFolders reports whether a regular expression may fit a text that ends in a slash.
func (p pattern) fitsFolders() bool {
	a := automaton{p.program}
	at := a.anywhere()
	return a.matched(at) || a.matched(a.step(at, '/', true))
}

// automaton is a compiled regular expression, and states are its instructions.
type (
	automaton struct{ *syntax.Prog }
	states    map[uint32]bool
)

// anywhere returns the states that any text may lead to.
func (a automaton) anywhere() states {
	s := states{}
	a.follow(s, uint32(a.Start), true, false)
	for before := -1; before < len(s); {
		before = len(s)
		for i := range s {
			if a.reads(i) {
				a.follow(s, a.Inst[i].Out, false, false)
			}
		}
	}
	return s
}

// step returns the states after a rune: those that it leads to, and the beginning, for a match may begin anywhere.
func (a automaton) step(s states, r rune, ends bool) states {
	next := states{}
	for i := range s {
		if a.reads(i) && a.Inst[i].MatchRune(r) {
			a.follow(next, a.Inst[i].Out, false, ends)
		}
	}
	a.follow(next, uint32(a.Start), false, ends)
	return next
}

func (a automaton) reads(i uint32) bool {
	op := a.Inst[i].Op
	return op == syntax.InstRune || op == syntax.InstRune1 || op == syntax.InstRuneAny || op == syntax.InstRuneAnyNotNL
}

func (a automaton) matched(s states) bool {
	for i := range s {
		if a.Inst[i].Op == syntax.InstMatch {
			return true
		}
	}
	return false
}

// follow adds an instruction, and those that it leads to without a rune.
func (a automaton) follow(s states, i uint32, begins, ends bool) {
	if s[i] {
		return
	}
	s[i] = true
	switch inst := a.Inst[i]; inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		a.follow(s, inst.Out, begins, ends)
		a.follow(s, inst.Arg, begins, ends)
	case syntax.InstCapture, syntax.InstNop:
		a.follow(s, inst.Out, begins, ends)
	case syntax.InstEmptyWidth:
		needs := syntax.EmptyOp(inst.Arg)
		if (begins || needs&syntax.EmptyBeginText == 0) && (ends || needs&syntax.EmptyEndText == 0) {
			a.follow(s, inst.Out, begins, ends)
		}
	}
}
