package report

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/weirflow/weir/internal/replay"
)

// names shows keys, or masks them.
type names struct {
	secret []byte // of the masks; nil shows the keys
}

// newNames draws a secret that nobody ever sees, so that no list of addresses can be tried on the masks.
func newNames(show bool) names {
	if show {
		return names{}
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return names{secret}
}

// of returns a key as readers see it: the name of the customer, if the program knows it, or a mask, the same for the
// same key throughout a page, or the key with its unprintable characters escaped.
func (n names) of(k replay.KeyReport) string {
	if k.Name != "" {
		return shorten(visible(k.Name))
	}
	return n.key(k.Key)
}

func (n names) key(key string) string {
	if n.secret == nil {
		return shorten(visible(key))
	}
	mac := hmac.New(sha256.New, n.secret)
	mac.Write([]byte(key))
	return hex.EncodeToString(mac.Sum(nil)[:5])
}

// visible escapes characters that are invisible, or would reorder their neighbours.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u{%x}", r)
		}
	}
	return b.String()
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > mostText {
		return string(runes[:mostText-1]) + "…"
	}
	return text
}
