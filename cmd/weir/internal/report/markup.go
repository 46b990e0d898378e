package report

import (
	"html"
	"strconv"
	"strings"
)

// markup writes HTML. All texts and values of attributes are escaped, so that what a log says stays text. It is no template, because
// one of the standard library, whose methods are found while it runs, makes the program of the playground a quarter larger.
type markup struct{ strings.Builder }

// open begins an element with pairs of attributes. One without a value is left out.
func (m *markup) open(name string, attributes ...string) {
	m.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			m.WriteString(" " + attributes[i] + `="` + html.EscapeString(attributes[i+1]) + `"`)
		}
	}
	m.WriteString(">")
}

func (m *markup) end(name string) { m.WriteString("</" + name + ">") }

// line ends an element, and with it a line of the file.
func (m *markup) line(name string) { m.WriteString("</" + name + ">\n") }

func (m *markup) text(text string) { m.WriteString(html.EscapeString(text)) }

// element writes an element that has only a text, unless that is empty.
func (m *markup) element(name, text string, attributes ...string) {
	if text == "" {
		return
	}
	m.open(name, attributes...)
	m.text(text)
	m.line(name)
}

// html returns the body of the page.
func (v *view) html() string {
	var m markup
	m.open("main")
	m.open("header")
	m.element("p", v.Kind, "class", "soft")
	m.element("h1", v.Headline)
	for _, text := range v.Lead {
		m.element("p", text, "class", "lead")
	}
	m.element("p", v.About, "class", "soft")
	m.WriteString("<noscript><p>The pictures need script, which your reader does not run. All words and numbers are here without.</p></noscript>\n")
	m.line("header")
	for i := range v.Sections {
		m.section(&v.Sections[i])
	}
	m.open("section", "aria-labelledby", "how")
	m.element("h2", "How these numbers came about", "id", "how")
	m.open("ul")
	for _, note := range v.Notes {
		m.element("li", note)
	}
	m.line("ul")
	m.line("section")
	m.line("main")
	return m.String()
}

func (m *markup) section(s *section) {
	m.open("section", "aria-labelledby", s.ID)
	m.element("h2", s.Question, "id", s.ID)
	for _, text := range s.Answer {
		m.element("p", text)
	}
	if len(s.Choices) > 0 {
		m.open("div", "class", "choices", "role", "group", "aria-label", s.Question, "hidden", "hidden")
		for _, c := range s.Choices {
			m.element("button", c.Name, "type", "button", "data-part", c.Part, "aria-pressed", strconv.FormatBool(c.Chosen))
		}
		m.line("div")
	}
	for i := range s.Parts {
		m.part(&s.Parts[i])
	}
	m.line("section")
}

func (m *markup) part(p *part) {
	hidden := ""
	if p.Hidden {
		hidden = "hidden"
	}
	m.open("div", "id", p.ID, "hidden", hidden)
	m.element("h3", p.Heading)
	m.element("p", p.Text)
	if len(p.Figures) > 0 {
		grid := ""
		if len(p.Figures) > 1 {
			grid = "grid"
		}
		m.open("div", "class", grid)
		for _, f := range p.Figures {
			m.figure(f)
		}
		m.line("div")
	}
	if p.Table != nil {
		m.table(p.Table)
	}
	m.line("div")
}

func (m *markup) figure(f figure) {
	m.open("figure", "id", f.ID)
	m.open("figcaption")
	m.open("strong")
	m.open("bdi")
	m.text(f.Title)
	m.end("bdi")
	m.end("strong")
	m.text(" " + f.Text)
	m.end("figcaption")
	m.line("figure")
}

func (m *markup) table(t *table) {
	first := ""
	if t.First > 0 {
		first = strconv.Itoa(t.First)
	}
	m.open("div", "class", "rows")
	m.open("table", "data-what", t.What, "data-first", first)
	m.element("caption", t.Caption)
	m.open("thead")
	m.open("tr")
	for _, c := range t.Columns {
		m.open("th", "scope", "col", "class", c.Class)
		m.text(c.Title)
		m.end("th")
	}
	m.end("tr")
	m.line("thead")
	m.open("tbody")
	for i, row := range t.Rows {
		m.row(t.Columns, row, t.Link(i))
	}
	m.line("tbody")
	if len(t.Sums) > 0 {
		m.open("tfoot")
		m.row(t.Columns, t.Sums, "")
		m.line("tfoot")
	}
	m.end("table")
	m.line("div")
}

// row writes a row of a table. Its first cell leads to the figure of an ID, unless that is empty.
func (m *markup) row(columns []column, row []string, link string) {
	m.open("tr")
	for i, text := range row {
		m.open("td", "class", columns[i].Class, "data-label", columns[i].Title)
		leads := i == 0 && link != ""
		if leads {
			m.open("a", "href", "#"+link)
		}
		if columns[i].Long() {
			m.open("bdi")
			m.text(text)
			m.end("bdi")
		} else {
			m.text(text)
		}
		if leads {
			m.end("a")
		}
		m.end("td")
	}
	m.line("tr")
}
