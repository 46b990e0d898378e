// Package seal makes texts that only daemons with the same secret can make, such as tokens.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// sealBytes is the length of a seal.
const sealBytes = 16

// Of returns what as a text that only daemons with the same secret can make. Texts of another kind are others.
func Of(secret []byte, kind string, what any) string {
	text, _ := json.Marshal(what) // it has no value that JSON lacks
	return base64.RawURLEncoding.EncodeToString(append(sealOf(secret, kind, text), text...))
}

func sealOf(secret []byte, kind string, text []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(kind))
	mac.Write(text)
	return mac.Sum(nil)[:sealBytes]
}

// Open reads what a text says, and reports whether it is one of Of.
func Open(secret []byte, kind, sealed string, what any) bool {
	content, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(content) < sealBytes || !hmac.Equal(content[:sealBytes], sealOf(secret, kind, content[sealBytes:])) {
		return false
	}
	return json.Unmarshal(content[sealBytes:], what) == nil
}
