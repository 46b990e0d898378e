package rules

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// ParseAttributes reads the attributes of a request, each as NAME=VALUE.
func ParseAttributes(texts []string) (Attributes, error) {
	request := Attributes{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, plain.Misusef("an attribute is NAME=VALUE, like path=/login", "explain: %q is no attribute", text)
		}
		name = AttributeName(name)
		if _, twice := request[name]; twice {
			return nil, plain.Misusef("a request has one value of each", "explain: %s is given twice", plain.Printable(name))
		}
		request[name] = value
	}
	return request, nil
}

// CheckRequest refuses attributes that no request of these rules has, as an error of the command.
func (c *Config) CheckRequest(command string, request Attributes) error {
	if err := c.CheckNames(request); err != nil {
		return plain.Misusef("attributes are method, host, path, client, header.NAME, and those that the files list in attributes", "%s: %v", command, err)
	}
	return nil
}

// Text shows the explanation to people: the answer, then each rule that has a part in it.
func (e Explanation) Text() string {
	var b strings.Builder
	b.WriteString(plain.Printable(e.Answer) + "\n")
	for _, s := range e.Steps {
		b.WriteByte('\n')
		s.write(&b)
		before := s.Rule
		for _, pool := range s.Otherwise {
			fmt.Fprintf(&b, "\nif %s refuses: ", plain.Printable(before))
			pool.write(&b)
			before = pool.Rule
		}
	}
	for _, note := range e.Notes {
		b.WriteString("\nnote: " + plain.Printable(note) + "\n")
	}
	for _, w := range e.Warnings {
		b.WriteString("\nwarning: " + w.Sentence() + "\n")
	}
	return b.String()
}

// write shows the step to people.
func (s *Step) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s, %s", plain.Printable(s.Rule), plain.Printable(s.File))
	if s.Line > 0 { // a pushed limit has none
		fmt.Fprintf(b, ":%d", s.Line)
	}
	b.WriteByte('\n')
	line := func(name, text string) { fmt.Fprintf(b, "  %-11s %s\n", name, plain.Printable(text)) }
	for _, f := range s.Fields {
		line(f.Name, f.Text)
	}
	if s.Key == nil {
		return
	}
	line("this key", *s.Key)
	line("its limit", s.Limit)
	line("its cost", plain.Thousands(s.Cost))
	if s.Remaining != nil {
		line("remaining", plain.Thousands(*s.Remaining))
	}
	switch {
	case s.RetryAfter == "":
	case s.Cause != "":
		line("banned for", s.RetryAfter)
	default:
		line("retry after", s.RetryAfter)
	}
}
