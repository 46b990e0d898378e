// Package browsertest shows our pages to a real Chromium. Only its tests import chromedp, so no other package compiles it.
package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/weirflow/weir/internal/testprocess"
)

// patience bounds how long a test waits for what a page should show.
const patience = 30 * time.Second

// tab is a page in Chromium.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	mistakes []string // exceptions, errors in the console, and what the content security policy has stopped
}

// chromium returns the program, by its name or as the variable CHROMIUM has it.
func chromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	testprocess.Require(t, "chromium", "chromium")
	path, _ := exec.LookPath("chromium")
	return path
}

// newTab begins a browser without a page. What goes wrong in its pages fails the test.
func newTab(t *testing.T) *tab {
	t.Helper()
	b := &tab{t: t}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(chromium(t))}
	if os.Getuid() == 0 {
		options = append(options, chromedp.Flag("no-sandbox", true))
	}
	ctx, end := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(options...), chromedp.WithListener(b.listen))
	b.ctx = ctx
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, mistake := range b.mistakes {
			t.Errorf("the page: %s", mistake)
		}
		end()
	})
	b.do(chromedp.Navigate("about:blank"))
	return b
}

func (b *tab) listen(event any) {
	mistake := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails)
		mistake = string(text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			text, _ := json.Marshal(e.Args)
			mistake = string(text)
		}
	case *log.EventEntryAdded:
		if e.Entry.Source == "security" || strings.Contains(e.Entry.Text, "Content Security Policy") {
			mistake = e.Entry.Text
		}
	}
	if mistake != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.mistakes = append(b.mistakes, mistake)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// open shows a page in a viewport of that width, in light or dark. It scrolls at once.
func (b *tab) open(url string, width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}), chromedp.Navigate(url))
}

// eval returns the value of an expression, also of a promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// await waits until a condition holds, and returns how long that took.
func (b *tab) await(condition string) time.Duration {
	b.t.Helper()
	began := time.Now()
	for !eval[bool](b, "!!("+condition+")") {
		if time.Since(began) > patience {
			b.t.Fatalf("the page never shows %s; it shows\n%s", condition, eval[string](b, "document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
	return time.Since(began)
}

// click clicks an element once a pointer reaches it. It finds the element and clicks in one step of the page, because what is above
// it may grow or shrink between two: on a live page by itself.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.await(fmt.Sprintf(`(e => {
		e?.scrollIntoView({ block: 'center', behavior: 'instant' })
		const place = e?.getBoundingClientRect()
		const reached = e?.contains(document.elementFromPoint(place.x + place.width / 2, place.y + place.height / 2))
		if (reached) { e.focus(); e.click() }
		return reached
	})(document.querySelector(%q))`, selector))
}

// press types keys into the focused element.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// picture writes the viewport as PNG.
func (b *tab) picture(path string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
