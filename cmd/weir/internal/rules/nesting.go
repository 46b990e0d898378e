package rules

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// nesting follows the structure of tokens.
type nesting struct {
	flow, line, dashes int
	open               []block
}

// add returns why a structure becomes too deep or too wide at the next token, or "".
func (s *nesting) add(t *token.Token) (why string) {
	if t.Position.Line != s.line {
		s.line, s.dashes = t.Position.Line, 0
		if s.flow == 0 && t.Position.Column > maxIndent {
			return tooDeep
		}
		if s.flow == 0 && t.Type != token.CommentType {
			s.open = begin(s.open, t)
		}
	}
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		s.flow++
	case token.MappingEndType, token.SequenceEndType:
		s.flow--
	case token.SequenceEntryType, token.MappingKeyType:
		s.dashes++
	}
	if s.flow > maxFlow || s.dashes > maxDashes {
		return tooDeep
	}
	if n := len(s.open); n > 0 && s.open[n-1].fields > maxFields {
		return fmt.Sprintf("is field %d of a block, want at most %d", maxFields+1, maxFields)
	}
	return ""
}

const tooDeep = "is nested too deeply"

// block is the fields so far that begin at a column.
type block struct{ column, fields int }

// begin counts the field at the beginning of a line, and ends the blocks further right. Items of a list are no fields.
func begin(open []block, t *token.Token) []block {
	column := t.Position.Column
	for len(open) > 0 && open[len(open)-1].column > column {
		open = open[:len(open)-1]
	}
	if t.Type == token.SequenceEntryType {
		return open
	}
	if len(open) == 0 || open[len(open)-1].column < column {
		open = append(open, block{column: column})
	}
	open[len(open)-1].fields++
	return open
}
