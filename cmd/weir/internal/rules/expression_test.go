package rules

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// An expression that demands one of some words fits what it fits as an expression.
func TestWordsOfAnExpressionFitWhatItFits(t *testing.T) {
	parts := []string{"bot", "bat", "b", "Kit", "s", "0", "(?:ab|AC)", "(k)", "|", "|", "|", "", "(?-i:b)", ".", "^", "x*", "[ab]", "é", `\n`, `\b`, "(", ")"}
	texts := []string{"b", "B", "o", "O", "t", "T", "a", "k", "K", "i", "s", "S", "0", "\n", "\u212a", "\u017f", "é", "É", "c", "x", " "}
	byWords, fitted := 0, 0
	for seed := range randtest.Seeds(t, 4000, 1000) {
		random := randtest.New(seed)
		source := "~*" + some(random, parts, 6)
		p := pattern{source: source}
		if p.readExpression(asText) != nil {
			continue
		}
		if p.words != nil {
			byWords++
		}
		model := regexp.MustCompile(latin1("(?i)" + source[2:]))
		for range 20 {
			text := some(random, texts, 10)
			want := model.MatchString(latin1(text)) || model.MatchString(latin1(strings.TrimSuffix(text, "\n")))
			if want && p.words != nil {
				fitted++
			}
			if got := p.fitsExpression(text); got != want {
				t.Fatalf("%q fits %q: %t, want %t", source, text, got, want)
			}
		}
	}
	t.Logf("%d expressions are words, which fit %d texts", byWords, fitted)
	if byWords == 0 || fitted == 0 {
		t.Error("want some of each")
	}
}

func some(random *rand.Rand, of []string, most int) string {
	var b strings.Builder
	for range random.IntN(most) {
		b.WriteString(of[random.IntN(len(of))])
	}
	return b.String()
}

func TestExpressionsOfUserAgentsAreWords(t *testing.T) {
	for source, want := range map[string]int{"~*bot": 1, "~*(bot|crawler|spider|slurp)": 4, "~*bot|baidu|bing": 3, "~bot": 0, "~*^bot": 0, "~*bot.*x": 0, "~*b[ao]t": 0, "~*é": 0} {
		p := pattern{source: source}
		if err := p.readExpression(asText); err != nil || len(p.words) != want {
			t.Errorf("%s is the words %q, %v, want %d", source, p.words, err, want)
		}
	}
}
