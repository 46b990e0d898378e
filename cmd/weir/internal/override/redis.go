package override

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/redislimit"
)

// redis keeps entries in a hash, whose version changes with each of them (stamp.go).
type redis struct {
	dial    func() (rueidis.Client, error)
	mu      sync.Mutex     // guards client
	client  rueidis.Client // nil until the server answers
	key     string
	log     *slog.Logger
	version int64            // of the last load; 0 of an empty hash
	seen    int64            // the last version that this daemon has made or read
	known   map[string]field // of the last load, and the changes of this daemon since, by name
	readAt  time.Time        // when the version was last read
}

// OpenRedis returns the table of a Redis server, which is named as in --engine. close ends its connections. The table is
// empty until Watch reaches the server.
func OpenRedis(url string, log *slog.Logger) (t *Table, stop func(), err error) {
	options, engine, err := redislimit.ParseURL(url)
	if err != nil {
		return nil, nil, err
	}
	r := &redis{dial: func() (rueidis.Client, error) { return rueidis.NewClient(options) }, key: cmp.Or(engine.Prefix, "weir") + ":overrides", log: log, version: -1, known: map[string]field{}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	t, err = open(ctx, r, log)
	if err != nil {
		log.Warn("overrides are not in force yet", "err", err)
	}
	return t, r.close, nil
}

// connected returns the client, and connects it if the server did not answer before.
func (r *redis) connected() (rueidis.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		return r.client, nil
	}
	client, err := r.dial()
	if err != nil {
		return nil, &StoreError{err}
	}
	r.client = client
	return client, nil
}

func (r *redis) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		r.client.Close()
	}
}

func (r *redis) load(ctx context.Context) (entries []Entry, changed bool, err error) {
	client, err := r.connected()
	if err != nil {
		return nil, false, err
	}
	version, err := client.Do(ctx, client.B().Hget().Key(r.key).Field(versionField).Build()).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, false, &StoreError{err}
	}
	now := time.Now().Round(0) // a machine may sleep meanwhile
	if version == r.version {
		r.readAt = now
		return nil, false, nil
	}
	all, err := r.read(ctx)
	if err == nil && (now.Sub(r.readAt) < keptFor/2 || version == 0) {
		all, err = r.restored(ctx, all)
	}
	if err == nil {
		err = r.clean(ctx, all)
	}
	if err != nil {
		return nil, false, err
	}
	r.version, r.known, r.readAt = all.version, all.fields, now
	return all.entries(), true, nil
}

// read returns all fields of the hash.
func (r *redis) read(ctx context.Context) (stored, error) {
	texts, err := r.client.Do(ctx, r.client.B().Hgetall().Key(r.key).Build()).AsStrMap()
	if err != nil {
		return stored{}, &StoreError{err}
	}
	all, unread := parseStored(texts)
	if unread > 0 {
		r.log.Warn("Redis has overrides that this version of weir cannot read", "overrides", unread)
	}
	r.seen = max(r.seen, all.version)
	return all, nil
}

// restored returns what the hash holds after this daemon has put back what Redis has lost: a block lasts until its time.
// A field is lost if this daemon knows a later change of it, because a removed entry leaves a field for a while.
func (r *redis) restored(ctx context.Context, all stored) (stored, error) {
	arguments := []string{strconv.FormatInt(r.seen, 10)}
	for name, f := range r.known {
		if all.fields[name].stamp < f.stamp && !f.past(r.seen) {
			arguments = append(arguments, name, f.text)
		}
	}
	if len(arguments) == 1 {
		return all, nil
	}
	n, err := restoreScript.Exec(ctx, r.client, []string{r.key}, arguments).AsInt64()
	if err != nil {
		return stored{}, &StoreError{err}
	}
	if n > 0 { // no other daemon was quicker
		r.log.Warn("Redis had lost changes of overrides, and has them again", "changes", n)
	}
	return r.read(ctx)
}

// clean removes the fields of entries that have ended or been removed.
func (r *redis) clean(ctx context.Context, all stored) error {
	var past []string
	for name, f := range all.fields {
		if f.past(all.version) {
			past = append(past, name, f.text)
		}
	}
	if len(past) == 0 {
		return nil
	}
	if err := cleanScript.Exec(ctx, r.client, []string{r.key}, past).Error(); err != nil {
		return &StoreError{err}
	}
	return nil
}

func (r *redis) put(ctx context.Context, at target, e *Entry) error {
	name, err := at.field()
	if err != nil {
		return err
	}
	content := ""
	if e != nil {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		content = string(text)
	}
	client, err := r.connected()
	if err != nil {
		return err
	}
	stamp, err := changeScript.Exec(ctx, client, []string{r.key}, []string{strconv.FormatInt(r.seen, 10), name, content, strconv.Itoa(MaxEntries)}).AsInt64()
	switch {
	case err != nil:
		return &StoreError{err}
	case stamp == 0:
		return errFull
	}
	r.seen, r.version = stamp, -1 // the next poll reads the hash, even if Redis goes back to the last version
	r.known[name] = newField(stamp, content, e)
	return nil
}
