package override

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/enginekit"
)

// Secret returns a text that only the daemons on one store know. The first one makes it. A daemon without a store has its own.
func (t *Table) Secret(ctx context.Context) ([]byte, error) {
	if known := t.secret.Load(); known != nil {
		return *known, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.former == nil {
		t.former = []byte(rand.Text())
	}
	kept, err := t.store.secret(ctx, t.former)
	if err != nil {
		return nil, err
	}
	t.former = kept
	t.secret.Store(&kept)
	return kept, nil
}

// secretField is the field of the secret in the hash.
const secretField = "secret"

// secretScript keeps a secret unless there is one. Its change of the version lets other daemons notice when Redis loses both.
//
//	KEYS[1]  the hash
//	ARGV     the last version seen, a new secret
//	reply    that which is kept
var secretScript = rueidis.NewLuaScript(stampLua + `
local kept = redis.call('HGET', key, 'secret')
if kept then
  return kept
end
redis.call('HSET', key, 'secret', ARGV[2])
stamp(tonumber(ARGV[1]))
return ARGV[2]`)

func (r *redis) secret(ctx context.Context, fresh []byte) ([]byte, error) {
	client, err := r.connected()
	if err != nil {
		return nil, err
	}
	kept, err := secretScript.Exec(ctx, client, []string{r.key}, []string{strconv.FormatInt(r.seen, 10), string(fresh)}).ToString()
	if err != nil {
		return nil, &StoreError{err}
	}
	return []byte(kept), nil
}

// secretRow is the key of the secret. No limit has it.
const secretRow = "\x00secret"

func (d *database) secret(ctx context.Context, fresh []byte) ([]byte, error) {
	for range mostTries {
		rows, _, err := d.rows.Load(ctx, []string{secretRow})
		if err != nil {
			return nil, &StoreError{err}
		}
		if len(rows[0].State) > 0 {
			return rows[0].State, nil
		}
		first := enginekit.Write{Key: secretRow, Old: rows[0].Version, New: int64(weir.Kit.NewLease()), State: fresh, Ends: math.MaxInt64}
		if _, err = d.rows.Swap(ctx, math.MinInt64, []enginekit.Change{{Writes: []enginekit.Write{first}}}); err != nil && !errors.Is(err, enginekit.ErrConflict) {
			return nil, &StoreError{err}
		}
	}
	return nil, &StoreError{errors.New("the secret of the daemons could not be kept")}
}

// secretEnd is the end of the name of the secret's file.
const secretEnd = ".secret"

func (f *file) secret(_ context.Context, fresh []byte) ([]byte, error) {
	if f.path == "" {
		return fresh, nil
	}
	kept, err := cli.ReadFile(f.path+secretEnd, 4096)
	switch {
	case err == nil && len(kept) == len(fresh):
		return kept, nil
	case err == nil && len(kept) > 0:
		err = fmt.Errorf("%s%s is damaged: it has %d bytes, and a secret has %d; move it away to have a new one made", f.path, secretEnd, len(kept), len(fresh))
	case err == nil || errors.Is(err, fs.ErrNotExist):
		err = replace(f.path+secretEnd, fresh)
	}
	if err != nil {
		return nil, &StoreError{err}
	}
	return fresh, nil
}

// forget has the secret read again: the store may have lost it. The caller holds the lock.
func (t *Table) forget() { t.secret.Store(nil) }
