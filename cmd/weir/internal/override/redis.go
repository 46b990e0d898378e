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

// redis keeps entries in a hash, with a number that grows with each change.
type redis struct {
	dial    func() (rueidis.Client, error)
	mu      sync.Mutex     // guards client
	client  rueidis.Client // nil until the server answers
	key     string
	version string // of the last load
	known   []Entry
	log     *slog.Logger
}

// versionField is the field of the number. Those of entries are JSON lists.
const versionField = "version"

// changeScript sets or removes a field.
//
//	KEYS[1]  the hash
//	ARGV     the field, its value or "" to remove it, the largest number of entries
//	reply    the new version, or 0 if there is no room
var changeScript = rueidis.NewLuaScript(`
local key, field, value = KEYS[1], ARGV[1], ARGV[2]
if value == '' then
  redis.call('HDEL', key, field)
elseif redis.call('HEXISTS', key, field) == 0 and redis.call('HLEN', key) - redis.call('HEXISTS', key, 'secret') > tonumber(ARGV[3]) then
  return 0
else
  redis.call('HSET', key, field, value)
end
return redis.call('HINCRBY', key, 'version', 1)`)

// OpenRedis returns the table of a Redis server, which is named as in --engine. close ends its connections. The table is
// empty until Watch reaches the server.
func OpenRedis(url string, log *slog.Logger) (t *Table, stop func(), err error) {
	options, engine, err := redislimit.ParseURL(url)
	if err != nil {
		return nil, nil, err
	}
	r := &redis{dial: func() (rueidis.Client, error) { return rueidis.NewClient(options) }, key: cmp.Or(engine.Prefix, "weir") + ":overrides", version: "none", log: log}
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
	version, err := client.Do(ctx, client.B().Hget().Key(r.key).Field(versionField).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, false, &StoreError{err}
	}
	switch {
	case version == r.version:
		return nil, false, nil
	case version == "" && len(r.known) > 0:
		return nil, false, r.restore(ctx)
	}
	all, err := r.client.Do(ctx, r.client.B().Hgetall().Key(r.key).Build()).AsStrMap()
	if err != nil {
		return nil, false, &StoreError{err}
	}
	var past []string
	for field, text := range all {
		var e Entry
		if field == versionField || field == secretField || json.Unmarshal([]byte(text), &e) != nil {
			continue
		}
		entries = append(entries, e)
		if time.Since(e.Until) > time.Minute { // clocks differ
			past = append(past, field)
		}
	}
	if len(past) > 0 {
		if err := r.client.Do(ctx, r.client.B().Hdel().Key(r.key).Field(past...).Build()).Error(); err != nil {
			return nil, false, &StoreError{err}
		}
	}
	r.version, r.known = all[versionField], entries
	return entries, true, nil
}

// restore keeps the entries of the last load again, because Redis has lost its data: a block lasts until its time.
func (r *redis) restore(ctx context.Context) error {
	set := r.client.B().Hset().Key(r.key).FieldValue()
	for _, e := range r.known {
		field, err := e.target().field()
		if err != nil {
			return err
		}
		content, err := json.Marshal(e)
		if err != nil {
			return err
		}
		set = set.FieldValue(field, string(content))
	}
	last, _ := strconv.ParseInt(r.version, 10, 64)                                            // our own number
	grow := r.client.B().Hincrby().Key(r.key).Field(versionField).Increment(last + 1).Build() // to one that no daemon has seen
	for _, result := range r.client.DoMulti(ctx, set.Build(), grow) {
		if err := result.Error(); err != nil {
			return &StoreError{err}
		}
	}
	r.log.Warn("Redis had lost the overrides, and has them again", "overrides", len(r.known))
	return nil // the next poll reads them, and the secret beside them
}

// field is the field of a target in the hash.
func (p target) field() (string, error) {
	field, err := json.Marshal([]any{p.rule, p.key, p.prefix})
	return string(field), err
}

func (r *redis) put(ctx context.Context, at target, e *Entry) error {
	field, err := at.field()
	if err != nil {
		return err
	}
	value := ""
	if e != nil {
		content, err := json.Marshal(e)
		if err != nil {
			return err
		}
		value = string(content)
	}
	client, err := r.connected()
	if err != nil {
		return err
	}
	version, err := changeScript.Exec(ctx, client, []string{r.key}, []string{field, value, strconv.Itoa(MaxEntries)}).AsInt64()
	switch {
	case err != nil:
		return &StoreError{err}
	case version == 0:
		return errFull
	}
	return nil // the next poll reads the version
}
