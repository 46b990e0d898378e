package notice

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// Event is that a key has reached a threshold of a quota, as receivers get it.
type Event struct {
	Type string    `json:"type"` // eventType
	At   time.Time `json:"timestamp"`
	Data Data      `json:"data"`

	id  string
	key string
}

// Data says what was reached.
type Data struct {
	Rule    string  `json:"rule"`
	Key     *string `json:"key,omitempty"` // one of Key and KeyHMAC is there
	KeyHMAC string  `json:"key_hmac,omitempty"`
	Limit   string  `json:"limit"` // the text of the limit
	Percent int64   `json:"percent"`
	Used    int64   `json:"used"` // units, when the daemon looked
	Units   int64   `json:"units"`
	// ResetAt is when the window ends. Nil where units come back one by one.
	ResetAt *time.Time `json:"reset_at,omitempty"`
}

const eventType = "quota.reached"

// newEvent describes a threshold that a look has found reached.
func newEvent(l *look, d *weir.Decision, percent int64, id string) *Event {
	e := &Event{Type: eventType, At: time.Now().UTC().Truncate(time.Millisecond), id: id, key: l.key}
	e.Data = Data{Rule: l.quota.alone.Name(), Limit: l.quota.text, Percent: percent, Used: usedOf(d), Units: d.Limit}
	if l.quota.window == 0 {
		at := front.ResetAt(l.quota.alone.Limits()[0], d.LimitReset)
		if at.IsZero() {
			at = e.At.Add(d.LimitReset).Round(time.Second)
		}
		e.Data.ResetAt = &at
	}
	return e
}
