package auth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/seal"
)

// KeyToken lets its holder peek at one key of one rule, until it ends: so a page of a customer shows what he has used, and of nobody
// else. Every daemon with the same secret honours it.
type KeyToken struct {
	Rule string `json:"r"`
	Key  []byte `json:"k"`
	Plan string `json:"p,omitempty"` // of the key, in a rule with plans
	Ends int64  `json:"e"`           // Unix milliseconds
}

// LongestKeyToken is how long a KeyToken lasts at most.
const LongestKeyToken = time.Hour

// keyPrefix begins the text of a KeyToken. Those of a file have no small letter there.
const keyPrefix = "weir_key_"

// keyKind keeps these tokens and other sealed texts apart.
const keyKind = "key"

// Secret returns what seals tokens.
type Secret func(context.Context) ([]byte, error)

// Text returns the text of a token.
func (t *KeyToken) Text(secret []byte) string { return keyPrefix + seal.Of(secret, keyKind, t) }

// secretTime bounds the first question for the secret. Later ones need no engine.
const secretTime = time.Second

// SealWith has the text of key tokens read with a secret. Call it before the first caller comes.
func (k *Keys) SealWith(secret Secret) { k.secret = secret }

// holder returns who shows the text of a key token.
func (k *Keys) holder(text string) *Identity {
	if k == nil || k.secret == nil {
		return &Identity{why: "this port knows no tokens of keys: weir serve --tokens FILE"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	secret, err := k.secret(ctx)
	if err != nil {
		return &Identity{why: "the token of a key cannot be read while the engine is away; ask again"}
	}
	t := &KeyToken{}
	switch {
	case !seal.Open(secret, keyKind, strings.TrimPrefix(text, keyPrefix), t):
		return &Identity{why: "the token of a key is none of this daemon's; ask for another"}
	case time.Now().UnixMilli() >= t.Ends:
		return &Identity{why: fmt.Sprintf("the token of a key ended at %s; ask for another", time.UnixMilli(t.Ends).UTC().Format(time.RFC3339))}
	}
	return &Identity{Name: "holder of a token of a key", some: Read, key: t}
}
